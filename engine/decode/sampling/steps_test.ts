// The laws of the single steps, on the worked example of the specification: logits of ten tokens with
// the index as id. Sets are given as sorted ids.

import {
  assert,
  assertAlmostEquals,
  assertEquals,
  assertStringIncludes,
  assertThrows,
} from "@std/assert";
import fc from "fast-check";
import {
  type Candidates,
  createCandidates,
  entropy,
  fillCandidates,
  orderTop,
  probabilityAt,
} from "./candidates.ts";
import { bindChain } from "./chain.ts";
import { EMPTY_HISTORY, type TokenHistory } from "./history.ts";
import { createRandom, nextDouble } from "./random.ts";
import type { StepContext } from "./step.ts";
import { FSD_RULES, ngramPenalties } from "./steps/fsd.ts";
import { mirostatK, zipfExponent } from "./steps/mirostat_v1.ts";
import { samplingSteps } from "./steps/mod.ts";
import { createTokenTable } from "./token_table.ts";

const LOGITS = [3, 2.5, 2.4, 1, 0.5, 0, -1, -1.5, -2, -4];
const PROBABILITIES = [
  ...[0.40657, 0.24659, 0.22313, 0.05502, 0.03337, 0.02024, 0.00745, 0.00452, 0.00274, 0.00037],
];

function candidatesOf(logits: readonly number[]): Candidates {
  const candidates = createCandidates(logits.length);
  fillCandidates(candidates, Float32Array.from(logits));
  return candidates;
}

function contextFor(vocabSize: number, history: TokenHistory, seed = 1): StepContext {
  const random = createRandom(seed);
  const table = createTokenTable(vocabSize);
  return {
    history,
    mu: NaN,
    coin: () => nextDouble(random),
    table: () => table,
    integers: (length) => new Int32Array(length),
    doubles: (length) => new Float64Array(length),
    isBreaker: (id, breakers) => breakers.includes(id),
  };
}

function historyOf(prompt: number[], generated: number[] = []): TokenHistory {
  const tokens = [...prompt, ...generated];
  return { tokens, length: tokens.length, promptLength: prompt.length };
}

interface Setting {
  logits?: readonly number[];
  history?: TokenHistory;
  mu?: number;
  seed?: number;
}

function applyStep(
  name: string,
  parameters: Record<string, unknown>,
  { logits = LOGITS, history = EMPTY_HISTORY, mu = NaN, seed = 1 }: Setting = {},
): { candidates: Candidates; context: StepContext } {
  const candidates = candidatesOf(logits);
  const context = contextFor(logits.length, history, seed);
  context.mu = mu;
  const [step] = bindChain([{ name, ...parameters }]);
  step!.apply(candidates, context);
  return { candidates, context };
}

function idsOf(candidates: Candidates): number[] {
  return [...candidates.ids.subarray(0, candidates.size)].sort((a, b) => a - b);
}

function kept(name: string, parameters: Record<string, unknown>, setting?: Setting): number[] {
  return idsOf(applyStep(name, parameters, setting).candidates);
}

function range(count: number): number[] {
  return Array.from({ length: count }, (_, i) => i);
}

Deno.test("the example's probabilities and entropy are those of the specification", () => {
  const candidates = candidatesOf(LOGITS);
  PROBABILITIES.forEach((p, i) => assertAlmostEquals(probabilityAt(candidates, i), p, 6e-6));
  assertAlmostEquals(entropy(candidates), 1.477789, 1e-6);
});

Deno.test("temperature divides logits", () => {
  const { candidates } = applyStep("temperature", { temperature: 0.7 });
  assertAlmostEquals(probabilityAt(candidates, 0), 0.4953, 5e-5);
});

Deno.test("temperature 0 leaves the best token, the lowest id of equals", () => {
  assertEquals(kept("temperature", { temperature: 0 }, { logits: [1, 3, 3, 2] }), [1]);
});

Deno.test("a tiny temperature leaves nothing but the best, and equals of it", () => {
  for (const temperature of [1e-4, 1e-30, 1e-45, Number.MIN_VALUE]) {
    const logits = [1, 1, 0.999, -3, -Infinity];
    const { candidates } = applyStep("temperature", { temperature }, { logits });
    const wanted = [1, 1, Math.exp(-0.001 / temperature), 0, 0];
    const mass = 2 + wanted[2]!;
    wanted.forEach((part, at) =>
      assertAlmostEquals(probabilityAt(candidates, at), part / mass, 1e-6)
    );
  }
});

