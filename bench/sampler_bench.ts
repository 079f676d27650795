// Samplers at the vocabulary sizes of SmolLM2 (49,152) and Gemma 3 (262,144), on logits shaped like a
// language model's: a few likely tokens above a wide bell. Greedy is the baseline of each group.
// deno bench bench/sampler_bench.ts

import { EMPTY_HISTORY, type TokenHistory } from "../engine/decode/sampling/history.ts";
import { topAlternatives } from "../engine/decode/sampling/log_softmax.ts";
import type { SamplerOptions } from "../engine/decode/sampling/sampler_options.ts";
import { createRandom, nextDouble } from "../engine/decode/sampling/random.ts";
import { createSampler } from "../engine/decode/sampling/sampler.ts";

function modelLikeLogits(size: number): Float32Array {
  const random = createRandom(1);
  const bell = () => {
    let sum = -6;
    for (let i = 0; i < 12; i++) sum += nextDouble(random);
    return sum;
  };
  const logits = Float32Array.from({ length: size }, () => 3 * bell());
  for (let i = 0; i < 20; i++) logits[Math.floor(nextDouble(random) * size)] = 18 - i / 2;
  return logits;
}

const tokens = Int32Array.from({ length: 2000 }, (_, i) => (i * i) % 997);
const HISTORY: TokenHistory = { tokens, length: tokens.length, promptLength: 1000 };

const CASES: readonly (readonly [string, SamplerOptions])[] = [
  ["top-k 40, top-p 0.95, temperature 0.8", { seed: 1, topK: 40, topP: 0.95, temperature: 0.8 }],
  ["top-p 0.95, temperature 0.8, whole vocabulary", { seed: 1, topP: 0.95, temperature: 0.8 }],
  ["min-p 0.05", { seed: 1, minP: 0.05 }],
  ["repetition penalty 1.1, greedy", { repeatPenalty: 1.1 }],
  ["top-n-sigma 1", { seed: 1, topNSigma: 1 }],
  ["mirostat 2", { seed: 1, mirostat: 2 }],
  ["FSD", { seed: 1, strategy: "fsd" }],
  ["typical 0.95", { seed: 1, typicalP: 0.95 }],
  ["TFS 0.95", { seed: 1, tfsZ: 0.95 }],
  ["DRY, greedy", { dryMultiplier: 0.8, drySequenceBreakers: [0] }],
];

for (const size of [49152, 262144]) {
  const logits = modelLikeLogits(size);
  const group = `sampler, vocabulary ${size}`;
  const greedy = createSampler();
  Deno.bench("greedy", { group, baseline: true }, () => {
    greedy.sample(logits, EMPTY_HISTORY);
  });
  for (const [name, options] of CASES) {
    const sampler = createSampler(options);
    Deno.bench(name, { group }, () => {
      sampler.sample(logits, HISTORY);
    });
  }
  Deno.bench("top 10 alternatives with log-probabilities", { group }, () => {
    topAlternatives(logits, 10);
  });
}
