// What speculation gains and loses on answers that models gave, over a clock that is counted: a step takes what steps of
// so many rows were measured to take, so a busy machine changes nothing. Answers that copy are held against the most
// that checking can give, answers that do not against plain decoding.

import { assert, assertGreater } from "@std/assert";
import { fixturePath } from "../../../tests/support/fixtures.ts";
import { createRandom, nextDouble } from "../sampling/random.ts";
import { createController } from "./controller.ts";
import { createLookup } from "./lookup.ts";
import { measuredCosts, type StepCosts } from "./step_costs.ts";
import { createUnchecked } from "./unchecked.ts";

const MOST = 15;

/** Steps of 1 to 16 rows in steps of one, and a prompt's row in them. */
interface Machine {
  readonly rows: readonly number[];
  readonly promptRow: number;
}

const MACHINES: Readonly<Record<string, Machine>> = {
  // AMD EPYC with AVX2, two threads, tenth percentiles of 95 and 27 steps.
  "SmolLM2 135M Q4_1 on a CPU": {
    rows: [5.7, 10.29, 13.27, 15.17, 18.41, 20.42, 23.23, 25.31]
      .concat([28.76, 31.06, 33.5, 34.75, 37.3, 39.39, 41.49, 43.31]).map((ms) => ms / 5.7),
    promptRow: 0.3,
  },
  "Gemma 3 270M Q4_K_M on a CPU": {
    rows: [12.6, 23.47, 30.24, 34.64, 41.89, 46.09, 52.17, 55.54]
      .concat([68.9, 72.33, 78.96, 81.35, 88.82, 92.53, 95.71, 101.24]).map((ms) => ms / 12.6),
    promptRow: 0.25,
  },
  // As a GPU is, which a model's weights keep busy and not its rows.
  "a device on which rows are nearly free": {
    rows: Array.from({ length: 16 }, (_, i) => 1 + 0.05 * i),
    promptRow: 0.02,
  },
};

interface Answers {
  readonly copyPrompt: readonly number[];
  readonly copying: readonly number[];
  readonly prompt: readonly number[];
  readonly others: readonly (readonly number[])[];
}

const { about: _, ...models } = JSON.parse(
  Deno.readTextFileSync(fixturePath("decoding/answers.json")),
) as Record<string, Answers> & { readonly about: unknown };

/** Costs of a machine of which a prompt was measured. */
function costsOf({ promptRow }: Machine): StepCosts {
  const costs = measuredCosts(MOST + 1);
  costs.notePrompt(32, 32 * promptRow);
  return costs;
}

/** Speed along an answer, against plain decoding; `load`: how many times as long each step is measured to take. */
function speed(
  { rows }: Machine,
  { prompt, answer, costs, load = () => 1 }: {
    readonly prompt: readonly number[];
    readonly answer: readonly number[];
    readonly costs: StepCosts;
    readonly load?: () => number;
  },
): number {
  const lookup = createLookup();
  const controller = createController({
    ...{ costs, priors: lookup.priors, most: MOST, isSeen: true },
    draftMs: () => 0,
  });
  const unchecked = createUnchecked(lookup, controller);
  const text = [...prompt, answer[0]!];
  let ms = 0, at = 1;
  while (at < answer.length) {
    const room = Math.min(MOST, answer.length - at - 1);
    const level = lookup.level(text);
    let proposed = room > 0 ? controller.choose(level, room) : 0, accepted = 0;
    if (proposed > 0) {
      const { tokens, count } = lookup.propose(text, proposed);
      proposed = count;
      while (accepted < count && tokens[accepted] === answer[at + accepted]) accepted++;
    } else unchecked.watch(text, level);
    ms += rows[proposed]!;
    costs.note(proposed + 1, rows[proposed]! * load());
    if (proposed === 0) controller.notePlain();
    else controller.note({ level, proposed, accepted, isRefused: accepted < proposed });
    for (const end = at + accepted + 1; at < end; at++) {
      unchecked.take(answer[at]!);
      text.push(answer[at]!);
    }
  }
  return (answer.length - 1) / ms;
}

for (const [name, machine] of Object.entries(MACHINES)) {
  const best = Math.max(...machine.rows.map((cost, i) => (i + 1) / cost));

  Deno.test(`an answer that copies has 0.8 of what checking can give, from the first on: ${name}`, () => {
    for (const { copyPrompt: prompt, copying: answer } of Object.values(models)) {
      const costs = costsOf(machine);
      for (let time = 0; time < 3; time++) {
        assertGreater(speed(machine, { prompt, answer, costs }), 0.8 * best);
      }
    }
  });

  Deno.test(`an answer that does not loses less than 2 %, short or long: ${name}`, () => {
    for (const { prompt, others } of Object.values(models)) {
      for (const length of [65, 257]) {
        for (const other of others) {
          const answer = other.slice(0, length);
          // With costs that nobody has measured yet, and in an answer after it.
          const costs = costsOf(machine);
          for (let time = 0; time < 2; time++) {
            assertGreater(speed(machine, { prompt, answer, costs }), 0.98);
          }
        }
      }
    }
  });

  Deno.test(`where other programs take their turns, most is gained and little lost: ${name}`, () => {
    const random = createRandom(5);
    let times = 1;
    const load = () => {
      if (nextDouble(random) < 0.1) times = 1 + 2 * nextDouble(random);
      return times * (1 + 0.3 * nextDouble(random));
    };
    const copies: number[] = [], others: number[] = [];
    for (const given of Object.values(models)) {
      const costs = costsOf(machine), { copyPrompt, copying, prompt } = given;
      for (let time = 0; time < 10; time++) {
        copies.push(speed(machine, { prompt: copyPrompt, answer: copying, costs, load }) / best);
      }
      for (const answer of given.others) {
        others.push(speed(machine, { prompt, answer, costs, load }));
      }
    }
    const mean = (all: readonly number[]) => all.reduce((sum, one) => sum + one) / all.length;
    assertGreater(mean(copies), 0.75);
    assert(mean(others) > 0.98 && Math.min(...others) > 0.96, `${others}`);
  });
}
