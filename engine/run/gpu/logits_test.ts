import { assert, assertEquals, assertThrows } from "@std/assert";
import { type Gpu, openGpu } from "../../../gpu/gpu.ts";
import { bytesOfAll } from "../../../gpu/readback.ts";
import { gpuTest } from "../../../tests/support/gpu.ts";
import { testGpu } from "../../../tests/support/gpu_cases.ts";
import { withStrictMapping } from "../../../tests/support/gpu_strict.ts";
import { TOY, TOY_LIMITS, toyDecoder, wishFor } from "../../../tests/support/toy_decoder.ts";
import { createRandom, nextDouble } from "../../decode/sampling/random.ts";
import { createGraphBuilder } from "../../graph/builder.ts";
import { symbol } from "../../graph/dim/mod.ts";
import { getOp } from "../../ops/mod.ts";
import type { PreparedPlan } from "../backend.ts";
import { RANKED } from "../executable.ts";
import { createGpuBackend, type GpuPlan } from "./backend.ts";
import { plan } from "../../plan/planner.ts";

/** A graph that gives out the rows of a table as logits, the row by the token; runs have at most `most`. */
async function rowsOf(
  table: readonly Float32Array[],
  { most = 1, gpu }: { most?: number; gpu?: Gpu } = {},
): Promise<GpuPlan> {
  const builder = createGraphBuilder("rows", getOp);
  const M = symbol("M", { max: most }), L = symbol("L", { max: most });
  const tokens = builder.input("tokens", [M], "i32");
  builder.input("positions", [M], "i32");
  const logitRows = builder.input("logit_rows", [L], "i32");
  const width = table[0]!.length;
  const data = new Float32Array(table.length * width);
  table.forEach((row, i) => data.set(row, i * width));
  const rows = builder.constant("rows", data, [table.length, width]);
  const [all] = builder.op("gather", [rows, tokens], { axis: 0 }, "gather");
  const [logits] = builder.op("gather", [all, logitRows], { axis: 0 }, "wanted");
  builder.output("logits", logits!);
  const made = plan(builder.build(), { limits: { M: most, L: most } });
  return await createGpuBackend({ gpu: gpu ?? await testGpu() }).prepare(made, {
    slots: 1,
    ranked: RANKED,
  });
}

/** As a sampler orders them: equal logits by lower id, zeros of both signs equal. */
function bestOf(row: Float32Array, count: number): [number, number][] {
  return [...row.entries()].sort(([i, a], [j, b]) => b - a || i - j).slice(0, count);
}

/** A row with many equal logits, as a coarse product has, over all of whose places the best are spread. */
function rowWithTies(seed: number, length: number): Float32Array {
  const random = createRandom(seed);
  return Float32Array.from({ length }, () => Math.round(40 * nextDouble(random) - 30) / 4);
}

gpuTest("the best logits found on the GPU are those of a whole sort, of any length", async () => {
  for (const length of [64, 2047, 2049, 140_000]) {
    const rows = [rowWithTies(length, length), new Float32Array(length).fill(-Infinity)];
    rows[0]!.set([-0, 0, -Infinity], 5);
    rows[1]!.set([7, -0, 0], length - 3);
    const executable = await rowsOf(rows);
    for (const [token, row] of rows.entries()) {
      executable.input("tokens")[0] = token;
      for (const wanted of [1, 64]) {
        await executable.run({ M: 1, L: 1 }, wishFor(wanted));
        const { ids, logits, count } = executable.best!(0)!;
        const found = Array.from({ length: count }, (_, i) => [ids[i]!, logits[i]! + 0]);
        assertEquals(found, bestOf(row, count).map(([id, logit]) => [id, logit + 0]));
        assert(count >= wanted);
      }
    }
    executable.dispose();
  }
});

gpuTest("a NaN among logits comes first, whatever its sign", async () => {
  const bits = Uint32Array.of(0x7fc00000, 0xffc00001);
  for (const nan of bits) {
    const row = new Float32Array(3000).fill(1);
    row[2500] = Infinity;
    new Uint32Array(row.buffer)[2700] = nan;
    const executable = await rowsOf([row]);
    for (const wanted of [1, 2]) {
      await executable.run({ M: 1, L: 1 }, wishFor(wanted));
      const { ids, logits } = executable.best!(0)!;
      assertEquals([ids[0], logits[0]], [2700, NaN]);
    }
    executable.dispose();
  }
});

/** Greedy tokens to the end of the cache, and the logits of each step, which are asked for after every `period`. */
async function greedy(executable: PreparedPlan, wanted: number | undefined, period: number) {
  const slot = executable.openSlot();
  const tokens = [3];
  const rows: number[][] = [];
  for (let position = 0; position < TOY.capacity; position++) {
    executable.input("tokens")[0] = tokens.at(-1)!;
    executable.input("positions")[0] = position;
    executable.input("slots")[0] = slot;
    executable.input("logit_rows")[0] = 0;
    const wish = wanted === undefined ? undefined : wishFor(wanted, TOY.capacity - 1 - position);
    await executable.run({ M: 1, L: 1 }, wish);
    const best = executable.best?.(0);
    const row = () => [...executable.output("logits").subarray(0, TOY.vocabulary) as Float32Array];
    if (position % period === 0) rows.push(row());
    tokens.push(best ? best.ids[0]! : row().indexOf(Math.max(...row())));
  }
  executable.closeSlot(slot);
  return { tokens, rows };
}

