// Samplers within what is allowed, beside the definition: the same sampler on logits of which all others are -Infinity.

import { assertEquals } from "@std/assert";
import type { Constraint } from "../text/grammar/constraint.ts";
import { constrainSampler } from "./constrained_sampler.ts";
import { createRandom, nextDouble } from "./sampling/random.ts";
import { createSampler } from "./sampling/sampler.ts";
import type { SamplerOptions } from "./sampling/sampler_options.ts";

const VOCABULARY = 300;
const OPTIONS: readonly SamplerOptions[] = [
  {},
  { topK: 1, temperature: 1 },
  { topK: 8, temperature: 0.7, topP: 0.9 },
  { topK: 40, temperature: 1.5, minP: 0.05 },
  { topK: 64, temperature: 1, mirostat: 1 },
  { temperature: 1 },
  { temperature: 1, topP: 0.5, repeatPenalty: 1.3 },
  { topK: 20, temperature: 1, typicalP: 0.8 },
];

/** Allows the tokens of the masks, one a token taken. */
function constraintOf(masks: readonly Uint32Array[]): Constraint {
  let length = 0;
  return {
    get length() {
      return length;
    },
    canEnd: false,
    isComplete: false,
    mask: () => masks[length]!,
    allows: (id) => (masks[length]![id >> 5]! >> (id & 31) & 1) === 1,
    accept: () => void length++,
    rollback: (count) => void (length -= count),
  };
}

function bestOf(logits: Float32Array, count: number) {
  const ids = Int32Array.from(logits.keys()).sort((a, b) => logits[b]! - logits[a]! || a - b);
  const best = ids.subarray(0, count);
  return { ids: best, logits: Float32Array.from(best, (id) => logits[id]!), count };
}

/** Rows of logits, some equal, some -Infinity, and masks that allow few tokens, half of them or nearly all. */
function stepsOf(seed: number) {
  const random = createRandom(seed);
  return Array.from({ length: 60 }, (_, step) => {
    const share = [0.004, 0.03, 0.5, 0.98][step % 4]!;
    const logits = Float32Array.from({ length: VOCABULARY }, () => {
      const draw = nextDouble(random);
      return draw < 0.1 ? -Infinity : Math.round(20 * nextDouble(random)) / 2;
    });
    const mask = new Uint32Array(VOCABULARY + 31 >> 5);
    const allow = (id: number) => mask[id >> 5]! |= 1 << (id & 31);
    for (let id = 0; id < VOCABULARY; id++) if (nextDouble(random) < share) allow(id);
    const last = logits.findIndex((logit) => logit > -Infinity);
    allow(last);
    return { logits, mask };
  });
}

for (const options of OPTIONS) {
  Deno.test(`what is allowed is drawn as if nothing else were there: ${JSON.stringify(options)}`, () => {
    const steps = stepsOf(7), model = { vocabSize: VOCABULARY };
    const masks = steps.map(({ mask }) => mask);
    const plain = createSampler({ ...options, seed: 3 }, model);
    const [whole, narrow] = [0, 1].map(() =>
      constrainSampler(createSampler({ ...options, seed: 3 }, model), constraintOf(masks))
    );
    const tokens: number[] = [1];
    let settled = 0;
    for (const { logits, mask } of steps) {
      const history = { tokens, length: tokens.length, promptLength: 1 };
      const masked = logits.map((logit, id) => mask[id >> 5]! >> (id & 31) & 1 ? logit : -Infinity);
      const expected = plain.sample(masked, history);
      assertEquals(whole!.sample(logits, history), expected);
      const count = Math.min(narrow!.bestNeeded, VOCABULARY);
      const settling = narrow!.sampleBest(bestOf(logits, count), history);
      settled += +(settling !== undefined);
      assertEquals(settling ?? narrow!.sample(logits, history), expected);
      tokens.push(expected);
    }
    assertEquals(settled > 0, narrow!.bestNeeded < Infinity);
  });
}

Deno.test("the best of what is allowed is asked for by mask, but for a while behind masks that were searched for", () => {
  const all = Uint32Array.of(7);
  const constraint = { ...constraintOf([all]), isSearched: false };
  const bound = constrainSampler(
    createSampler({ temperature: 0, seed: 1 }, { vocabSize: VOCABULARY }),
    constraint,
  );
  const asked = (times: number) =>
    Array.from({ length: times }, () => bound.allowed() !== undefined);
  assertEquals(asked(40), Array.from({ length: 40 }, () => true));
  constraint.isSearched = true;
  assertEquals(asked(3 + 32 + 1), [
    ...[true, true, true],
    ...Array.from({ length: 32 }, () => false),
    true,
  ]);
});
