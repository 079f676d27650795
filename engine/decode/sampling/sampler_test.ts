import { assert, assertAlmostEquals, assertEquals, assertLess, assertThrows } from "@std/assert";
import fc from "fast-check";
import { EMPTY_HISTORY, type TokenHistory } from "./history.ts";
import type { SamplerOptions } from "./sampler_options.ts";
import { createSampler } from "./sampler.ts";

const LOGITS = Float32Array.of(3, 2.5, 2.4, 1, 0.5, 0, -1, -1.5, -2, -4);

function softmax(logits: readonly number[]): number[] {
  const max = Math.max(...logits);
  const weights = logits.map((logit) => Math.exp(logit - max));
  const total = weights.reduce((a, b) => a + b);
  return weights.map((weight) => weight / total);
}

function draws(options: SamplerOptions, count: number, logits = LOGITS): number[] {
  const sampler = createSampler(options);
  return Array.from({ length: count }, () => sampler.sample(logits, EMPTY_HISTORY));
}

/** Pearson's χ² of counts against probabilities. */
function chiSquared(tokens: readonly number[], probabilities: readonly number[]): number {
  const counts = probabilities.map(() => 0);
  for (const token of tokens) counts[token]!++;
  return counts.reduce((sum, count, i) => {
    const expected = probabilities[i]! * tokens.length;
    return sum + (count - expected) ** 2 / expected;
  }, 0);
}

Deno.test("draws follow the softmax (χ² with 9 degrees of freedom below its 99.9 % point)", () => {
  for (const seed of [1, 2, 3]) {
    assertLess(chiSquared(draws({ seed }, 40000), softmax([...LOGITS])), 27.88);
  }
});

Deno.test("draws follow the filtered distribution (χ² with 3 degrees of freedom)", () => {
  const tokens = draws({ seed: 5, temperature: 0.7, topP: 0.95 }, 40000);
  assertLess(chiSquared(tokens, softmax([3, 2.5, 2.4, 1].map((l) => l / 0.7))), 16.27);
});

Deno.test("the χ² test itself notices a wrong distribution", () => {
  assert(chiSquared(draws({ seed: 1, temperature: 1.1 }, 40000), softmax([...LOGITS])) > 27.88);
});

Deno.test("the same seed gives the same tokens, another seed others", () => {
  const options = { seed: 42, temperature: 1.2, xtcProbability: 0.5 };
  assertEquals(draws(options, 200), draws(options, 200));
  assert(draws(options, 200).join() !== draws({ ...options, seed: 43 }, 200).join());
});

Deno.test("a sampler without a seed tells the one it took", () => {
  const sampler = createSampler({ temperature: 1 });
  const again = createSampler({ temperature: 1, seed: sampler.seed });
  for (let i = 0; i < 50; i++) {
    assertEquals(sampler.sample(LOGITS, EMPTY_HISTORY), again.sample(LOGITS, EMPTY_HISTORY));
  }
});

Deno.test("temperature 0 and no options are greedy, the lowest id of equals", () => {
  const logits = Float32Array.of(1, 7, 7, 2);
  for (const options of [{}, { temperature: 0 }, { temperature: 0, topK: 40, topP: 0.9 }]) {
    const sampler = createSampler(options);
    assert(sampler.isGreedy);
    assertEquals(sampler.sample(logits, EMPTY_HISTORY), 1);
    const { ids, probabilities } = sampler.probabilities(logits, EMPTY_HISTORY);
    assertEquals([[...ids], [...probabilities]], [[1], [1]]);
  }
});

Deno.test("logits are not changed", () => {
  const copy = LOGITS.slice();
  draws({ seed: 1, temperature: 0.5, repeatPenalty: 2, topK: 3 }, 3);
  assertEquals(LOGITS, copy);
});

