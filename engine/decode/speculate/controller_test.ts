// The choice of how many tokens to check, over a clock that is counted: what steps cost is a function of their rows, and
// whether proposals are right is drawn with fixed chances.

import { assert, assertAlmostEquals, assertEquals, assertGreater } from "@std/assert";
import { expectedTokens } from "../../../tests/support/expected_tokens.ts";
import { createRandom, nextDouble } from "../sampling/random.ts";
import { createController } from "./controller.ts";
import { MATCH_PRIORS } from "./proposer.ts";
import { measuredCosts } from "./step_costs.ts";

type Cost = (rows: number) => number;

const COSTS: Readonly<Record<string, Cost>> = {
  flat: (rows) => 10 + 0.5 * (rows - 1),
  "of two slopes": (rows) => rows <= 4 ? 10 + 1.3 * (rows - 1) : 14 + 3 * (rows - 4),
  "of a row each": (rows) => 10 * rows,
  "with a better kernel from nine rows on": (rows) =>
    rows <= 8 ? 20 + 12 * (rows - 1) : 60 + 2.5 * (rows - 8),
};

interface Text {
  /** Part of the places at which something is proposed. */
  readonly share: number;
  readonly level: number;
  /** Chance that a proposal is right. */
  readonly chance: number;
  readonly draftMs?: number;
}

const MOST = 15;

/** Speed against plain decoding of so many tokens. */
function speed(cost: Cost, { share, level, chance, draftMs = 0 }: Text, tokens: number): number {
  const random = createRandom(9), costs = measuredCosts(MOST + 1);
  const controller = createController({
    ...{ costs, priors: MATCH_PRIORS, most: MOST, isSeen: false },
    draftMs: () => draftMs,
  });
  let ms = 0, taken = 0;
  while (taken < tokens) {
    const isProposed = nextDouble(random) < share;
    const proposed = isProposed ? controller.choose(level, MOST) : 0;
    const step = cost(proposed + 1);
    costs.note(proposed + 1, step);
    ms += step + proposed * draftMs;
    let accepted = 0;
    while (accepted < proposed && nextDouble(random) < chance) accepted++;
    if (proposed === 0) controller.notePlain();
    else controller.note({ level, proposed, accepted, isRefused: accepted < proposed });
    taken += accepted + 1;
  }
  return taken * cost(1) / ms;
}

/** Of the best number of proposals, known beforehand. */
function bestSpeed(cost: Cost, { chance, draftMs = 0 }: Text): number {
  const speeds = Array.from(
    { length: MOST + 1 },
    (_, k) => expectedTokens(chance, k) * cost(1) / (cost(k + 1) + k * draftMs),
  );
  return Math.max(...speeds);
}

for (const [name, cost] of Object.entries(COSTS)) {
  Deno.test(`where proposals pay, their number is nearly the best: costs ${name}`, () => {
    for (const [level, chance] of [[5, 0.97], [3, 0.8], [2, 0.5]] as const) {
      const text = { share: 1, level, chance }, best = bestSpeed(cost, text);
      const reached = speed(cost, text, 3000);
      if (best > 1.5) assertGreater(reached, 0.9 * best, `chance ${chance}`);
      assertGreater(reached, 0.98, `chance ${chance}`);
    }
  });

  Deno.test(`where they do not, hardly anything is lost: costs ${name}`, () => {
    for (const share of [0.1, 0.5, 1]) {
      for (const level of [0, 1, 2]) {
        for (const chance of [0, 0.02, 0.1]) {
          const text = { share, level, chance };
          assertGreater(speed(cost, text, 1000), 0.98, JSON.stringify(text));
        }
      }
    }
  });
}

Deno.test("a draft that costs as much as a step is not asked for", () => {
  const text = { share: 1, level: 3, chance: 0.9, draftMs: 10 };
  assertGreater(speed(COSTS.flat!, text, 2000), 0.98);
});

Deno.test("what did not pay is tried again, and found out when it begins to", () => {
  const costs = measuredCosts(MOST + 1);
  const controller = createController({
    ...{ costs, priors: MATCH_PRIORS, most: MOST, isSeen: false },
    draftMs: () => 0,
  });
  const cost = COSTS.flat!;
  let checked = 0;
  for (let step = 0; step < 3000; step++) {
    const proposed = controller.choose(2, MOST), isRight = step > 1000;
    costs.note(proposed + 1, cost(proposed + 1));
    if (proposed === 0) controller.notePlain();
    else {
      const accepted = isRight ? proposed : 0;
      controller.note({ level: 2, proposed, accepted, isRefused: !isRight });
      if (step > 2000) checked++;
    }
  }
  assertGreater(checked, 900);
});

Deno.test("nothing is checked before a plain step is measured, and twice as many rows at most are tried", () => {
  const costs = measuredCosts(MOST + 1);
  const controller = createController({
    ...{ costs, priors: MATCH_PRIORS, most: MOST, isSeen: false },
    draftMs: () => 0,
  });
  assertEquals(controller.choose(5, MOST), 0);
  costs.note(1, 10);
  assertEquals(controller.choose(5, MOST), 1);
  costs.note(2, 10.5);
  assert(controller.choose(5, MOST) <= 3);
  assertEquals(controller.choose(5, 1), 1);
  assertEquals(controller.choose(-1, MOST), 0);
});

Deno.test("costs lie between what was measured, and one interruption changes little", () => {
  const costs = measuredCosts(9);
  assertEquals(costs.of(1), NaN);
  costs.note(1, 10);
  costs.note(5, 18);
  assertAlmostEquals(costs.of(3), 14, 0.1);
  assertAlmostEquals(costs.of(9), 22, 0.1);
  costs.note(1, 10_000);
  assert(costs.of(1) < 14);
  const first = measuredCosts(9);
  first.note(1, 10);
  first.note(4, 10_000);
  assert(first.of(4) < 49);
});

Deno.test("what rows cost goes with the pace of the moment, and is bounded where nothing like it was measured", () => {
  const costs = measuredCosts(9);
  costs.note(1, 10);
  costs.note(4, 20);
  for (let i = 0; i < 30; i++) costs.note(1, 30);
  assertAlmostEquals(costs.of(4), 60, 5);
  assertEquals(costs.atMost(5), costs.of(4) + costs.of(1));
  // A prompt's row costs a tenth: one of few is guessed to cost as much, and three times as much at most.
  const prompt = measuredCosts(9);
  prompt.notePrompt(100, 100);
  prompt.note(1, 10);
  assertAlmostEquals(prompt.of(5), 14, 1e-6);
  assertAlmostEquals(prompt.atMost(5), 22, 1e-6);
});
