import { assertMatch, assertRejects, assertThrows } from "@std/assert";
import { load } from "./models/load.ts";
import { checkOptionKinds } from "./option_keys.ts";
import { loadGraph } from "./onnx/running/load_graph.ts";

Deno.test("an option that there is not is refused with the one that was meant, before a file is looked for", async () => {
  const messages: readonly (readonly [given: Record<string, unknown>, message: RegExp])[] = [
    [{ contextSize: 5 }, /"contextSize" of load\(\): there is none. Did you mean contextLength\?/],
    [{ kv_format: "F16" }, /Did you mean kvFormat\?/],
    [{ thread: 2 }, /Did you mean threads\?/],
    [{ zzz: 1 }, /There are device, gpu, /],
  ];
  for (const [given, message] of messages) {
    const error = await assertRejects(() => load("/nowhere", given), RangeError);
    assertMatch(error.message, message);
  }
  const given = { treads: 2 } as Record<string, unknown>;
  const error = await assertRejects(() => loadGraph("/nowhere", given), RangeError);
  assertMatch(error.message, /"treads" of loadGraph\(\): there is none. Did you mean threads\?/);
});

Deno.test("an option of another kind is refused by its name, in every call that has one of that name", async () => {
  const wrong: readonly (readonly [given: Record<string, unknown>, what: RegExp])[] = [
    [{ signal: "stop" }, /Cannot use signal of load\(\): it must be an AbortSignal/],
    [{ onProgress: true }, /onProgress .* a function/],
    [{ cacheDir: 5 }, /cacheDir .* a text/],
    [{ chatTemplate: {} }, /chatTemplate .* a text/],
    [{ excludeKernels: "matmul" }, /excludeKernels .* a list/],
    [{ placement: 5 }, /placement: it must be a text or an object/],
    [{ stream: "yes" }, /options of stream: they must be an object/],
  ];
  for (const [given, what] of wrong) {
    const error = await assertRejects(() => load("/nowhere", given), TypeError);
    assertMatch(error.message, what);
  }
  for (const given of [null, 5, "greedy"]) {
    assertThrows(() => checkOptionKinds(given, "generate()"), TypeError, "they must be an object");
  }
  checkOptionKinds(undefined, "generate()");
  checkOptionKinds({ signal: null, tools: undefined, else: 5 }, "generate()");
});