Deno.test("top-k, top-p, min-p and temperature commute where their laws say so", () => {
  // Top-k and min-p before or after each other keep the same set; drawing walks it in the same order.
  const orders: SamplerOptions[] = [
    { samplers: ["top_k", "min_p", "temperature"] },
    { samplers: ["min_p", "top_k", "temperature"] },
  ];
  const base = { seed: 9, topK: 5, minP: 0.04, temperature: 0.8 };
  const [first, ...others] = orders.map((order) => draws({ ...base, ...order }, 300));
  for (const other of others) assertEquals(other, first);
  // Top-k does not care about temperature.
  assertEquals(
    draws({ seed: 9, topK: 4, temperature: 2, samplers: ["temperature", "top_k"] }, 300),
    draws({ seed: 9, topK: 4, temperature: 2, samplers: ["top_k", "temperature"] }, 300),
  );
});

Deno.test("any order of any steps draws a token", () => {
  const steps = [
    ...["top_k", "top_p", "min_p", "typical", "tfs", "xtc", "top_n_sigma", "temperature"],
    ...["penalties", "greedy", "mirostat", "mirostat_v1", "fsd", "random_fsd", "draw"],
  ];
  const history: TokenHistory = { tokens: [1, 2, 1, 2], length: 4, promptLength: 2 };
  fc.assert(
    fc.property(fc.shuffledSubarray(steps), fc.integer(), (samplers, seed) => {
      const sampler = createSampler({ samplers, seed });
      const token = sampler.sample(LOGITS, history);
      assert(Number.isInteger(token) && token >= 0 && token < LOGITS.length);
      const { probabilities } = sampler.probabilities(LOGITS, history);
      assertAlmostEquals(probabilities.reduce((a, b) => a + b), 1, 1e-9);
    }),
    { seed: 31, numRuns: 300 },
  );
});

Deno.test("probabilities come in order, sum to 1 and are those that tokens are drawn by", () => {
  const sampler = createSampler({ temperature: 0.7, topP: 0.95, seed: 1 });
  const { ids, probabilities } = sampler.probabilities(LOGITS, EMPTY_HISTORY);
  assertEquals([...ids], [0, 1, 2, 3]);
  softmax([3, 2.5, 2.4, 1].map((l) => l / 0.7)).forEach((p, i) =>
    assertAlmostEquals(probabilities[i]!, p, 1e-6)
  );
});

Deno.test("tokens at +Infinity share all probability, whatever the chain", () => {
  const logits = Float32Array.of(5, Infinity, -Infinity, Infinity, 3e38);
  const chains = [
    {},
    { temperature: 0.7, topK: 4, topP: 0.9, minP: 0.1 },
    { repeatPenalty: 1.2, temperature: 2, typicalP: 0.9 },
    { temperature: 1e-9, mirostat: 2 },
  ];
  for (const options of chains) {
    const sampler = createSampler({ seed: 3, ...options });
    const { ids, probabilities } = sampler.probabilities(logits, EMPTY_HISTORY);
    assertEquals([[...ids], [...probabilities]], [[1, 3], [0.5, 0.5]]);
    assertEquals(new Set(draws({ seed: 3, ...options }, 100, logits)), new Set([1, 3]));
  }
  assertEquals(createSampler({ temperature: 0 }).sample(logits, EMPTY_HISTORY), 1);
});

Deno.test("a low temperature of large logits takes the best, as their differences say", () => {
  const logits = Float32Array.of(1e37, 2e37, -3e38, 2e37);
  const { ids, probabilities } = createSampler({ seed: 1, temperature: 0.001 })
    .probabilities(logits, EMPTY_HISTORY);
  assertEquals([[...ids], [...probabilities]], [[1, 3], [0.5, 0.5]]);
});

Deno.test("tokens at -Infinity are never drawn and not in the distribution", () => {
  const logits = Float32Array.of(-Infinity, 1, -Infinity, 1, -Infinity);
  assertEquals(new Set(draws({ seed: 3 }, 500, logits)), new Set([1, 3]));
  const { ids } = createSampler({ seed: 3 }).probabilities(logits, EMPTY_HISTORY);
  assertEquals([...ids], [1, 3]);
});

