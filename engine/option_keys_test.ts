import { assertMatch, assertRejects } from "@std/assert";
import { load } from "./models/load.ts";
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
