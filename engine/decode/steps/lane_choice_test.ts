import { assertEquals } from "@std/assert";
import { LaneChoice, WORTH_ROWS } from "./lane_choice.ts";

/** The slots that each lane takes in the last of some rounds in which so many ask. */
function lanesOf(slots: number, { least, most }: { least: number; most: number }): number[] {
  const choice = new LaneChoice({ least, most });
  const counts = new Array<number>(most).fill(0);
  for (let round = 0; round < 3; round++) {
    counts.fill(0);
    for (let slot = 0; slot < slots; slot++) counts[choice.laneOf(slot)]!++;
  }
  return counts;
}

Deno.test("more lanes than groups are taken where each has rows enough", () => {
  const sizes = { least: 2, most: 3 };
  assertEquals(lanesOf(1, sizes), [1, 0, 0]);
  assertEquals(lanesOf(3, sizes), [2, 1, 0]);
  assertEquals(lanesOf(2 * WORTH_ROWS, sizes), [8, 8, 0]);
  assertEquals(lanesOf(3 * WORTH_ROWS - 1, sizes), [12, 11, 0]);
  assertEquals(lanesOf(3 * WORTH_ROWS, sizes), [8, 8, 8]);
  assertEquals(lanesOf(4 * WORTH_ROWS, sizes), [11, 11, 10]);
  assertEquals(lanesOf(4, { least: 4, most: 4 }), [1, 1, 1, 1]);
});

Deno.test("slots that have ended count no more after some rounds", () => {
  const choice = new LaneChoice({ least: 1, most: 2 });
  for (let round = 0; round < 2; round++) {
    for (let slot = 0; slot < 2 * WORTH_ROWS; slot++) choice.laneOf(slot);
  }
  assertEquals(choice.laneOf(1), 1);
  for (let round = 0; round < 6; round++) choice.laneOf(1);
  assertEquals(choice.laneOf(1), 0);
});