gpuTest("whatever of the logits is wished for, steps give the same, ahead or not", async () => {
  const made = plan(toyDecoder(), { limits: TOY_LIMITS });
  const gpu = await testGpu();
  const dense = await createGpuBackend({ gpu, stepsAhead: 0 }).prepare(made, {
    slots: 1,
    ranked: RANKED,
  });
  const expected = await greedy(dense, undefined, 1);
  for (const stepsAhead of [0, 3]) {
    const executable = await createGpuBackend({ gpu, stepsAhead }).prepare(made, {
      slots: 1,
      ranked: RANKED,
    });
    for (const [wanted, period] of [[1, 7], [5, 1], [0, 7], [undefined, 7], [50, 9]] as const) {
      const { tokens, rows } = await greedy(executable, wanted, period);
      const label = `${wanted} wished for, ${stepsAhead} ahead`;
      assertEquals(tokens, expected.tokens, label);
      assertEquals(rows, expected.rows.filter((_, i) => i % period === 0), label);
    }
    assertEquals(executable.foreseenSteps > 0, stepsAhead > 0);
    executable.dispose();
  }
  dense.dispose();
});

gpuTest("a row can be read until the next run, which leaves nothing of it", async () => {
  const executable = await rowsOf([Float32Array.of(1, 3, 2), Float32Array.of(5, 3, 2)]);
  const row = () => [...executable.output("logits").subarray(0, 3)];
  await executable.run({ M: 1, L: 1 }, wishFor(1));
  assertEquals(executable.best!(0)?.ids[0], 1);
  assertEquals(row(), [1, 3, 2]);
  executable.input("tokens")[0] = 1;
  await executable.run({ M: 1, L: 1 });
  assertEquals(executable.best!(0), undefined);
  assertEquals(row(), [5, 3, 2]);
  executable.dispose();
});

gpuTest(
  "the best of many rows are found at once, and rows that are wanted whole come whole",
  async () => {
    const width = 5000, wanted = [1, 0, 40, 65, 64, 0];
    const table = wanted.map((_, i) => rowWithTies(i + 1, width));
    const executable = await rowsOf(table, { most: 8 });
    const tokens = [5, 4, 3, 2, 1, 0];
    executable.input("tokens").set(tokens as never);
    executable.input("logit_rows").set([0, 1, 2, 3, 4, 5] as never);
    const wish = { best: Int32Array.from(wanted), repeats: 0 }, bindings = { M: 6, L: 6 };
    await executable.run(bindings, wish);
    for (const [row, count] of wanted.entries()) {
      const best = executable.best!(row), expected = bestOf(table[tokens[row]!]!, 64);
      assertEquals(best?.count, count > 0 && count <= 64 ? 64 : undefined);
      if (best) assertEquals([...best.ids], expected.map(([id]) => id));
      const rows = executable.output("logits", { first: row, count: 1 }) as Float32Array;
      assertEquals(rows.subarray(row * width, (row + 1) * width), table[tokens[row]!]!);
    }
    const { logits } = executable.stepParts, pick = logits!.pickOf(bindings, wish);
    assertEquals([pick.kind, pick.whole], ["top", [1, 3, 5]]);
    assertEquals(bytesOfAll(logits!.sources(pick)), 6 * 64 * 8 + 3 * 4 * width);

    // Of greedy rows an entry comes, and only of those that are wanted.
    executable.input("logit_rows").set([1, 4] as never);
    await executable.run({ M: 6, L: 2 }, { best: Int32Array.of(1, 1), repeats: 0 });
    for (const [row, token] of [4, 1].entries()) {
      const { ids, count } = executable.best!(row)!;
      assertEquals([count, ids[0]], [1, bestOf(table[token]!, 1)[0]![0]]);
    }
    assertEquals(executable.best!(2), undefined);
    const greedy = logits!.pickOf({ M: 6, L: 2 }, { best: Int32Array.of(1, 1), repeats: 0 });
    assertEquals(bytesOfAll(logits!.sources(greedy)), 2 * 8);
    executable.dispose();
  },
);

gpuTest("a run of which nothing is wanted is not waited for", async () => {
  const gpu = await openGpu();
  const executable = await rowsOf([Float32Array.of(1, 3, 2)], {
    most: 4,
    gpu: withStrictMapping(gpu),
  });
  assertEquals(executable.run({ M: 4, L: 0 }), undefined);
  await executable.run({ M: 4, L: 1 });
  assertEquals([...executable.output("logits").subarray(0, 3)], [1, 3, 2]);
  gpu.dispose();
});

gpuTest(
  "where mappings must be awaited the best come alone, and nothing else is left",
  async () => {
    const gpu = await openGpu();
    const row = Float32Array.of(1, 3, 2);
    const executable = await rowsOf([row], { gpu: withStrictMapping(gpu) });
    const rows = { first: 0, count: 1 };
    await executable.run({ M: 1, L: 1 }, wishFor(1));
    assertEquals(executable.best!(0)?.ids[0], 1);
    assert(executable.isGone!(0));
    assertThrows(() => executable.output("logits", rows), TypeError, "nothing else is left");
    await executable.run({ M: 1, L: 1 });
    assertEquals([...executable.output("logits", rows).subarray(0, 3)], [...row]);
    assert(!executable.isGone!(0));
    gpu.dispose();
  },
);
