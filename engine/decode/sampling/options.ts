// The sampler options that people know from elsewhere (llama.cpp, OpenAI, Hugging Face), turned into a
// chain. Names are accepted in camelCase and snake_case. Rules:
// - Without any option that asks for chance the token is the best one (greedy), after penalties.
// - The default order is: logit bias, penalties, DRY, top-n-sigma, top-k, temperature, TFS, typical,
//   top-p, min-p, XTC, draw. So probabilities of filters are those after temperature, as in the papers
//   and in OpenAI's API; llama.cpp applies temperature last, and `samplers` can ask for that.
// - `samplers` gives an own order. A name in it takes its values from the other options, and its
//   defaults where there are none. An option whose step is not in it is an error, not ignored.
// - `strategy` is one step by name or record, as Inferflow's configuration has it, put after the others.

import { meantBy } from "../../option_keys.ts";
import {
  bindChain,
  type ChainEntry,
  type NamedEntry,
  parameterName,
  readEntry,
  readParameters,
  showValue,
} from "./chain.ts";
import type { SamplerOptions } from "./sampler_options.ts";
import type { BoundStep, SamplingStep } from "./step.ts";
import { getSamplingStep, samplingSteps } from "./steps/mod.ts";

/** An option that a step's record names. */
export interface StepOption {
  /** In camelCase. */
  readonly option: string;
  /** The step that it belongs to; one of several where it is their version. */
  readonly step: SamplingStep;
  /** The parameter that it sets; undefined where it is the version. */
  readonly parameter: string | undefined;
}

/** Every option of every step, in the order of their table; a step's first option of a parameter is its usual name. */
export const STEP_OPTIONS: readonly StepOption[] = [...samplingSteps.values()].flatMap((step) => [
  ...step.version ? [{ option: step.version.option, step, parameter: undefined }] : [],
  ...Object.entries(step.rules).flatMap(([parameter, { options = [] }]) =>
    options.map((option) => ({ option, step, parameter }))
  ),
]);

// A step with a version is chosen by its number; all others that options speak of have a place in the default order.
const ORDERED = STEP_OPTIONS.filter(({ step }) => !step.version);
const DEFAULT_ORDER: readonly string[] = [...new Set(ORDERED.map(({ step }) => step.name))];
const VERSIONED: ReadonlyMap<string, readonly SamplingStep[]> = Map.groupBy(
  [...samplingSteps.values()].filter(({ version }) => version),
  ({ version }) => version!.option,
);

// Parameters that a `strategy` record may carry beside those of its step.
const STRATEGY_OPTIONS = [
  ...["seed", "temperature", "poolSize", "eosBypassingMax"],
  ...["repetitionPenalty", "repeatPenalty", "penaltyLastN", "frequencyPenalty", "presencePenalty"],
];

/** Names of all sampler options, in camelCase; synonyms included. */
export const SAMPLER_OPTION_NAMES: ReadonlySet<string> = new Set([
  ...ORDERED.map(({ option }) => option),
  ...["seed", "suppressTokens", "samplers", "strategy", "poolSize", "eosBypassingMax"],
  ...STEP_OPTIONS.map(({ option }) => option),
]);

/** What options come to. */
export interface ResolvedOptions {
  /** Seed, if one was given. */
  readonly seed: number | undefined;
  /** The chain, with all parameters in place; steps that are off are left out. */
  readonly chain: readonly BoundStep[];
  /** How many times the end of the text is replaced. */
  readonly eosBypassingMax: number;
}

type Given = Map<string, unknown>;

/**
 * Checks options and makes the chain of them.
 *
 * @throws {RangeError} For an unknown option or step, a value outside its limits, options at odds.
 * @throws {TypeError} For a value of the wrong kind.
 */
