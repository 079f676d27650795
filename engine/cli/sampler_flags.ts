// Flags that say how tokens are chosen. A sampling step's record names its options, its flags and whether
// they ask for chance; what stands here belongs to no step.

import { OBJECT } from "../record.ts";
import { STEP_OPTIONS, type StepOption } from "../decode/sampling/options.ts";
import type { SamplerOptions } from "../decode/sampling/sampler_options.ts";
import { type Flag, type Flags, type ParsedLine, UsageError } from "./args.ts";

/** A flag and the option that it sets. */
interface SamplerFlag {
  readonly name: string;
  readonly option: string;
  readonly flag: Flag;
  readonly asksForChance: boolean;
}

/** `topK` to `top-k`. */
function flagName(option: string): string {
  return option.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** The flag that is named after an option: of a parameter that has one, or of a version. */
function flagsOf({ option, step, parameter }: StepOption): SamplerFlag[] {
  const { asksForChance, version } = step;
  if (parameter === undefined) {
    const numbers = STEP_OPTIONS.map((one) => one.option === option ? one.step.version!.number : 0);
    const flag: Flag = { type: "integer", min: 0, max: Math.max(...numbers), help: version!.help };
    return [{ name: flagName(option), option, flag, asksForChance }];
  }
  const { options, flag: help, flagOption = options![0], limits } = step.rules[parameter]!;
  if (option !== flagOption || !help) return [];
  const { min, max, integer } = limits!;
  return [{
    name: flagName(option),
    option,
    asksForChance,
    flag: {
      type: integer ? "integer" : "number",
      ...min > -Infinity && { min },
      ...max < Infinity && { max },
      help,
    },
  }];
}

/** Flags of all sampling steps. */
export const STEP_FLAGS: readonly SamplerFlag[] = STEP_OPTIONS.flatMap(flagsOf);

const OWN_FLAGS = {
  greedy: { type: "boolean", help: "always the most probable token (the default)" },
  seed: { type: "integer", min: 0, help: "same seed, same answer; alone it asks for chance" },
  sampling: {
    type: "string",
    value: "JSON",
    help: 'any sampler options, e.g. \'{"samplers":["min_p","temperature"],"minP":0.1}\'',
  },
} as const satisfies Flags;

/**
 * How tokens are chosen; without any that asks for chance, greedily. Flags of steps are there too, but only
 * {@linkcode samplerOptions} reads them.
 */
export const SAMPLER_FLAGS: typeof OWN_FLAGS = {
  ...Object.fromEntries(STEP_FLAGS.map(({ name, flag }) => [name, flag])),
  ...OWN_FLAGS,
};

/**
 * Sampler options for `generate` from the flags given.
 *
 * @throws {UsageError} If `--greedy` stands beside a flag that asks for chance, or JSON is broken.
 */
export function samplerOptions(flags: ParsedLine<typeof SAMPLER_FLAGS>["flags"]): SamplerOptions {
  const { greedy, sampling, seed } = flags;
  const values = flags as Readonly<Record<string, unknown>>;
  const given = STEP_FLAGS.filter(({ name }) => values[name] !== undefined);
  if (greedy && (sampling || given.some(({ asksForChance }) => asksForChance))) {
    throw new UsageError("--greedy stands for itself: leave other samplers out");
  }
  return {
    ...parseSampling(sampling),
    ...Object.fromEntries(given.map(({ name, option }) => [option, values[name]])),
    ...seed !== undefined && { seed },
    ...greedy && { temperature: 0 },
  };
}

function parseSampling(text: string | undefined): SamplerOptions {
  if (text === undefined) return {};
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new UsageError(`--sampling is no JSON: ${(error as Error).message}`);
  }
  if (OBJECT.accepts(value)) return value;
  throw new UsageError("--sampling takes a JSON object of sampler options");
}
