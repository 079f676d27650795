import { assertEquals } from "@std/assert";
import { TOY, TOY_LIMITS, toyDecoder, wishFor } from "../../../tests/support/toy_decoder.ts";
import { createRandom, nextDouble } from "../../decode/sampling/random.ts";
import { createGraphBuilder } from "../../graph/builder.ts";
import { symbol } from "../../graph/dim/mod.ts";
import { getOp } from "../../ops/mod.ts";
import { plan } from "../../plan/planner.ts";
import { RANKED } from "../executable.ts";
import { createWasmArena } from "./arena.ts";
import { createWasmBackend, type WasmBackendOptions, type WasmPlan } from "./backend.ts";

/** A graph that gives out the rows of a table as logits, the row by the token. */
async function rowsOf(
  table: readonly Float32Array[],
  options: WasmBackendOptions,
): Promise<WasmPlan> {
  const builder = createGraphBuilder("rows", getOp);
  const L = symbol("L", { max: 2 });
  const tokens = builder.input("tokens", [L], "i32");
  const width = table[0]!.length;
  const data = new Float32Array(table.length * width);
  table.forEach((row, i) => data.set(row, i * width));
  const rows = builder.constant("rows", data, [table.length, width]);
  const [logits] = builder.op("gather", [rows, tokens], { axis: 0 }, "gather");
  builder.output("logits", logits!);
  const made = plan(builder.build(), { limits: { L: 2 } });
  return await createWasmBackend(options).prepare(made, { slots: 1, ranked: RANKED });
}

/** As a sampler orders them: equal logits by lower id, zeros of both signs equal; a NaN first. */
function sorted(row: Float32Array): [id: number, logit: number][] {
  const rank = (logit: number) => Number.isNaN(logit) ? 1 : 0;
  return [...row.entries()].sort(([i, a], [j, b]) =>
    rank(b) - rank(a) || (b > a ? 1 : b < a ? -1 : i - j)
  );
}

/** Rows of a length with what is hard: many equals, rising, none but -Infinity, infinities and NaN in their places. */
function hardRows(length: number): Float32Array[] {
  const random = createRandom(length);
  const ties = () =>
    Float32Array.from({ length }, () => Math.round(40 * nextDouble(random) - 30) / 4);
  const rising = Float32Array.from({ length }, (_, i) => i / 8);
  const none = new Float32Array(length).fill(-Infinity);
  const few = none.slice();
  few.set([7, -0, 0].slice(0, length), Math.max(0, length - 3));
  const odd = ties();
  for (const [i, value] of [NaN, Infinity, -Infinity, NaN, 0, -0, Infinity].entries()) {
    odd[Math.floor(nextDouble(random) * length * (i + 1) / 7)] = value;
  }
  new Uint32Array(odd.buffer)[length >> 1] = 0xffc00001; // a NaN with a sign
  const allNaN = new Float32Array(length).fill(NaN);
  return [ties(), rising, rising.toReversed(), none, few, odd, allNaN];
}

const LENGTHS = [1, 3, 50, 64, 65, 2047, 8191, 8192, 8193, 8209, 60_001, 131_072];

for (const variant of ["baseline", "relaxed"] as const) {
  for (const threads of [1, 2]) {
    Deno.test(`${variant}, ${threads} threads: the best logits are those of a whole sort`, async () => {
      for (const length of LENGTHS) {
        const rows = hardRows(length);
        const executable = await rowsOf(rows, { variant, threads });
        for (const [token, row] of rows.entries()) {
          executable.input("tokens")[0] = token;
          const expected = sorted(row);
          for (const wanted of [1, 7, 64]) {
            executable.run({ L: 1 }, wishFor(wanted));
            const { ids, logits, count } = executable.best!(0)!;
            assertEquals(count, Math.min(wanted, length));
            assertEquals(
              Array.from({ length: count }, (_, i) => [ids[i]!, logits[i]!]),
              expected.slice(0, count),
              `${wanted} of row ${token} of ${length}`,
            );
          }
        }
        executable.dispose();
      }
    });
  }
}

Deno.test("a row can be read until the next run, which leaves nothing of it", async () => {
  const executable = await rowsOf(
    [Float32Array.of(1, 3, 2), Float32Array.of(5, 3, 2)],
    { threads: 1 },
  );
  const row = () => [...executable.output("logits").subarray(0, 3)];
  executable.run({ L: 1 }, wishFor(1));
  assertEquals(executable.best!(0)?.ids[0], 1);
  assertEquals(row(), [1, 3, 2]);
  executable.input("tokens")[0] = 1;
  executable.run({ L: 1 });
  assertEquals(executable.best!(0), undefined);
  assertEquals(row(), [5, 3, 2]);
  executable.dispose();
});

Deno.test("every row of a run gives as many of its best as it was asked for", async () => {
  const table = hardRows(2047).slice(0, 2);
  const executable = await rowsOf(table, { threads: 2 });
  executable.input("tokens").set([1, 0] as never);
  for (const wanted of [[1, 40], [64, 0], [0, 3], [65, 7]]) {
    executable.run({ L: 2 }, { best: Int32Array.from(wanted), repeats: 0 });
    for (const [row, count] of wanted.entries()) {
      const found = executable.best!(row);
      const isFound = count > 0 && count <= 64;
      const expected = sorted(table[1 - row]!).slice(0, isFound ? count : 0);
      assertEquals(found?.count ?? 0, expected.length);
      assertEquals(expected.map((_, i) => [found!.ids[i]!, found!.logits[i]!]), expected);
    }
  }
  executable.run({ L: 1 }, wishFor(1));
  assertEquals(executable.best!(1), undefined);
  executable.dispose();
});

Deno.test("more than 64, and rows in a shared arena, are left to the host", async () => {
  const table = [new Float32Array(100), new Float32Array(100)];
  const arena = createWasmArena(4096, { threads: 1 });
  const own = await rowsOf(table, { threads: 1 });
  const shared = await rowsOf(table, { threads: 1, arena });
  own.run({ L: 1 }, wishFor(65));
  assertEquals(own.best!(0), undefined);
  own.run({ L: 1 }, wishFor(64));
  assertEquals(own.best!(0)!.count, 64);
  shared.run({ L: 1 }, wishFor(1));
  assertEquals(shared.best!(0), undefined);
  own.dispose();
  shared.dispose();
  arena.dispose();
});

Deno.test("whatever of the logits is wished for, a decoder's steps give the same", async () => {
  const made = plan(toyDecoder(), { limits: TOY_LIMITS });
  const runs: number[][][] = [];
  for (const wanted of [undefined, 1, 7, 64]) {
    const executable = await createWasmBackend({ threads: 2 }).prepare(made, {
      slots: 1,
      ranked: RANKED,
    });
    const slot = executable.openSlot();
    let token = 3;
    const rows: number[][] = [];
    for (let position = 0; position < TOY.capacity; position++) {
      for (const [name, value] of Object.entries({ tokens: token, positions: position })) {
        executable.input(name)[0] = value;
      }
      executable.input("slots")[0] = slot;
      executable.input("logit_rows")[0] = 0;
      executable.run({ M: 1, L: 1 }, wanted === undefined ? undefined : wishFor(wanted));
      const row = executable.output("logits").subarray(0, TOY.vocabulary) as Float32Array;
      token = sorted(row)[0]![0];
      const best = executable.best!(0);
      assertEquals(best?.ids[0], wanted && token);
      rows.push([...row]);
    }
    runs.push(rows);
    executable.dispose();
  }
  for (const rows of runs) assertEquals(rows, runs[0]);
});
