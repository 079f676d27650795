import { assert, assertEquals, assertThrows } from "@std/assert";
import { bindChain } from "./chain.ts";
import { isDrawn, resolveOptions, SAMPLER_OPTION_NAMES } from "./options.ts";
import type { SamplerOptions } from "./sampler_options.ts";
import { getSamplingStep, samplingSteps } from "./steps/mod.ts";

function names(options: unknown): string[] {
  return resolveOptions(options as SamplerOptions).chain.map((step) => step.name);
}

function parametersOf(options: unknown, name: string): Record<string, unknown> {
  const { chain } = resolveOptions(options as SamplerOptions);
  return { ...chain.find((step) => step.name === name)!.parameters };
}

Deno.test("without options, or with penalties only, the best token is taken", () => {
  assertEquals(names({}), ["greedy"]);
  assertEquals(names({ repeatPenalty: 1.1 }), ["penalties", "greedy"]);
  assertEquals(names({ temperature: undefined, topK: null }), ["greedy"]);
});

Deno.test("options make the default order, without steps that are off", () => {
  const all = {
    ...{
      minP: 0.1,
      topP: 0.9,
      topK: 40,
      temperature: 0.8,
      repeatPenalty: 1.1,
      logitBias: { 1: 2 },
    },
    ...{ dryMultiplier: 0.8, topNSigma: 1, tfsZ: 0.9, typicalP: 0.9, xtcProbability: 0.1 },
  };
  assertEquals(names(all), [
    ...["logit_bias", "penalties", "dry", "top_n_sigma", "top_k", "temperature", "tfs", "typical"],
    ...["top_p", "min_p", "xtc", "draw"],
  ]);
  assertEquals(names({ temperature: 1, topK: 0, topP: 1, minP: 0, typicalP: 1, tfsZ: 1 }), [
    "draw",
  ]);
  assertEquals(names({ xtcThreshold: 0.1, dryBase: 2, topNSigma: -1, seed: 4 }), ["draw"]);
});

Deno.test("snake_case and common synonyms are accepted", () => {
  assertEquals(parametersOf({ top_p: 0.5 }, "top_p"), { top_p: 0.5, min_k: 1, max_k: 0 });
  assertEquals(parametersOf({ repetition_penalty: 1.2 }, "penalties").repeat_penalty, 1.2);
  assertEquals(
    parametersOf({ repeat_penalty: 2, repeat_last_n: 9 }, "penalties").penalty_last_n,
    9,
  );
  assertEquals(parametersOf({ temp: 0.5 }, "temperature").temperature, 0.5);
  assertEquals(parametersOf({ dry_multiplier: 1 }, "dry").base, 1.75);
});

// pc-samp-04
Deno.test("an own order is kept, and a missing draw is added", () => {
  assertEquals(names({ samplers: ["min_p", "temperature"], temperature: 0.5 }), [
    "min_p",
    "temperature",
    "draw",
  ]);
  assertEquals(names({ samplers: [] }), ["draw"]);
  assertEquals(names({ samplers: ["greedy", "top_k"] }), ["greedy", "top_k"]);
});

Deno.test("a listed step takes its options, else its defaults", () => {
  assertEquals(parametersOf({ samplers: ["min_p"] }, "min_p").min_p, 0.05);
  assertEquals(parametersOf({ samplers: ["min_p"], minP: 0.3 }, "min_p").min_p, 0.3);
  assertEquals(parametersOf({ samplers: ["top_p"] }, "top_p").max_k, 8);
  assertEquals(parametersOf({ samplers: ["top_p"], topP: 0.8 }, "top_p").max_k, 0);
  assertEquals(parametersOf({ samplers: ["xtc"], xtcThreshold: 0.2 }, "xtc").probability, 0.5);
  const own = { samplers: [{ name: "top_p", top_p: 0.7 }], topP: 0.8 };
  assertEquals(parametersOf(own, "top_p").top_p, 0.7);
});

Deno.test("an option whose step an own order lacks is refused, unless it is neutral", () => {
  assertThrows(
    () => names({ samplers: ["min_p"], topK: 40 }),
    RangeError,
    'Cannot apply topK: samplers does not list its step. Add "top_k" to samplers',
  );
  assertEquals(names({ samplers: ["min_p"], topK: 0, topP: 1, repeatPenalty: 1 }), [
    "min_p",
    "draw",
  ]);
});

Deno.test("strategies of the reference suite are accepted with their parameters", () => {
  const strategy = { name: "top_p", top_p: 0.9, max_k: 8 };
  assertEquals(parametersOf({ strategy }, "top_p"), { top_p: 0.9, min_k: 1, max_k: 8 });
  for (const name of ["greedy", "std", "auto", "top_p", "top_k", "fsd", "random_fsd"]) {
    const plain = resolveOptions({ strategy: name }).chain;
    const prefixed = resolveOptions({ strategy: `sample.${name}` }).chain;
    assertEquals(prefixed.map((s) => s.parameters), plain.map((s) => s.parameters));
  }
  const fsd = parametersOf({ strategy: "fsd" }, "fsd");
  assertEquals(fsd, { k: 6, alpha: 0.5, n: 3, beta: 0.9 });
  const typical = { name: "typical", temperature: 0.7, repetition_penalty: 1.1, pool_size: 50 };
  assertEquals(names({ strategy: typical }), [
    "penalties",
    "top_k",
    "temperature",
    "typical",
    "draw",
  ]);
});

