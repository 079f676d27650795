import { assert, assertEquals, assertLess, assertRejects, assertThrows } from "@std/assert";
import { TOY, TOY_LIMITS, toyDecoder } from "../../../tests/support/toy_decoder.ts";
import { DeviceError, FormatError, ResourceError, UnsupportedError } from "../../errors.ts";
import type { TensorInfo } from "../../formats/source.ts";
import { createGraphBuilder } from "../../graph/builder.ts";
import { symbol } from "../../graph/dim/mod.ts";
import { getOp } from "../../ops/mod.ts";
import type { PrepareOptions } from "../backend.ts";
import { plan } from "../../plan/planner.ts";
import { createReferenceBackend } from "../reference/reference_backend.ts";
import { createWasmBackend, type WasmBackendOptions, type WasmPlan } from "./backend.ts";

interface ToyOptions extends WasmBackendOptions {
  readonly kv?: "f16" | "f32";
  readonly prepare?: Partial<PrepareOptions>;
}

function toy({ kv = "f16", prepare = {}, ...options }: ToyOptions = {}): Promise<WasmPlan> {
  const made = plan(toyDecoder(kv), { limits: TOY_LIMITS });
  return createWasmBackend({ threads: 1, ...options }).prepare(made, { slots: 2, ...prepare });
}

type Steps = Pick<WasmPlan, "input" | "output" | "run">;

/** Logits of the last token, `tokens` starting at `start` of a slot. */
function step(executable: Steps, tokens: readonly number[], slot = 0, start = 0): number[] {
  executable.input("tokens").set(tokens as never);
  executable.input("positions").set(tokens.map((_, i) => start + i) as never);
  executable.input("slots").set(tokens.map(() => slot) as never);
  executable.input("logit_rows").set([tokens.length - 1] as never);
  executable.run({ M: tokens.length, L: 1 });
  return [...executable.output("logits").subarray(0, TOY.vocabulary)] as number[];
}

function distance(a: readonly number[], b: readonly number[]): number {
  return Math.max(...a.map((value, i) => Math.abs(value - b[i]!)));
}

for (const kv of ["f16", "f32"] as const) {
  Deno.test(`a decoder with a ${kv} cache gives the reference's logits`, async () => {
    const made = plan(toyDecoder(kv), { limits: TOY_LIMITS });
    const reference = await createReferenceBackend().prepare(made, { slots: 2 });
    const executable = await toy({ kv, threads: 2 });
    reference.openSlot();
    executable.openSlot();
    assertLess(distance(step(executable, [3, 1, 4, 1, 5]), step(reference, [3, 1, 4, 1, 5])), 1e-4);
    for (const [i, token] of [9, 2, 6].entries()) {
      const expected = step(reference, [token], 0, 5 + i);
      assertLess(distance(step(executable, [token], 0, 5 + i), expected), 1e-4);
    }
    executable.dispose();
  });
}

Deno.test("logits do not depend on the number of threads", async () => {
  const results = [];
  for (const threads of [1, 2]) {
    const executable = await toy({ threads });
    executable.openSlot();
    results.push([step(executable, [3, 1, 4, 1, 5, 9, 2]), step(executable, [6], 0, 7)]);
    executable.dispose();
  }
  assertEquals(results[0], results[1]);
});

Deno.test("two sessions in one step do not see each other", async () => {
  const executable = await toy();
  const [a, b] = [executable.openSlot(), executable.openSlot()];
  const alone = step(executable, [7, 8, 9], a);
  step(executable, [1, 2], b);
  executable.input("tokens").set([4, 9] as never);
  executable.input("positions").set([2, 2] as never);
  executable.input("slots").set([b, a] as never);
  executable.input("logit_rows").set([1] as never);
  executable.run({ M: 2, L: 1 });
  const together = executable.output("logits").subarray(0, TOY.vocabulary);
  assertLess(distance([...together] as number[], alone), 1e-5);
  executable.dispose();
});

Deno.test("a slot is zero when opened again, and a saved state goes on where it was", async () => {
  const executable = await toy();
  const a = executable.openSlot();
  step(executable, [5, 6, 7], a);
  const saved = await executable.readState(a, 3);
  const expected = step(executable, [8], a, 3);
  executable.closeSlot(a);
  assertEquals(executable.openSlot(), a);
  assert((await executable.readState(a, TOY.capacity)).every((byte) => byte === 0));
  await executable.writeState(a, 3, saved);
  assertEquals(step(executable, [8], a, 3), expected);
  assertThrows(() => executable.writeState(a, 2, saved), RangeError, "expected");
  executable.dispose();
});

Deno.test("indices out of range are refused, and the device lives on", async () => {
  const executable = await toy();
  assertThrows(() => step(executable, [1]), RangeError, "slot 0: no session has it open");
  executable.openSlot();
  assertThrows(() => step(executable, [50]), RangeError, "tokens[0] is 50 and must be in 0..49");
  assertThrows(() => step(executable, [1], 0, 32), RangeError, "positions[0] is 32");
  assertThrows(() => step(executable, [1], 0, -1), RangeError, "positions[0] is -1");
  assertThrows(() => step(executable, Array(9).fill(1)), RangeError);
  assertEquals(step(executable, [1]).every(Number.isFinite), true);
  executable.dispose();
});

