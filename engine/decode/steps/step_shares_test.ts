import { assert, assertEquals } from "@std/assert";
import { createRandom, nextDouble } from "../sampling/random.ts";
import { type Asking, PATIENCE, shareStep, SHORT } from "./step_shares.ts";

function asking(rows: number, given: Partial<Asking> = {}): Asking {
  return { rows, wanted: 1, priority: 0, waited: 0, taken: 0, ...given };
}

function shares(all: readonly Asking[], rows: number, wanted = 64): number[] {
  shareStep(all, { rows, wanted });
  return all.map(({ taken }) => taken);
}

Deno.test("answers go on first, and one prompt gets what they leave", () => {
  assertEquals(shares([asking(2000), asking(1), asking(5), asking(1)], 256), [249, 1, 5, 1]);
});

Deno.test("a short prompt beside a long one is read in the step that finds it", () => {
  assertEquals(shares([asking(1744), asking(10)], 256), [246, 10]);
  assertEquals(shares([asking(1744), asking(100)], 256), [156, 100]);
  assertEquals(shares([asking(2000), asking(2000), asking(30)], 256), [113, 113, 30]);
});

Deno.test("a level of priority doubles the share of a long prompt", () => {
  const all = [asking(2000, { priority: 1 }), asking(2000), asking(2000, { priority: -1 })];
  assertEquals(shares(all, 140), [80, 40, 20]);
});

Deno.test("no more rows are wanted than can have logits, and the others come in the next step", () => {
  const all = [asking(1), asking(1), asking(40), asking(3, { wanted: 3 })];
  assertEquals(shares(all, 256, 2), [1, 1, 39, 0]);
  assertEquals(shares([asking(3, { wanted: 3 })], 256, 2), [2]);
  assertEquals(shares([asking(40, { wanted: 40 })], 256, 8), [8]);
});

Deno.test("random queries: steps are filled, and nobody waits longer than is promised", () => {
  const random = createRandom(7);
  const below = (limit: number) => Math.floor(nextDouble(random) * limit);
  for (let round = 0; round < 60; round++) {
    const room = { rows: 4 + below(60), wanted: 2 + below(8) };
    const arrivals = Array.from({ length: 1 + below(40) }, () => {
      const rows = below(2) ? 1 + below(300) : 1;
      return asking(rows, {
        wanted: Math.min(rows, 1 + (below(4) ? 0 : below(6))),
        priority: below(5) - 2,
      });
    }).sort((a, b) => b.priority - a.priority);
    let waiting = arrivals;
    // Every waiting run takes at most SHORT rows, and logits for them, of the steps before one that waits.
    const most = PATIENCE + arrivals.length * Math.ceil(SHORT / Math.min(room.rows, room.wanted));
    while (waiting.length > 0) {
      shareStep(waiting, room);
      const taken = waiting.reduce((sum, one) => sum + one.taken, 0);
      assert(taken > 0 && taken <= room.rows, `${taken} of ${room.rows} rows`);
      const wantedOf = ({ taken, rows, wanted }: Asking) => Math.max(0, taken - (rows - wanted));
      const logits = waiting.reduce((sum, one) => sum + wantedOf(one), 0);
      assert(logits <= room.wanted, `${logits} of ${room.wanted} logits`);
      const isLeft = waiting.some((one) => one.taken < one.rows - one.wanted);
      assert(taken === room.rows || !isLeft, "rows are left though somebody asked for them");
      for (const one of waiting) {
        assert(one.waited <= most, `waited ${one.waited} of ${most} steps`);
      }
      waiting = waiting.map((one) => {
        const wanted = Math.min(one.wanted, one.rows - one.taken);
        return { ...one, rows: one.rows - one.taken, wanted };
      }).filter(({ rows }) => rows > 0);
    }
  }
});

Deno.test("a prompt is read beside any number of answers: it waits PATIENCE steps at most", () => {
  const answers = Array.from({ length: 8 }, () => asking(1, { priority: 2 }));
  const prompt = asking(2000, { priority: -2 });
  const taken = Array.from({ length: 2 * PATIENCE + 2 }, () => {
    shareStep([...answers, prompt], { rows: 8, wanted: 8 });
    return prompt.taken;
  });
  assertEquals(taken.map((rows) => rows > 0), [
    ...[false, false, false, false, true],
    ...[false, false, false, false, true],
  ]);
});