export function resolveOptions(options: SamplerOptions): ResolvedOptions {
  const given = readGiven(options);
  const strategy = readStrategy(given);
  const seed = integerOption(given, "seed", Number.MIN_SAFE_INTEGER);
  const poolSize = integerOption(given, "poolSize", 0) ?? 0;
  const byStep = groupByStep(given);
  const versions = [...VERSIONED.keys()].flatMap((option) =>
    versionEntry(option, { number: given.get(option) ?? 0, byStep })
  );
  suppressTokens(given, byStep);

  const entries: ChainEntry[] = poolSize > 0 ? [{ name: "top_k", k: poolSize }] : [];
  const samplers = given.get("samplers");
  if (samplers !== undefined) {
    if (strategy) throw new RangeError("Cannot use both samplers and strategy: give one of them");
    if (!Array.isArray(samplers)) {
      throw new TypeError("Cannot use samplers: give an array of steps");
    }
    entries.push(...samplers.map((entry) => listedEntry(entry, byStep)));
    refuseUnlisted(byStep);
  } else {
    const own = strategy && getSamplingStep(readEntry(strategy).name).name;
    const front = DEFAULT_ORDER.filter((name) => name !== own);
    const at = front.indexOf("top_k");
    entries.unshift(...switchedEntries(front.slice(0, at), byStep));
    entries.push(...switchedEntries(front.slice(at), byStep));
    if (strategy) entries.push(listedEntry(strategy, byStep));
  }
  entries.push(...versions);
  if (!asksForChance(given)) entries.push("greedy");

  return {
    seed: seed === -1 ? undefined : seed,
    chain: bindChain(entries).filter((step) => !step.isOff),
    eosBypassingMax: integerOption(given, "eosBypassingMax", 0) ?? 0,
  };
}

/** Options that stand beside those of the sampler, for who misspells one. */
const ANSWER_OPTIONS = [
  "maxTokens",
  "stop",
  "ignoreEos",
  "signal",
  "logprobs",
  "onContextFull",
  "keep",
  "forced",
];

