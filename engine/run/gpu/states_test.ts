// States in pages: wherever those lie, steps give the same; and caches of q8_0 hold the bytes that the format is defined by.

import { assertEquals, assertRejects } from "@std/assert";
import { q8_0 } from "../../../quant/formats/q8_0.ts";
import { gpuTest } from "../../../tests/support/gpu.ts";
import { gpuWith, testGpu } from "../../../tests/support/gpu_cases.ts";
import { TOY, TOY_LIMITS, toyDecoder } from "../../../tests/support/toy_decoder.ts";
import { createRandom, nextDouble } from "../../decode/sampling/random.ts";
import { ResourceError } from "../../errors.ts";
import { createGraphBuilder } from "../../graph/builder.ts";
import { symbol } from "../../graph/dim/mod.ts";
import { getOp } from "../../ops/mod.ts";
import type { PreparedPlan } from "../backend.ts";
import { NO_PAGE, PAGE_ROWS } from "../pages/groups.ts";
import { plan } from "../../plan/planner.ts";
import { createGpuBackend } from "./backend.ts";

const ROWS = 170, WINDOW = 70;
const TOKENS = Array.from({ length: ROWS + 1 }, (_, i) => (7 * i + 3) % TOY.vocabulary);

/** A toy whose first layer sees few rows; with pools or without. */
async function toy(pages?: readonly number[]): Promise<PreparedPlan> {
  const graph = toyDecoder("f16", "F32", { capacity: 200, windows: [WINDOW] });
  const backend = createGpuBackend({ gpu: await testGpu(), stepsAhead: 0 });
  return await backend.prepare(plan(graph, { limits: TOY_LIMITS }), { slots: 3, pages });
}

/** Logits of a row of a slot, which is computed with up to seven behind it. */
async function logitsAt(
  executable: PreparedPlan,
  { slot, position, count = 1 }: { slot: number; position: number; count?: number },
): Promise<number[]> {
  for (let row = 0; row < count; row++) {
    executable.input("tokens")[row] = TOKENS[position + row]!;
    executable.input("positions")[row] = position + row;
    executable.input("slots")[row] = slot;
  }
  executable.input("logit_rows")[0] = count - 1;
  await executable.run({ M: count, L: 1 });
  return [...executable.output("logits").subarray(0, TOY.vocabulary) as Float32Array];
}

gpuTest(
  "rows are found in whatever pages they lie, and a copied page goes on like the first",
  async () => {
    const [own, pooled] = [await toy(), await toy([9, 6])];
    for (const executable of [own, pooled]) {
      for (let slot = 0; slot < 3; slot++) assertEquals(executable.openSlot(), slot);
    }
    const [all, last] = pooled.pages!;
    // Pages of two sessions in turn, from the end of the pool; of the window, what is left is given away.
    const free = [...Array(9).keys()], few = [...Array(6).keys()];
    for (let position = 0; position < ROWS; position += 5) {
      for (const slot of [0, 1]) {
        for (let row = position; row < position + 5; row++) {
          if (row % PAGE_ROWS > 0) continue;
          const index = row / PAGE_ROWS;
          all!.map({ slot, index }, free.pop()!);
          last!.map({ slot, index }, few.pop()!);
        }
        // No row sees so far back any more.
        const unseen = Math.floor((position - WINDOW + 1) / PAGE_ROWS) - 1;
        if (unseen >= 0) last!.map({ slot, index: unseen }, NO_PAGE);
        const at = { slot, position, count: 5 };
        assertEquals(await logitsAt(pooled, at), await logitsAt(own, at), `${slot} at ${position}`);
      }
    }
    // What two sessions share up to a row within a page is copied from there on.
    const index = Math.floor(ROWS / PAGE_ROWS);
    for (let i = 0; i < index; i++) all!.map({ slot: 2, index: i }, 8 - 2 * i);
    for (
      const [memory, page, to, from] of [[all!, 8 - 2 * index, 0, 0], [
        last!,
        1,
        0,
        index - 1,
      ]] as const
    ) {
      memory.copy({ page, rows: ROWS % PAGE_ROWS }, to);
      memory.map({ slot: 2, index }, to);
      if (from > 0) memory.map({ slot: 2, index: from }, 3);
    }
    const expected = await logitsAt(own, { slot: 0, position: ROWS });
    assertEquals(await logitsAt(pooled, { slot: 2, position: ROWS }), expected);
    assertEquals(await logitsAt(pooled, { slot: 0, position: ROWS }), expected);
    own.dispose();
    pooled.dispose();
  },
);