Deno.test("NaN and a vocabulary without candidates are errors", () => {
  for (const options of [{}, { seed: 1 }, { seed: 1, topK: 2 }, { repeatPenalty: 1.5 }]) {
    const sampler = createSampler(options);
    const sample = (...logits: number[]) =>
      sampler.sample(Float32Array.from(logits), EMPTY_HISTORY);
    assertThrows(() => sample(1, NaN, 2), RangeError, "the logit of token 1 is NaN");
    assertThrows(() => sample(1, NaN, Infinity), RangeError, "the logit of token 1 is NaN");
    assertThrows(() => sample(-Infinity, -Infinity), RangeError, "every token is excluded");
    assertThrows(() => sample(), RangeError, "0 logits");
    assertEquals(sample(-Infinity, 0), 1);
  }
  const banned = createSampler({ suppressTokens: [0, 1] });
  assertThrows(
    () => banned.sample(Float32Array.of(1, 2), EMPTY_HISTORY),
    RangeError,
    "every token is excluded",
  );
});

Deno.test("padding beyond the vocabulary is never taken", () => {
  const sampler = createSampler({}, { vocabSize: 2 });
  assertEquals(sampler.sample(Float32Array.of(1, 2, 9), EMPTY_HISTORY), 1);
  assertThrows(() => sampler.sample(Float32Array.of(1), EMPTY_HISTORY), RangeError, "for 2 tokens");
});

Deno.test("a saved state brings back the same tokens, mirostat's limit included", () => {
  const sampler = createSampler({ seed: 8, mirostat: 2, mirostatTau: 1.5 });
  const run = () => Array.from({ length: 30 }, () => sampler.sample(LOGITS, EMPTY_HISTORY));
  run();
  const state = JSON.parse(JSON.stringify(sampler.save()));
  const first = run();
  const later = sampler.save();
  sampler.restore(state);
  assertEquals(run(), first);
  assertEquals(sampler.save(), later);
});

Deno.test("probabilities, a draw and accept equal sample", () => {
  for (const mirostat of [0, 1, 2]) {
    const options = { seed: 4, mirostat, mirostatTau: 2, temperature: 1.1 };
    const whole = createSampler(options);
    const parts = createSampler(options);
    for (let i = 0; i < 50; i++) {
      const { ids, probabilities } = parts.probabilities(LOGITS, EMPTY_HISTORY);
      let rest = parts.random();
      let at = 0;
      while (at < ids.length - 1 && (rest -= probabilities[at]!) > 0) at++;
      const token = ids[at]!;
      parts.accept(token);
      assertEquals(token, whole.sample(LOGITS, EMPTY_HISTORY));
    }
    assertAlmostEquals(parts.save().mu ?? 0, whole.save().mu ?? 0, 1e-9);
  }
});

Deno.test("accepting a token that the distribution lacks is refused", () => {
  const sampler = createSampler({ seed: 1, topK: 2 });
  sampler.probabilities(LOGITS, EMPTY_HISTORY);
  assertThrows(() => sampler.accept(9), RangeError, "Cannot accept token 9");
});

Deno.test("mirostat drives the average surprise to its target", () => {
  const logits = Float32Array.from({ length: 2000 }, (_, i) => -1.2 * Math.log(i + 1));
  const probabilities = softmax([...logits]);
  for (const mirostat of [1, 2]) {
    const sampler = createSampler({ seed: 6, mirostat, mirostatTau: 3 });
    const surprises = Array.from(
      { length: 2000 },
      () => -Math.log2(probabilities[sampler.sample(logits, EMPTY_HISTORY)]!),
    ).slice(200);
    const mean = surprises.reduce((a, b) => a + b) / surprises.length;
    // The limit steers the renormalised surprise, which lies below that of the whole distribution.
    assert(mean > 2.8 && mean < 4.5, `mirostat ${mirostat}: ${mean}`);
  }
});

Deno.test("the end of the text is replaced by the best other token, so many times", () => {
  const logits = Float32Array.of(1, 5, 3, 2);
  const endOfGenerationIds = new Set([1]);
  for (const options of [{}, { topK: 1 }, { temperature: 0.01, seed: 1 }] as SamplerOptions[]) {
    const sampler = createSampler({ ...options, eosBypassingMax: 2 }, { endOfGenerationIds });
    const tokens = [1, 2, 3].map(() => sampler.sample(logits, EMPTY_HISTORY));
    assertEquals(tokens, [2, 2, 1]);
  }
  const only = createSampler({ eosBypassingMax: 2 }, { endOfGenerationIds });
  assertEquals(only.sample(Float32Array.of(-Infinity, 0), EMPTY_HISTORY), 1);
  assertThrows(() => createSampler({ eosBypassingMax: 1 }), RangeError, "pass the tokenizer");
});

