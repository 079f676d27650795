import { assertEquals } from "@std/assert";
import { StoppableSteps } from "./stoppable_steps.ts";

Deno.test("steps that might be stopped have as many rows as 60 ms have, in tiles, 32 at least", () => {
  const room = { rows: 256, wanted: 4 };
  const steps = new StoppableSteps(room);
  assertEquals(steps.room, { rows: 32, wanted: 4 });
  const cases: [rows: number, ms: number, next: number][] = [
    [64, 64, 48],
    [48, 24, 112],
    [112, 2, 256],
    [4, 400, 256], // the few rows of an answer say nothing of a prompt's
    [256, 25_600, 32],
  ];
  for (const [rows, ms, next] of cases) {
    steps.ran(rows, ms);
    assertEquals(steps.room.rows, next);
  }
  assertEquals(new StoppableSteps({ rows: 8, wanted: 1 }).room.rows, 8);
});