gpuTest(
  "rows without a page are zero and take nothing; saved ones go into other pages",
  async () => {
    const executable = await toy([4, 4]);
    const slot = executable.openSlot(), other = executable.openSlot();
    for (const memory of executable.pages!) {
      memory.map({ slot, index: 0 }, 3);
      memory.map({ slot: other, index: 0 }, 1);
      memory.map({ slot: other, index: 1 }, 0);
    }
    await logitsAt(executable, { slot, position: 0, count: 8 });
    const saved = await executable.readState(slot, 100);
    const rowBytes = 2 * TOY.kvHeads * TOY.headWidth;
    for (let state = 0; state < 2 * TOY.layers; state++) {
      const rows = saved.subarray(100 * state * rowBytes, 100 * (state + 1) * rowBytes);
      assertEquals(rows.subarray(0, 8 * rowBytes).some((byte) => byte !== 0), true);
      assertEquals(rows.subarray(8 * rowBytes).every((byte) => byte === 0), true);
    }
    executable.writeState(other, 100, saved);
    assertEquals(await executable.readState(other, 100), saved);
    for (const memory of executable.pages!) memory.map({ slot: other, index: 0 }, NO_PAGE);
    executable.writeState(other, 100, saved.map(() => 1));
    assertEquals(await executable.readState(slot, 100), saved);
    executable.dispose();
  },
);

gpuTest(
  "a pool beyond what kernels can address is refused with its size and a remedy",
  async () => {
    const graph = toyDecoder("f16", "F32", { capacity: 200 });
    const backend = createGpuBackend({ gpu: await gpuWith({ maxBindingBytes: 1 << 16 }) });
    await assertRejects(
      () => backend.prepare(plan(graph, { limits: TOY_LIMITS }), { slots: 1, pages: [17] }),
      ResourceError,
      "a pool of 1088 tokens takes 69632 bytes, and the GPU's kernels can address 65536 at once",
    );
  },
);

/** Heads in blocks of all magnitudes: peaks and ties, zeros, scales that are denormal as float16. */
function blocks(count: number): Float32Array {
  const random = createRandom(5);
  return Float32Array.from({ length: count }, (_, i) => {
    const block = i >> 5, sign = nextDouble(random) < 0.5 ? -1 : 1;
    if (block % 7 === 0) {
      return i % 32 === 0 ? 127 : sign * (Math.floor(127 * nextDouble(random)) - 0.5);
    }
    if (block % 7 === 1) return 0;
    return sign * nextDouble(random) * 2 ** (block % 50 - 30);
  });
}

/** A cache of q8_0 that rows are written to, in two slots. */
async function blockCache(rows: number, [heads, width]: readonly [number, number]) {
  const builder = createGraphBuilder("blocks", getOp);
  const M = symbol("M", { max: rows });
  const cache = builder.state("cache", [100, heads, width], "q8_0");
  const inputs = [builder.input("x", [M, heads, width], "f32")];
  for (const name of ["positions", "slots"]) inputs.push(builder.input(name, [M], "i32"));
  builder.output("same", builder.op("unary", [inputs[1]!], { kind: "neg" }, "same")[0]!);
  builder.op("kv_append", [cache, ...inputs], {}, "append");
  const executable = await createGpuBackend({ gpu: await testGpu() })
    .prepare(plan(builder.build(), { limits: { M: rows } }), { slots: 2 });
  const slots = [executable.openSlot(), executable.openSlot()] as const;
  for (let row = 0; row < rows; row++) {
    executable.input("positions")[row] = row;
    executable.input("slots")[row] = slots[1];
  }
  return executable;
}

gpuTest(
  "a q8_0 cache is saved as the blocks that the format makes of its rows, to the bit",
  async () => {
    const rows = 90, values = blocks(rows * 3 * 96);
    const executable = await blockCache(rows, [3, 96]);
    (executable.input("x") as Float32Array).set(values);
    await executable.run({ M: rows });
    const expected = new Uint8Array(values.length / 32 * 34);
    q8_0.encode!(values, expected);
    assertEquals(await executable.readState(1, rows), expected);
    executable.writeState(0, rows, expected);
    assertEquals(await executable.readState(0, rows), expected);
    executable.dispose();
  },
);

gpuTest("a number that a q8_0 cache cannot hold makes its block NaN, and no other", async () => {
  const executable = await blockCache(1, [1, 128]);
  const values = new Float32Array(128).fill(1);
  [values[3], values[40], values[70]] = [127 * 65520, NaN, -Infinity];
  (executable.input("x") as Float32Array).set(values);
  await executable.run({ M: 1 });
  const saved = await executable.readState(1, 1), decoded = new Float32Array(128);
  q8_0.decode(saved, decoded);
  assertEquals(decoded.subarray(0, 96).every(Number.isNaN), true);
  assertEquals(decoded.subarray(96).every((value) => Math.abs(value - 1) < 1e-3), true);
  executable.dispose();
});