Deno.test("DRY's text breakers need the tokens' texts", () => {
  assertThrows(() => createSampler({ dryMultiplier: 1 }), RangeError, "pass the tokenizer");
  const texts = ["a", "b", "c\n", "d"];
  const model = { tokenBytes: (id: number) => new TextEncoder().encode(texts[id]) };
  const options: SamplerOptions = { dryMultiplier: 9, dryAllowedLength: 1 };
  const history = (...tokens: number[]) => ({ tokens, length: tokens.length, promptLength: 0 });
  const logits = Float32Array.of(1, 2, 0, 0);
  const sampler = createSampler(options, model);
  assertEquals(sampler.sample(logits, history(0, 1, 3, 0)), 0); // "a" then "b" again: punished
  assertEquals(sampler.sample(logits, history(2, 1, 3, 2)), 1); // a line end breaks
});

Deno.test("the chain in use is data that makes the same sampler again", () => {
  const sampler = createSampler({ seed: 2, temperature: 0.8, topK: 5, minP: 0.02 });
  assertEquals(sampler.chain.map(({ name }) => name), ["top_k", "temperature", "min_p", "draw"]);
  const samplers = sampler.chain.map(({ name, parameters }) => ({ name, ...parameters }));
  const again = createSampler({ seed: 2, samplers });
  for (let i = 0; i < 100; i++) {
    assertEquals(again.sample(LOGITS, EMPTY_HISTORY), sampler.sample(LOGITS, EMPTY_HISTORY));
  }
});

Deno.test("a large vocabulary gives the same set by filters as by definition", () => {
  const size = 20000;
  const logits = Float32Array.from(
    { length: size },
    (_, i) => Math.fround(Math.sin(i * 12.9898) * 8),
  );
  const order = [...logits.keys()].sort((a, b) => logits[b]! - logits[a]! || a - b);
  const p = softmax([...logits]);
  let sum = 0;
  const nucleus = order.slice(0, order.findIndex((id) => (sum += p[id]!) >= 0.9) + 1);
  assert(nucleus.length > 1024); // beyond the heap
  const { ids } = createSampler({ topP: 0.9, seed: 1 }).probabilities(logits, EMPTY_HISTORY);
  assertEquals([...ids], nucleus);
  const best = createSampler({ topK: 700, seed: 1 }).probabilities(logits, EMPTY_HISTORY);
  assertEquals([...best.ids], order.slice(0, 700));
});

/** The best logits of a row, in order. */
function bestOf(logits: Float32Array, count: number) {
  const ids = [...logits.keys()].sort((a, b) => logits[b]! - logits[a]! || a - b).slice(0, count);
  return { ids, logits: ids.map((id) => logits[id]!), count };
}

Deno.test("the best logits are enough for greedy chains and chains that begin with top-k", () => {
  const options: readonly SamplerOptions[] = [
    { temperature: 0 },
    { topK: 5, temperature: 0.8 },
    { topK: 40, topP: 0.8, minP: 0.02, temperature: 1.3 },
    { samplers: [{ name: "top_k", k: 9 }, { name: "penalties", repeat_penalty: 1.3 }, "draw"] },
  ];
  const logit = fc.integer({ min: -20, max: 20 }).map((value) => value / 4);
  const row = fc.array(logit, { minLength: 64, maxLength: 90 }).map((all) =>
    Float32Array.from(all)
  );
  fc.assert(
    fc.property(fc.constantFrom(...options), fc.array(row, { minLength: 1, maxLength: 4 }), (
      option,
      rows,
    ) => {
      const vocabSize = Math.min(...rows.map(({ length }) => length));
      const [whole, few] = [0, 1].map(() => createSampler({ ...option, seed: 3 }, { vocabSize }));
      const tokens: number[] = [1];
      for (const logits of rows.map((row) => row.subarray(0, vocabSize))) {
        const history = { tokens, length: tokens.length, promptLength: 1 };
        const expected = whole!.sample(logits, history);
        assertEquals(few!.sampleBest(bestOf(logits, 64), history), expected);
        tokens.push(expected);
      }
    }),
    { seed: 17, numRuns: 120 },
  );
});