Deno.test("dynamic temperature goes from low at no entropy to high at full entropy", () => {
  const flat = applyStep("temperature", { temperature: 1, range: 0.5 }, { logits: [2, 2, 2, 2] });
  assertAlmostEquals(flat.candidates.logits[0]!, 2 / 1.5, 1e-6);
  const sharp = applyStep("temperature", { temperature: 1, range: 0.5 }, { logits: [100, 0, 0] });
  assertAlmostEquals(sharp.candidates.logits[0]!, 200, 1e-3);
  const relative = entropy(candidatesOf(LOGITS)) / Math.log(10);
  const { candidates } = applyStep("temperature", { temperature: 1, range: 0.5, exponent: 2 });
  assertAlmostEquals(candidates.logits[0]!, 3 / (0.5 + relative ** 2), 1e-5);
});

Deno.test("top_k keeps the first k", () => {
  assertEquals(kept("top_k", { k: 3 }), [0, 1, 2]);
  assertEquals(kept("sample.top_k", {}), range(8));
  assertEquals(kept("top_k", { max_k: 1 }), [0]);
  assertEquals(kept("top_k", { k: 2 }, { logits: [1, 1, 1, 1] }), [0, 1]);
});

Deno.test("top_p keeps until the sum reaches p, within min_k and max_k", () => {
  assertEquals(kept("top_p", { top_p: 0.9 }), [0, 1, 2, 3]);
  assertEquals(kept("top_p", { top_p: 0.9, max_k: 2 }), [0, 1]);
  assertEquals(kept("sample.top_p", { top_p: 0.1, min_k: 3 }), [0, 1, 2]);
  assertEquals(kept("sample.std", { top_p: 1 }), range(8));
  assertEquals(kept("auto", {}), [0, 1, 2, 3]);
  assertEquals(kept("top_p", { top_p: 0 }), [0]);
  assertEquals(kept("top_p", { top_p: 0.5 }, { logits: [1, 1] }), [0]);
});

Deno.test("min_p keeps what is at least p times as probable as the best", () => {
  assertEquals(kept("min_p", { min_p: 0.05 }), range(5));
  assertEquals(kept("min_p", { min_p: 0.2 }), [0, 1, 2]);
  assertEquals(kept("min_p", {}), range(5));
  assertEquals(kept("min_p", { min_p: 1 }, { logits: [2, 1, 2] }), [0, 2]);
  assertEquals(kept("min_p", { min_p: 0.2, min_k: 6 }), range(6));
});

Deno.test("typical orders by distance from the entropy and keeps the token that crosses p", () => {
  assertEquals(kept("typical", { p: 0.5 }), [0, 1, 2]);
  assertEquals(kept("typical", { p: 0.2 }), [2]);
  assertEquals(kept("typical", { p: 0.4 }), [1, 2]);
  assertEquals(kept("typical", { p: 0.8 }), [0, 1, 2]);
  assertEquals(kept("typical", { p: 0.95 }), range(5));
});

Deno.test("tfs keeps the head while the sum of curvatures is at most z", () => {
  assertEquals(kept("tfs", { z: 0.5 }), [0]);
  assertEquals(kept("tfs", { z: 0.9 }), [0, 1]);
  assertEquals(kept("tfs", { z: 0.95 }), [0, 1]);
  assertEquals(kept("tfs", { z: 0.99 }), range(5));
});

Deno.test("tfs keeps flat and tiny distributions sensibly", () => {
  assertEquals(kept("tfs", { z: 0.5 }, { logits: [0, 0, 0, 0, 0, 0] }), [0, 1]); // weights of 1/4
  assertEquals(kept("tfs", { z: 0.1 }, { logits: [1, 0] }), [0, 1]);
  assertEquals(kept("tfs", { z: 0.1 }, { logits: [1] }), [0]);
});

Deno.test("mirostat drops surprise above mu and learns from the drawn token", () => {
  assertEquals(kept("mirostat", {}, { mu: 10 }), range(9));
  const { candidates, context } = applyStep("mirostat", {}, { mu: 2 });
  assertEquals(idsOf(candidates), [0]);
  const [step] = bindChain(["mirostat"]);
  step!.accept(probabilityAt(candidates, 0), context);
  assertAlmostEquals(context.mu, 2.5, 1e-12);
});

Deno.test("mirostat begins at twice the target", () => {
  assertEquals(kept("mirostat", { tau: 1 }), kept("mirostat", {}, { mu: 2 }));
  assertEquals(kept("mirostat_v2", {}), range(9));
});