/** `top_k` to `topK`; camelCase stays. */
function camelCase(name: string): string {
  return name.replace(/_+([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

// Options by camelCase name, without those that are undefined or null.
function readGiven(options: SamplerOptions): Given {
  const given: Given = new Map();
  for (const [key, value] of Object.entries(options)) {
    if (value === undefined || value === null) continue;
    const name = camelCase(key);
    if (!SAMPLER_OPTION_NAMES.has(name)) {
      const names = [...SAMPLER_OPTION_NAMES], own = [...ANSWER_OPTIONS, ...names];
      const near = meantBy(key, [...own, "contextLength"]);
      const whose = near === undefined || own.includes(near) ? "" : " of load()";
      throw new RangeError(
        near === undefined
          ? `Unknown sampler option "${key}": known are ${names.join(", ")}`
          : `Unknown option "${key}". Did you mean ${near}${whose}?`,
      );
    }
    if (given.has(name)) throw new RangeError(`Cannot use sampler option "${key}" twice`);
    given.set(name, value);
  }
  return given;
}

// Takes the strategy out of the options; what it carries for others joins them.
function readStrategy(given: Given): NamedEntry | undefined {
  const strategy = given.get("strategy") as NamedEntry | undefined;
  if (strategy === undefined) return undefined;
  const { name, parameters } = readEntry(strategy);
  const step = getSamplingStep(name);
  const own: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(parameters)) {
    const option = camelCase(key);
    const isOwn = parameterName(step, key) !== undefined;
    if (isOwn || !STRATEGY_OPTIONS.includes(option)) own[key] = value;
    else if (value !== undefined && value !== null) given.set(option, value);
  }
  return { name, ...own };
}

interface Chosen {
  readonly number: unknown;
  readonly byStep: ByStep;
}

type ByStep = Map<string, Record<string, unknown>>;

function groupByStep(given: Given): ByStep {
  const byStep: ByStep = new Map();
  for (const { option, step: { name }, parameter } of STEP_OPTIONS) {
    if (parameter === undefined || !given.has(option)) continue;
    const values = byStep.get(name) ?? {};
    if (parameter in values) throw new RangeError(`Cannot use ${option}: it is given twice`);
    values[parameter] = given.get(option);
    byStep.set(name, values);
  }
  return byStep;
}

// Steps of the default order that options speak of; the others are off.
function switchedEntries(names: readonly string[], byStep: ByStep): ChainEntry[] {
  return names.flatMap((name) => {
    const values = byStep.get(name);
    return values ? [{ name, ...getSamplingStep(name).neutral, ...values }] : [];
  });
}

// A step that was named: on, with its defaults, unless the options say otherwise.
function listedEntry(entry: ChainEntry, byStep: ByStep): ChainEntry {
  if (typeof entry === "function") return entry;
  const { name, parameters } = readEntry(entry);
  const step = getSamplingStep(name);
  const values = byStep.get(step.name) ?? {};
  byStep.delete(step.name);
  const isSwitched = Object.keys(values).some((key) => key in step.neutral);
  const base = isSwitched ? { ...step.neutral, ...values } : values;
  return { name: step.name, ...base, ...canonical(step.name, parameters) };
}

function canonical(stepName: string, parameters: Record<string, unknown>): Record<string, unknown> {
  const step = getSamplingStep(stepName);
  const named = Object.entries(parameters)
    .filter(([, value]) => value !== undefined && value !== null)
    .map(([key, value]) => [parameterName(step, key) ?? key, value]);
  return Object.fromEntries(named);
}

function refuseUnlisted(byStep: ByStep): void {
  for (const [name, values] of byStep) {
    const step = getSamplingStep(name);
    if (step.version) continue;
    if (step.bind(readParameters(step, { ...step.neutral, ...values })).isOff) continue;
    const { option } = ORDERED.find(({ step, parameter }) =>
      step.name === name && parameter! in values
    )!;
    throw new RangeError(
      `Cannot apply ${option}: samplers does not list its step. Add "${name}" to samplers`,
    );
  }
}

function suppressTokens(given: Given, byStep: ByStep): void {
  const tokens = given.get("suppressTokens");
  if (tokens === undefined) return;
  if (!Array.isArray(tokens)) throw new TypeError("Cannot use suppressTokens: give a list of ids");
  const step = getSamplingStep("logit_bias");
  const { bias } = readParameters(step, byStep.get("logit_bias") ?? {});
  const banned = tokens.map((id) => [id, -Infinity]);
  byStep.set("logit_bias", { bias: [...(bias as ReadonlyMap<number, number>), ...banned] });
}

/** The step that an option chooses by its number; none where it is 0. */
function versionEntry(option: string, { number, byStep }: Chosen): ChainEntry[] {
  const steps = VERSIONED.get(option)!;
  const step = steps.find(({ version }) => version!.number === number);
  if (!step && number !== 0) {
    const numbers = [0, ...steps.map(({ version }) => version!.number)].sort((a, b) => a - b);
    const known = `${numbers.slice(0, -1).join(", ")} or ${numbers.at(-1)}`;
    throw new RangeError(`Cannot use ${option} ${showValue(number)}: it must be ${known}`);
  }
  for (const one of steps) readParameters(one, byStep.get(one.name) ?? {}); // also where it is off
  return step ? [{ name: step.name, ...byStep.get(step.name) }] : [];
}

/**
 * Whether an answer with these options is drawn, so that it hangs on its seed; those that are none of a sampler are read
 * past.
 *
 * @throws {RangeError} If a name stands twice.
 */
export function isDrawn(options: Readonly<Record<string, unknown>>): boolean {
  const own = Object.entries(options).filter(([name]) => SAMPLER_OPTION_NAMES.has(camelCase(name)));
  return asksForChance(readGiven(Object.fromEntries(own)));
}

function asksForChance(given: Given): boolean {
  if (["samplers", "strategy", "seed", "poolSize"].some((name) => given.has(name))) return true;
  if ([...VERSIONED.keys()].some((option) => (given.get(option) ?? 0) !== 0)) return true;
  return ORDERED.some(({ option, step }) => given.has(option) && step.asksForChance);
}

function integerOption(given: Given, name: string, min: number): number | undefined {
  const value = given.get(name);
  if (value === undefined) return undefined;
  if (typeof value !== "number") {
    throw new TypeError(`Cannot use ${name} ${showValue(value)}: it must be a whole number`);
  }
  if (!Number.isSafeInteger(value) || value < min) {
    const least = min === Number.MIN_SAFE_INTEGER ? "" : ` of at least ${min}`;
    throw new RangeError(`Cannot use ${name} ${value}: it must be a whole number${least}`);
  }
  return value;
}
