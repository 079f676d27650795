// Locally typical sampling (Meister et al. 2022): orders tokens by how far their surprise is from the
// entropy, equals by lower id, and keeps the smallest set whose probabilities sum to at least p. The
// token that crosses p is in the set, and the best token need not be.

import { type Candidates, entropy, totalMass } from "../candidates.ts";
import { expNegative } from "../exp.ts";
import { defineStep, type SamplingStep, share, type StepContext } from "../step.ts";
import { clearTable, setTableValue, tableValue } from "../token_table.ts";

/** Keeps the tokens of most typical surprise. */
export const typical: SamplingStep = defineStep<{ p: number }>({
  name: "typical",
  aliases: ["typical_p", "typ_p", "typicalP"],
  rules: {
    p: share(0.95, {
      aliases: ["typical_p", "typical"],
      options: ["typicalP"],
      flag: "locally typical sampling",
    }),
  },
  neutral: { p: 1 },
  isOff: ({ p }) => p === 1,
  apply(candidates, { p }, context) {
    const target = p * totalMass(candidates);
    const { ids, logits, keys, size, max } = candidates;
    orderByTypicality(candidates);
    const words = new Uint32Array(keys.buffer);
    idsToPlaces(candidates, words, context);
    let sum = 0;
    let count = 0;
    while (count < size && (count === 0 || sum < target)) {
      sum += expNegative(logits[words[2 * count]!]! - max);
      count++;
    }
    if (count === size) return;
    // The kept ones close up in the order they had, which is that of their places.
    for (let i = 0; i < count; i++) words[2 * i + 1] = 0;
    keys.subarray(0, count).sort();
    for (let i = 0; i < count; i++) {
      ids[i] = ids[words[2 * i]!]!;
      logits[i] = logits[words[2 * i]!]!;
    }
    candidates.size = count;
    candidates.sorted = 0;
    candidates.dense = false;
    candidates.max = NaN;
    candidates.mass = NaN;
  },
});

// Leaves the ids of the candidates, most typical first, in the low words of the keys. The upper words
// are the float32 bits of the distance: not negative, so they order like integers.
function orderByTypicality(candidates: Candidates): void {
  const { ids, logits, keys, size } = candidates;
  // surprise = log(mass) + max - logit, less the entropy
  const typicalLogit = Math.log(totalMass(candidates)) + candidates.max - entropy(candidates);
  const words = new Uint32Array(keys.buffer);
  const distances = new Float32Array(keys.buffer);
  for (let i = 0; i < size; i++) {
    words[2 * i] = ids[i]!;
    distances[2 * i + 1] = Math.abs(typicalLogit - logits[i]!);
  }
  keys.subarray(0, size).sort();
}

// Steps before may have left the candidates in any order.
function idsToPlaces(
  { ids, size, dense }: Candidates,
  words: Uint32Array,
  context: StepContext,
): void {
  if (dense) return;
  const places = context.table();
  clearTable(places);
  for (let i = 0; i < size; i++) setTableValue(places, { id: ids[i]!, value: i });
  for (let i = 0; i < size; i++) words[2 * i] = tableValue(places, words[2 * i]!);
}