Deno.test("mirostat_v1 estimates the exponent and k of the specification", () => {
  const exponent = zipfExponent(candidatesOf(LOGITS));
  assertAlmostEquals(exponent, 1.690730, 1e-6);
  assertAlmostEquals(mirostatK(exponent, { mu: 2, count: 10 }), 2.0874, 5e-5);
  assertEquals(kept("mirostat_v1", {}, { mu: 2 }), [0, 1]);
  assertEquals(kept("mirostat_v1", {}, { mu: -50 }), [0]);
  assertEquals(kept("mirostat_v1", {}, { logits: [1, 1, 1] }), [0, 1, 2]);
});

Deno.test("mirostat_v1's k is continuous where the exponent is 1", () => {
  assertAlmostEquals(
    mirostatK(1, { mu: 2, count: 1000 }),
    mirostatK(1 + 1e-7, { mu: 2, count: 1000 }),
    1e-4,
  );
});

Deno.test("FSD's penalties and choice are those of the specification", () => {
  const history = historyOf([5, 1, 2, 0, 1, 2]);
  const candidates = candidatesOf(LOGITS);
  orderTop(candidates, 6);
  const penalties = new Float64Array(12);
  const parameters = { k: 6, alpha: 0.5, n: 3, beta: 0.9 };
  ngramPenalties(candidates, {
    count: 6,
    parameters,
    context: contextFor(10, history),
    out: penalties,
  });
  [0.496667, 0.333333, 0.333333, 0, 0, 0.166667].forEach((p, i) =>
    assertAlmostEquals(penalties[i]!, p, 1e-6)
  );
  [-0.04505, -0.04337, -0.0551, 0.02751, 0.01669, -0.07321].forEach((score, i) =>
    assertAlmostEquals(0.5 * probabilityAt(candidates, i) - 0.5 * penalties[i]!, score, 1e-5)
  );
  assertEquals(kept("fsd", {}, { history }), [3]);
  assertEquals(kept("fsd", { k: 3 }, { history }), [1]);
  assertEquals(FSD_RULES.k.default, 6);
});

Deno.test("FSD takes the best token where the text is too short for its order", () => {
  assertEquals(kept("fsd", {}, { history: historyOf([0]) }), [0]);
  assertEquals(kept("fsd", {}, { history: EMPTY_HISTORY }), [0]);
});

Deno.test("random FSD tosses coins for the first tokens only", () => {
  const prompt = [5, 1, 2, 0, 1, 2];
  // Seed 1 begins with 0.73 and then 0.41: FSD first, a nucleus of .93 second.
  assertEquals(kept("random_fsd", {}, { history: historyOf(prompt) }), [3]);
  const low = kept("random_fsd", { random_probability: 0.8 }, { history: historyOf(prompt) });
  assertEquals(low, [0, 1, 2, 3]);
  const late = historyOf([], [...prompt, ...prompt]);
  assertEquals(kept("random_fsd", { random_probability: 1 }, { history: late }).length, 1);
});

Deno.test("random FSD works before any token exists", () => {
  assertEquals(kept("random_fsd", { random_probability: 0 }), [0]);
});

Deno.test("XTC leaves the least of the top choices, by chance", () => {
  const parameters = { probability: 1, threshold: 0.1 };
  assertEquals(kept("xtc", parameters), [2, 3, 4, 5, 6, 7, 8, 9]);
  assertEquals(kept("xtc", { probability: 0.7, threshold: 0.1 }), range(10)); // the coin is 0.73
  assertEquals(kept("xtc", { probability: 0.74, threshold: 0.3 }), range(10)); // one choice only
  assertEquals(kept("xtc", { probability: 1, threshold: 0 }), [9]);
  const isOff = (threshold: number) =>
    samplingSteps.get("xtc")!.bind({ probability: 1, threshold }).isOff;
  assertEquals([isOff(0.5), isOff(0.51)], [false, true]);
  const halves = { logits: [3, -Infinity, 3] };
  assertEquals(kept("xtc", { probability: 1, threshold: 0.5 }, halves), [1, 2]);
  assertEquals(kept("xtc", { probability: 1, threshold: 0.51 }, halves), [0, 1, 2]);
  assertEquals(kept("xtc", { probability: 1, threshold: 0 }, { logits: [1, -Infinity, 0] }), [
    1,
    2,
  ]);
});

