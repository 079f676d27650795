// Rows of a step that pictures become: the numbers of each patch, whether pairs of them can be moved at once or not.

import { assertEquals } from "@std/assert";
import { createStep, type Step } from "../../run/step.ts";
import type { StepRunner } from "../step_queue.ts";
import { type RowGrid, rowTower, type TowerFacts } from "./tower.ts";

const FACTS: TowerFacts = {
  ...{ name: "tower", processor: undefined, labels: [], isMultiLabel: false },
  pixels: [3, undefined, undefined],
  hasVectors: false,
};
const CHANNELS = 3, LEADING = 2;

/** How pictures of a size become rows. */
function gridOf(
  { width, height, patch }: {
    readonly width: number;
    readonly height: number;
    readonly patch: number;
  },
): RowGrid {
  const [columns, rows] = [width, height].map((side) => Math.floor(side / patch));
  return {
    ...{ rows: rows!, columns: columns!, leading: LEADING, channels: CHANNELS },
    patch: { width: patch, height: patch },
  };
}

/** What two pictures leave in a step that held other numbers before; `offset` numbers stand before their first. */
async function patchesOf(
  size: { readonly width: number; readonly height: number },
  { patch, offset }: { readonly patch: number; readonly offset: number },
): Promise<{ readonly step: Step; readonly data: Float32Array }> {
  const grid = gridOf({ ...size, patch }), { columns, rows } = grid;
  const numbers = CHANNELS * patch ** 2, count = 2 * CHANNELS * size.width * size.height;
  const data = Float32Array.from({ length: offset + count }, (_, i) => i).subarray(offset);
  const step = createStep(2 * (LEADING + rows * columns), 0, {
    patches: new Float32Array(2 * (LEADING + rows * columns) * numbers),
  });
  step.patches.fill(-1);
  const queue = { run: ({ write }) => Promise.resolve(write(step)) } as StepRunner;
  const tower = rowTower(FACTS, { queue, grid, pictures: 2 });
  const dims = [2, CHANNELS, size.height, size.width] as const;
  await tower.encode({ data, dims }, { read() {} });
  return { step, data };
}

for (
  const [width, height, patch, offset] of [
    [12, 8, 4, 0],
    [12, 8, 4, 1],
    [13, 9, 4, 0],
    [12, 6, 3, 0],
    [14, 14, 14, 2],
  ] as const
) {
  const name = `patches of ${patch} in ${width} × ${height} pixels, ${offset} numbers on`;
  Deno.test(`${name}, are channels by rows, and learnt rows zeros`, async () => {
    const { step, data } = await patchesOf({ width, height }, { patch, offset });
    const columns = Math.floor(width / patch), rows = Math.floor(height / patch);
    const expected: number[] = [];
    for (let picture = 0; picture < 2; picture++) {
      expected.push(...Array<number>(LEADING * CHANNELS * patch ** 2).fill(0));
      for (let place = 0; place < rows * columns; place++) {
        for (let channel = 0; channel < CHANNELS; channel++) {
          for (let i = 0; i < patch ** 2; i++) {
            const y = Math.floor(place / columns) * patch + Math.floor(i / patch);
            const x = place % columns * patch + i % patch;
            expected.push(data[((picture * CHANNELS + channel) * height + y) * width + x]!);
          }
        }
      }
    }
    assertEquals([...step.patches], expected);
    assertEquals(step.count, 2 * (LEADING + rows * columns));
  });
}

Deno.test("what is asked for in the turn of a picture is handed over before it, since pixels are long in coming", async () => {
  const order: string[] = [];
  const queue = { run: () => Promise.resolve(order.push("picture")) } as unknown as StepRunner;
  const size = { width: 4, height: 4 }, grid = gridOf({ ...size, patch: 4 });
  const tower = rowTower(FACTS, { queue, grid, pictures: 1 });
  const data = new Float32Array(CHANNELS * 16);
  const done = tower.encode({ data, dims: [1, CHANNELS, 4, 4] }, { read() {} });
  order.push("text");
  await done;
  assertEquals(order, ["text", "picture"]);
});
