// Runs in pieces with a clock of their own: what is cut, and when events get a turn.

import { assertEquals, assertRejects } from "@std/assert";
import { withClock } from "../../tests/support/clock.ts";
import { createPieces } from "./pieces.ts";

/** Work whose items take so long; ranges that were run are noted. */
function workOf(times: readonly number[], clock: { now: number }) {
  const ranges: string[] = [];
  const run = (
    _: unknown,
    { first, count }: { readonly first: number; readonly count: number },
  ) => {
    ranges.push(`${first}+${count}`);
    for (const ms of times.slice(first, first + count)) clock.now += ms;
  };
  const take = () => ranges.splice(0).join(" ");
  return { work: { count: times.length, run }, take };
}

Deno.test("a short run that may be stopped is one piece, once its time is known, at smaller sizes too", () =>
  withClock(async (clock) => {
    const { work, take } = workOf([1, 2, 3], clock);
    const run = createPieces(work), { signal } = new AbortController();
    await run({ M: 4 }, signal);
    assertEquals(take(), "0+1 1+1 2+1", "nothing is known: one by one");
    for (const M of [4, 2, 1]) {
      clock.now += 1000;
      assertEquals(run({ M }, signal), undefined, "nobody waits");
      assertEquals(take(), "0+3");
    }
    clock.now += 1000;
    await run({ M: 5 }, signal);
    assertEquals(take(), "0+1 1+1 2+1", "larger ones are not known");
    assertEquals(clock.turns, 0);
  }));

Deno.test("a long run lets events through all 50 ms, and ends there when it is to", () =>
  withClock(async (clock) => {
    const { work, take } = workOf([10, 20, 30, 40, 60, 10, 10], clock);
    const run = createPieces(work), stop = new AbortController();
    await run({}, stop.signal);
    assertEquals(take(), "0+1 1+1 2+1 3+1 4+1 5+1 6+1");
    assertEquals(clock.turns, 4, "behind 30, 30, 40 and 60 ms");
    await run({}, stop.signal);
    assertEquals(take(), "0+2 2+1 3+1 4+1 5+2");
    assertEquals(clock.turns, 8);
    clock.onTurn = () => clock.turns === 10 && stop.abort(new Error("enough"));
    clock.now += 1000;
    await assertRejects(async () => await run({}, stop.signal), Error, "enough");
    assertEquals(take(), "0+2 2+1");
    clock.now += 1000;
    await run({}, new AbortController().signal);
    assertEquals(take(), "0+2 2+1 3+1 4+1 5+2", "the next one is whole");
  }));

Deno.test("short runs behind each other hear the signal, too", () =>
  withClock(async (clock) => {
    const { work } = workOf([4], clock), run = createPieces(work), stop = new AbortController();
    clock.onTurn = () => stop.abort(new Error("enough"));
    let runs = 0;
    clock.now += 1000;
    await assertRejects(
      async () => {
        for (; runs < 100; runs++) await run({}, stop.signal);
      },
      Error,
      "enough",
    );
    assertEquals(runs, 7, "25 ms and what began before");
  }));

Deno.test("with a bound of its own there is a turn between any two pieces", () =>
  withClock(async (clock) => {
    const { work, take } = workOf([1, 1, 1, 9], clock), run = createPieces(work, 4);
    await run({});
    await run({});
    assertEquals([take(), clock.turns], ["0+1 1+1 2+1 3+1 0+3 3+1", 4]);
  }));