Deno.test("top_n_sigma keeps logits within n deviations of the best, at any temperature", () => {
  const logits = [10, 9, 8, 0, 0, 0, 0, 0, 0, -Infinity];
  const finite = logits.slice(0, 9);
  const mean = finite.reduce((a, b) => a + b) / 9;
  const sigma = Math.sqrt(finite.reduce((a, b) => a + (b - mean) ** 2, 0) / 9);
  assert(sigma > 2 && sigma < 10); // so one sigma reaches 8 and not 0
  assertEquals(kept("top_n_sigma", { n: 1 }, { logits }), [0, 1, 2]);
  assertEquals(kept("top_n_sigma", { n: 1 }, { logits: logits.map((l) => l / 7) }), [0, 1, 2]);
  assertEquals(kept("top_n_sigma", { n: 0.1 }, { logits }), [0]);
  // A sigma of 4 from their mean; from the best it would be one of 8.
  const apart = [10, 9, 5, 0, 0, 0, 0, 0, 0, -Infinity];
  assertEquals(kept("top_n_sigma", { n: 1 }, { logits: apart }), [0, 1]);
  // A constant added to all changes no probability.
  assertEquals(kept("top_n_sigma", { n: 1 }, { logits: logits.map((l) => l + 90) }), [0, 1, 2]);
});

Deno.test("logit_bias adds, and excludes with -Infinity or false", () => {
  const bias = { 0: -Infinity, 9: 8.5, "1": false };
  const { candidates } = applyStep("logit_bias", { bias });
  assertEquals(probabilityAt(candidates, 0), 0);
  assertEquals(probabilityAt(candidates, 1), 0);
  assertEquals(candidates.logits[9], 4.5);
});

Deno.test("logit_bias refuses a token outside the vocabulary", () => {
  assertThrows(
    () => applyStep("logit_bias", { bias: [[10, 1]] }),
    RangeError,
    "the vocabulary has 10 tokens",
  );
});

Deno.test("DRY punishes what would prolong a repetition by its length", () => {
  // ... 1 2 3 4 ... 1 2 3: token 4 would make it four; the match is 3 long.
  const logits = Array(10).fill(0);
  const parameters = { multiplier: 1, base: 2, allowed_length: 2, sequence_breakers: [] };
  const history = historyOf([1, 2, 3, 4, 9, 1, 2, 3]);
  const { candidates } = applyStep("dry", parameters, { logits, history });
  assertEquals([...candidates.logits], [0, 0, 0, 0, -2, 0, 0, 0, 0, 0]);
});

Deno.test("DRY takes the longest match and nothing below the allowed length", () => {
  const logits = Array(10).fill(0);
  const history = historyOf([2, 3, 4, 1, 2, 3, 4, 7, 3, 5, 1, 2, 3]);
  const parameters = { multiplier: 1, base: 2, allowed_length: 1, sequence_breakers: [] };
  const { candidates } = applyStep("dry", parameters, { logits, history });
  assertEquals(candidates.logits[4], -4); // 1 2 3 before it: 2^(3 - 1)
  assertEquals(candidates.logits[5], -1); // 3 before it: 2^0
  const strict = applyStep("dry", { ...parameters, allowed_length: 2 }, { logits, history });
  assertEquals(strict.candidates.logits[5], 0);
});

Deno.test("DRY stops at sequence breakers and at its window", () => {
  const logits = Array(10).fill(0);
  const base = { multiplier: 1, base: 2, allowed_length: 1 };
  const history = historyOf([1, 2, 3, 4, 9, 1, 2, 3]);
  const at = (parameters: Record<string, unknown>) =>
    applyStep("dry", { ...base, ...parameters }, { logits, history }).candidates.logits[4];
  assertEquals(at({ sequence_breakers: [2] }), -1); // only 3 counts
  assertEquals(at({ sequence_breakers: [3] }), 0); // the newest token breaks
  assertEquals(at({ sequence_breakers: [4] }), 0); // a breaker is not punished
  assertEquals(at({ sequence_breakers: [], penalty_last_n: 5 }), 0); // 4 9 1 2 3
  assertEquals(at({ sequence_breakers: [], penalty_last_n: 6 }), -1); // 3 4 9 1 2 3
});

Deno.test("DRY equals a naive search for the longest match", () => {
  const token = fc.integer({ min: 0, max: 3 });
  fc.assert(
    fc.property(fc.array(token, { minLength: 1, maxLength: 60 }), (tokens) => {
      const parameters = { multiplier: 1, base: 1.5, allowed_length: 1, sequence_breakers: [3] };
      const { candidates } = applyStep("dry", parameters, {
        logits: [0, 0, 0, 0],
        history: historyOf(tokens),
      });
      for (let next = 0; next < 4; next++) {
        let longest = 0;
        for (let at = 1; at < tokens.length; at++) {
          if (tokens[at] !== next || next === 3) continue;
          let length = 0;
          while (length < at) {
            const token = tokens[tokens.length - 1 - length];
            if (token === 3 || tokens[at - 1 - length] !== token) break;
            length++;
          }
          longest = Math.max(longest, length);
        }
        const expected = longest === 0 ? 0 : -(1.5 ** (longest - 1));
        assertEquals(candidates.logits[next]! + 0, Math.fround(expected) + 0);
      }
    }),
    { seed: 17, numRuns: 500 },
  );
});