Deno.test("defaults of the reference suite hold", () => {
  const defaults = (name: string) => ({ ...bindChain([name])[0]!.parameters });
  assertEquals(defaults("top_p"), { top_p: 0.9, min_k: 1, max_k: 8 });
  assertEquals(defaults("top_k"), { k: 8 });
  assertEquals(defaults("typical"), { p: 0.95 });
  assertEquals(defaults("mirostat"), { tau: 5, eta: 0.1 });
  assertEquals(defaults("min_p").min_p, 0.05);
  assertEquals(defaults("tfs"), { z: 0.95 });
  assertEquals(defaults("temperature").temperature, 1);
  assertEquals(defaults("random_fsd").top_p, 0.93);
});

Deno.test("mirostat is chosen by its version", () => {
  assertEquals(names({ mirostat: 2, mirostatTau: 3 }), ["mirostat"]);
  assertEquals(names({ mirostat: 1, temperature: 0.5 }), ["temperature", "mirostat_v1"]);
  assertEquals(names({ mirostat: 0, mirostatTau: 3 }), ["greedy"]);
  assertThrows(() => names({ mirostat: 3 }), RangeError, "it must be 0, 1 or 2");
});

Deno.test("suppressed tokens join the logit bias", () => {
  const { bias } = parametersOf({ suppressTokens: [3], logitBias: { 4: 1 } }, "logit_bias");
  assertEquals([...bias as Map<number, number>], [[4, 1], [3, -Infinity]]);
});

Deno.test("seed -1 means none, any other is taken as it is", () => {
  assertEquals(resolveOptions({ seed: -1 }).seed, undefined);
  assertEquals(resolveOptions({ seed: 0 }).seed, 0);
});

Deno.test("what cannot be used is named, with what is allowed", () => {
  const refused: [unknown, typeof RangeError | typeof TypeError, string][] = [
    [{ samplers: ["heat"] }, RangeError, 'Unknown sampling step "heat": known are'],
    [{ samplers: ["top_kk"] }, RangeError, '"top_kk". Did you mean top_k?'],
    [{ warmth: 1 }, RangeError, 'Unknown sampler option "warmth": known are'],
    [{ tempratur: 1 }, RangeError, 'Unknown option "tempratur". Did you mean temperature?'],
    [{ topp: 1 }, RangeError, "Did you mean topP?"],
    [{ maxToken: 1 }, RangeError, 'Unknown option "maxToken". Did you mean maxTokens?'],
    [{ max_tokens: 1 }, RangeError, "Did you mean maxTokens?"],
    [{ samplers: [{ name: "top_p", top_q: 1 }] }, RangeError, "allowed are top_p, min_k, max_k"],
    [{ topP: 1.5 }, RangeError, "Cannot use top_p 1.5 in sampling step top_p: it must be a number"],
    [{ topP: "0.9" }, TypeError, "a number from 0 to 1"],
    [{ topP: NaN }, RangeError, "top_p NaN"],
    [{ topK: 2.5 }, RangeError, "a whole number of at least 0"],
    [{ topK: -1 }, RangeError, "k -1"],
    [{ temperature: -0.1 }, RangeError, "a number of at least 0"],
    [{ repeatPenalty: 0 }, RangeError, "a number above 0"],
    [{ penaltyLastN: -2 }, RangeError, "penalty_last_n -2"],
    [{ logitBias: { x: 1 } }, RangeError, "map or object from token id"],
    [{ logitBias: { 1: NaN } }, RangeError, "map or object from token id"],
    [{ logitBias: 3 }, TypeError, "map or object from token id"],
    [{ mirostatTau: -1 }, RangeError, "tau -1"],
    [{ dryMultiplier: 1, drySequenceBreakers: [""] }, RangeError, "a list of texts and token ids"],
    [{ seed: 1.5 }, RangeError, "seed 1.5"],
    [{ seed: "1" }, TypeError, "a whole number"],
    [{ samplers: "top_k" }, TypeError, "give an array of steps"],
    [{ samplers: [5] }, TypeError, 'give a name, an object with "name"'],
    [{ samplers: [], strategy: "fsd" }, RangeError, "give one of them"],
    [{ temp: 1, temperature: 1 }, RangeError, "given twice"],
    [{ topK: 1, top_k: 1 }, RangeError, "twice"],
    [{ poolSize: -1 }, RangeError, "poolSize -1"],
    [{ suppressTokens: 4 }, TypeError, "give a list of ids"],
  ];
  for (const [options, ErrorClass, message] of refused) {
    assertThrows(() => names(options), ErrorClass, message, JSON.stringify(options));
  }
});

Deno.test("no two steps share a name", () => {
  const all = [...samplingSteps.values()].flatMap((step) => [step.name, ...step.aliases]);
  assertEquals(new Set(all).size, all.length);
  for (const name of all) assertEquals(getSamplingStep(name), getSamplingStep(`sample.${name}`));
  assert(SAMPLER_OPTION_NAMES.has("topNSigma"));
});

Deno.test("an answer is drawn where its chain does not end with the best token", () => {
  const drawn = [{ temperature: 1 }, { top_p: 0.5 }, { seed: 3 }, { samplers: [] }];
  const greedy = [{}, { repeatPenalty: 1.1, maxTokens: 3, stop: ["a"] }, {
    temperature: undefined,
  }];
  assertEquals(drawn.map(isDrawn), [true, true, true, true]);
  assertEquals(greedy.map(isDrawn), [false, false, false]);
});
