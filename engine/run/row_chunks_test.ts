import { assertEquals } from "@std/assert";
import { chunkStarts, LEAST_ROWS, stepRows } from "./row_chunks.ts";
import { addRows, createStep, type Step } from "./step.ts";

/** A step of so many rows, of the last of which something is wanted. */
function stepOf(rows: number, wantedRows = 1): Step {
  const step = createStep(1024, 1);
  const tokens = Array.from({ length: rows }, (_, i) => i);
  addRows(step, { tokens, position: 7, slot: 3, scales: [0.5], wanted: 1, wantedRows });
  return step;
}

Deno.test("a step is cut evenly before the rows that want something, into chunks that are worth it", () => {
  const cases: readonly (readonly [rows: number, wanted: number, most: number, number[]])[] = [
    [512, 1, 8, [0, 64, 128, 192, 256, 320, 384, 448]],
    [512, 1, 2, [0, 256]],
    [200, 1, 8, [0, 67, 134]],
    [1024, 300, 4, [0, 256, 512]],
    [512, 512, 8, [0]],
    [2 * LEAST_ROWS - 1, 1, 8, [0]],
    [2 * LEAST_ROWS, 0, 8, [0, LEAST_ROWS]],
    [1, 1, 8, [0]],
    [512, 1, 1, [0]],
  ];
  for (const [rows, wanted, most, expected] of cases) {
    assertEquals(chunkStarts(stepOf(rows, wanted), most), expected, `${rows} rows`);
  }
});

Deno.test("rows of a step are a step", () => {
  const part = stepRows({ ...stepOf(100), feedback: 2 }, { from: 40 });
  assertEquals([part.count, part.feedback, part.slots[0], part.scales[0]![0]], [60, 0, 3, 0.5]);
  assertEquals([...part.tokens.subarray(0, 2)], [40, 41]);
  assertEquals([...part.positions.subarray(0, 2)], [47, 48]);
  assertEquals([...part.wanted.subarray(58)], [0, 1]);
});