Deno.test("every filter keeps a non-empty subset with the logits it had", () => {
  const filters = [...samplingSteps.values()].filter(
    ({ name }) => !["logit_bias", "penalties", "dry", "temperature"].includes(name),
  );
  const unit = fc.double({ min: 0, max: 1, noNaN: true });
  fc.assert(
    fc.property(
      fc.array(fc.oneof(fc.integer({ min: -9, max: 9 }), fc.constant(-Infinity)), {
        minLength: 1,
        maxLength: 40,
      }).filter((logits) => logits.some(Number.isFinite)),
      unit,
      fc.integer({ min: 1, max: 50 }),
      fc.array(fc.integer({ min: 0, max: 50 }), { maxLength: 20 }),
      (logits, share, count, tokens) => {
        const history = historyOf([], tokens.map((token) => token % logits.length));
        for (const { name, rules } of filters) {
          const given: Record<string, unknown> = {};
          for (const [key, rule] of Object.entries(rules)) {
            given[key] = rule.parse(share) ?? rule.parse(count) ?? rule.default;
          }
          const { candidates } = applyStep(name, given, { logits, history, seed: count });
          assert(candidates.size >= 1, name);
          const ids = idsOf(candidates);
          assertEquals(new Set(ids).size, ids.length, name);
          for (let i = 0; i < candidates.size; i++) {
            assertEquals(candidates.logits[i]! + 0, logits[candidates.ids[i]!]! + 0, name);
          }
          let sum = 0;
          for (let i = 0; i < candidates.size; i++) sum += probabilityAt(candidates, i);
          assertAlmostEquals(sum, 1, 1e-9, name);
        }
      },
    ),
    { seed: 23, numRuns: 300 },
  );
});

Deno.test("filters that state it keep the best token", () => {
  const filters = [...samplingSteps.values()].filter((step) => step.bind(defaults(step)).keepsBest);
  assert(filters.length >= 6);
  for (const step of filters) {
    assert(kept(step.name, {}).includes(0), step.name);
    assert(kept(step.name, {}, { logits: [0, 0, 5, 5] }).includes(2), step.name);
  }
});

function defaults(step: { rules: Readonly<Record<string, { default: unknown }>> }) {
  return Object.fromEntries(Object.entries(step.rules).map(([key, rule]) => [key, rule.default]));
}

Deno.test("a step that is off changes nothing", () => {
  for (const step of samplingSteps.values()) {
    const bound = step.bind({ ...defaults(step), ...step.neutral });
    if (Object.keys(step.neutral).length === 0) continue;
    assert(bound.isOff, step.name);
  }
});

Deno.test("a step that asks for no chance narrows nothing and takes no random number", () => {
  const steps = [...samplingSteps.values()].filter(({ asksForChance }) => !asksForChance);
  assert(steps.length >= 3);
  const history = historyOf([], [1, 2, 0, 1, 2]);
  for (const { name, rules } of steps) {
    for (const value of [0.5, 3, 1, 0]) {
      const given = Object.fromEntries(
        Object.entries(rules).map(([key, rule]) => [key, rule.parse(value) ?? rule.default]),
      );
      const { candidates, context } = applyStep(name, given, {
        logits: [3, 2, 1, 0],
        history,
        seed: 1,
      });
      assertEquals(candidates.size, 4, name);
      assertEquals(context.coin(), nextDouble(createRandom(1)), name);
    }
  }
});

Deno.test("what a record says of options and flags can be used", () => {
  const interfaceText = Deno.readTextFileSync(new URL("./sampler_options.ts", import.meta.url));
  for (const { name, rules, asksForChance, version } of samplingSteps.values()) {
    const usual = [version?.option, ...Object.values(rules).map(({ options }) => options?.[0])];
    for (const option of usual) {
      if (option) assertStringIncludes(interfaceText, `readonly ${option}?:`, name);
    }
    for (const [key, { flag, options, limits }] of Object.entries(rules)) {
      assert(!flag || (options && limits), `${name}.${key}: a flag needs an option and a number`);
    }
    assert(asksForChance || !version, name);
  }
});