Deno.test("a key beyond float16 is an error that names the remedy, and the device lives on", async () => {
  const builder = createGraphBuilder("append", getOp);
  const M = symbol("M", { max: 4 });
  const cache = builder.state("keys", [8, 1, 5], "f16");
  const x = builder.input("x", [M, 1, 5], "f32");
  const positions = builder.input("positions", [M], "i32");
  const slots = builder.input("slots", [M], "i32");
  builder.op("kv_append", [cache, x, positions, slots], {}, "append");
  builder.output("y", builder.op("unary", [x], { kind: "scale", alpha: 1 }, "y")[0]!);
  const made = plan(builder.build(), { limits: { M: 4 } });
  const executable = await createWasmBackend({ threads: 1 }).prepare(made, { slots: 1 });
  executable.openSlot();
  const run = (value: number) => {
    executable.input("x").set([1, 2, 3, 4, value] as never);
    executable.run({ M: 1 });
  };
  assertThrows(() => run(65520), DeviceError, "Use a float32 cache");
  assertThrows(() => run(NaN), DeviceError, "Cannot store a key or value as float16");
  run(65519);
  executable.dispose();
});

Deno.test("a node beyond 4 GiB is refused with numbers before anything is read", async () => {
  const builder = createGraphBuilder("large", getOp);
  const source = {
    name: "large.gguf",
    size: 2 ** 40,
    readInto: () => {
      throw new Error("must not be read");
    },
    close() {},
  };
  const tensor: TensorInfo = {
    name: "w",
    shape: [2 ** 17, 2 ** 14],
    format: "F16",
    source,
    offset: 0,
    byteLength: 2 ** 32,
  };
  const x = builder.input("x", [symbol("M", { max: 4 }), 2 ** 14], "f32");
  builder.output("y", builder.op("matmul", [x, builder.weight("w", tensor)], {}, "y")[0]!);
  const made = plan(builder.build(), { limits: { M: 4 } });
  const error = await assertRejects(
    () => createWasmBackend({ threads: 1 }).prepare(made, { slots: 1 }),
    ResourceError,
  );
  assertEquals(
    error.message,
    "large.gguf, y: a part of it that cannot be cut needs 4116 MiB of WASM memory (weights 4096 MiB, " +
      "activations 2 MiB, keys and values 0 MiB), and a memory has 4096 MiB. " +
      "Take a smaller model, or lower contextLength, cacheTokens or batch",
  );
});

Deno.test("progress grows to the total, and loading can be aborted", async () => {
  const seen: number[] = [];
  const executable = await toy({
    prepare: { onProgress: ({ loadedBytes, totalBytes }) => seen.push(loadedBytes / totalBytes) },
  });
  assertEquals(seen.at(-1), 1);
  assert(seen.every((share, i) => share > (seen[i - 1] ?? 0)));
  executable.dispose();
  const controller = new AbortController();
  await assertRejects(
    () =>
      toy({
        prepare: { signal: controller.signal, onProgress: () => controller.abort(new Error("no")) },
      }),
    Error,
    "no",
  );
});

Deno.test("kernels can be forced and excluded", async () => {
  const sums = [0, 1].flatMap((layer) => [`layers.${layer}.add1`, `layers.${layer}.add2`]);
  const forceKernels = Object.fromEntries(sums.map((name) => [name, "binary_f32"]));
  const executable = await toy({
    prepare: { forceKernels },
  });
  assert(executable.kernels.includes("binary_f32"));
  assert(!executable.kernels.includes("binary_flat_f32"));
  executable.dispose();
  const error = await assertRejects(
    () => toy({ prepare: { excludeKernels: new Set(["attention", "span_attention"]) } }),
    UnsupportedError,
  );
  assertEquals(
    error.message,
    "layers.0.attention: the WASM backend has no kernel for attention with these shapes. " +
      "Use the reference device",
  );
});

Deno.test("a profile names every kernel and its calls", async () => {
  const executable = await toy({ profile: true });
  executable.openSlot();
  step(executable, [1, 2]);
  step(executable, [3], 0, 2);
  const profile = executable.profile!();
  const calls = Object.fromEntries(profile.map((entry) => [entry.name, entry.calls]));
  assertEquals([calls.attention, calls.rms_norm_f32], [2 * TOY.layers, 4 * TOY.layers]);
  assert(profile.every(({ ms }) => ms >= 0));
  assertEquals(executable.profile!().every(({ ms, calls }) => ms === 0 && calls === 0), true);
  executable.dispose();
});

Deno.test("a disposed executable says so", async () => {
  const executable = await toy();
  executable.dispose();
  executable.dispose();
  assertThrows(() => executable.run({ M: 1, L: 1 }), TypeError, "it has been disposed");
  assertThrows(() => executable.input("tokens"), TypeError, "it has been disposed");
});

Deno.test("a tensor whose bytes do not fit its shape is refused", async () => {
  const builder = createGraphBuilder("short", getOp);
  const source = { name: "short.gguf", size: 8, readInto: () => {}, close() {} };
  const tensor = {
    name: "w",
    shape: [2],
    format: "F16",
    source,
    offset: 0,
    byteLength: 8,
  };
  const x = builder.input("x", [symbol("M", { max: 4 }), 2], "f32");
  builder.output(
    "y",
    builder.op("binary", [x, builder.weight("w", tensor)], { kind: "add" }, "y")[0]!,
  );
  const made = plan(builder.build(), { limits: { M: 4 } });
  await assertRejects(
    () => createWasmBackend({ threads: 1 }).prepare(made, { slots: 1 }),
    FormatError,
    "short.gguf, w: 8 bytes do not hold 2 values of F16",
  );
});