Deno.test("the best logits are refused where they do not settle the choice", () => {
  const needed = (options: SamplerOptions, model = {}) => createSampler(options, model).bestNeeded;
  assertEquals([needed({}), needed({ topK: 40, temperature: 1 })], [1, 40]);
  assertEquals(needed({ temperature: 1 }), Infinity);
  assertEquals(needed({ topK: 40, temperature: 1, repeatPenalty: 1.1 }), Infinity);
  assertEquals(needed({ eosBypassingMax: 1 }, { endOfGenerationIds: new Set([2]) }), Infinity);

  const sampler = createSampler({ topK: 2, temperature: 1, seed: 1 }, { vocabSize: 8 });
  const before = sampler.save();
  const sample = (ids: number[], logits: number[]) =>
    sampler.sampleBest({ ids, logits, count: ids.length }, EMPTY_HISTORY);
  assertEquals(sample([3], [1]), undefined, "too few");
  assertEquals(sample([8, 3], [2, 1]), undefined, "no token of the model");
  assertEquals(sample([3, 4], [NaN, 1]), undefined);
  assertEquals(sample([3, 4], [Infinity, 1]), undefined);
  assertEquals(sample([3, 4], [-Infinity, -Infinity]), undefined);
  assertEquals(sampler.save(), before);
  assertEquals(sample([3, 4], [1, -Infinity]), 3);
});

Deno.test("equals go by lower id also where steps before have moved the candidates", () => {
  // The third and fourth best order a part of the candidates; of equals the first is the most typical one.
  const logits = Float32Array.from({ length: 400 }, (_, id) => id % 4 === 0 ? 0 : id % 4 - 2);
  const samplers = [{ name: "min_p", min_p: 0.04, min_k: 3 }, { name: "typical", p: 0 }];
  const { ids } = createSampler({ samplers, seed: 1 }).probabilities(logits, EMPTY_HISTORY);
  assertEquals([...ids], [0]);
});

Deno.test("mirostat leaves one of equals where all surprise too much", () => {
  const samplers = [{ name: "mirostat", tau: 0.5 }];
  const { ids } = createSampler({ samplers, seed: 1 })
    .probabilities(new Float32Array(8), EMPTY_HISTORY);
  assertEquals([...ids], [0]);
});

Deno.test("thresholds hold for logits so large that the next number is far away", () => {
  const logits = Float32Array.of(1e30, 1e30, 1e30, 0);
  const samplers = [{ name: "xtc", probability: 1, threshold: 0.4 }];
  const { ids } = createSampler({ samplers, seed: 1 }).probabilities(logits, EMPTY_HISTORY);
  assertEquals([...ids], [0, 1, 2]);
});

Deno.test("options that a model was asked for before are not taken for others", () => {
  const asked = [{ topK: 1 }, { topK: 11 }, { topP: 0.5, topK: 1 }, { temperature: 0.5, topK: 1 }];
  const chainOf = (options: SamplerOptions, model = {}) =>
    JSON.stringify(createSampler(options, model).chain);
  const chains = asked.map((options) => chainOf(options)), model = { vocabSize: 20 };
  for (let i = 0; i < 40; i++) {
    assertEquals(chainOf(asked[i * 7 % 4]!, model), chains[i * 7 % 4]);
    assertEquals(chainOf(asked[i * 7 % 4]!, model), chains[i * 7 % 4]);
  }
  assertEquals(new Set(chains).size, asked.length);
  for (let i = 0; i < 2; i++) {
    assertThrows(() => createSampler({ topK: -1 }, model), RangeError);
    assertEquals(chainOf(asked[2]!, model), chains[2]);
    assertThrows(() => chainOf({ "topP,0.5,topK": 1 } as SamplerOptions, model), RangeError);
    Object.assign(createSampler({ topK: 1 }, model).chain[0]!.parameters, { k: 9 });
    assertEquals(chainOf({ topK: 1 }, model), chains[0]);
  }
});
