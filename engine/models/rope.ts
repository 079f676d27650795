// Inverse frequencies of rotary positions and the rules that stretch them for longer contexts. Each rule
// maps the plain frequencies to new ones, so the graph only ever sees a table of numbers. Sources: linear
// (position interpolation), llama3 (Llama 3.1 model card), yarn (arXiv 2309.00071, §3.2 and eq. 22 as
// published checkpoints use it). Left out: "dynamic" and "longrope", whose frequencies change with the length
// of the text and need cached keys to be rotated again; they are refused by name.

import { FormatError, UnsupportedError } from "../errors.ts";
import type { MetadataValue } from "../formats/source.ts";

/** Frequencies in radians per position, and the factor on cosines and sines. */
export interface RopeFrequencies {
  readonly inverse: Float32Array;
  readonly magnitude: number;
}

/** What a rule may use. */
export interface RopeOptions {
  /** Rotated channels of a head. */
  readonly dim: number;
  readonly theta: number;
  /** Trained context length, for rules whose file leaves the original length out. */
  readonly context: number;
  /** The file's record of the rule, if it has one. */
  readonly scaling: Readonly<Record<string, MetadataValue>> | undefined;
  /** Divisors per frequency that some GGUF files store. */
  readonly factors?: Float32Array | undefined;
  /** Path or URL, for messages. */
  readonly file: string;
}

interface RuleInput extends RopeOptions {
  readonly plain: Float64Array;
  /** A positive number of the record under one of its spellings. */
  value(spellings: readonly string[], fallback?: number): number;
}

interface RuleResult {
  readonly inverse: Float64Array;
  readonly magnitude: number;
}

const FACTOR = ["factor"];
const ORIGINAL = ["original_max_position_embeddings", "original_context_length"];

const RULES: Readonly<Record<string, (input: RuleInput) => RuleResult>> = {
  default: ({ plain }) => ({ inverse: plain, magnitude: 1 }),
  linear: ({ plain, value }) => {
    const factor = value(FACTOR);
    return { inverse: plain.map((f) => f / factor), magnitude: 1 };
  },
  llama3,
  yarn,
};

/**
 * Frequencies of one rotary table.
 *
 * @throws {UnsupportedError} For a rule that is not built. @throws {FormatError} For a bad number in it.
 */
export function ropeFrequencies(options: RopeOptions): RopeFrequencies {
  const { dim, theta, scaling, factors, file } = options;
  const plain = Float64Array.from({ length: dim / 2 }, (_, i) => theta ** (-2 * i / dim));
  const name = ruleName(scaling);
  const rule = Object.hasOwn(RULES, name) ? RULES[name] : undefined;
  if (!rule) {
    throw new UnsupportedError(
      `rotary scaling "${name}" is not built: known are ${Object.keys(RULES).join(", ")}`,
      { file },
    );
  }
  const { inverse, magnitude } = rule({ ...options, plain, value: reader(scaling, file) });
  if (factors && factors.length !== inverse.length) {
    throw new FormatError(
      `holds ${factors.length} rotary factors where ${inverse.length} are needed`,
      { file },
    );
  }
  return {
    inverse: Float32Array.from(inverse, (f, i) => f / (factors?.[i] ?? 1)),
    magnitude,
  };
}

function ruleName(scaling: RopeOptions["scaling"]): string {
  const name = scaling?.rope_type ?? scaling?.type ?? "default";
  // "none" is how GGUF says that nothing is stretched.
  return name === "none" ? "default" : String(name);
}

function reader(scaling: RopeOptions["scaling"], file: string): RuleInput["value"] {
  return (spellings, fallback) => {
    const key = spellings.find((name) => typeof scaling?.[name] === "number");
    const value = key === undefined ? fallback : scaling![key] as number;
    if (value === undefined || !(value > 0) || !Number.isFinite(value)) {
      throw new FormatError(`must be a number above 0, and is ${value}`, {
        file,
        place: `rotary scaling, ${spellings[0]}`,
      });
    }
    return value;
  };
}

// Long waves are slowed by the factor, short ones kept, those between are blended.
function llama3({ plain, value }: RuleInput): RuleResult {
  const factor = value(FACTOR);
  const low = value(["low_freq_factor"]);
  const high = value(["high_freq_factor"]);
  const original = value(ORIGINAL);
  const inverse = plain.map((frequency) => {
    const turns = original * frequency / (2 * Math.PI);
    if (turns < low) return frequency / factor;
    if (turns > high) return frequency;
    const blend = (turns - low) / (high - low);
    return (1 - blend) * frequency / factor + blend * frequency;
  });
  return { inverse, magnitude: 1 };
}

function yarn({ plain, dim, theta, context, scaling, value }: RuleInput): RuleResult {
  const factor = value(FACTOR);
  const original = value(ORIGINAL, context);
  const boundary = (turns: number) =>
    dim * Math.log(original / (turns * 2 * Math.PI)) / (2 * Math.log(theta));
  const truncate = scaling?.truncate !== false;
  const fast = boundary(value(["beta_fast", "yarn_beta_fast"], 32));
  const slow = boundary(value(["beta_slow", "yarn_beta_slow"], 1));
  const from = Math.max(truncate ? Math.floor(fast) : fast, 0);
  const to = Math.min(truncate ? Math.ceil(slow) : slow, dim - 1);
  const width = to === from ? 0.001 : to - from;
  const inverse = plain.map((frequency, i) => {
    const stretched = Math.min(Math.max((i - from) / width, 0), 1);
    return stretched * frequency / factor + (1 - stretched) * frequency;
  });
  return { inverse, magnitude: yarnMagnitude(factor, value, scaling) };
}

function yarnMagnitude(
  factor: number,
  value: RuleInput["value"],
  scaling: RopeOptions["scaling"],
): number {
  const temperature = (weight: number) => factor <= 1 ? 1 : 0.1 * weight * Math.log(factor) + 1;
  if (typeof scaling?.attention_factor === "number") return scaling.attention_factor;
  if (scaling?.mscale && scaling?.mscale_all_dim) {
    return temperature(value(["mscale"])) / temperature(value(["mscale_all_dim"]));
  }
  return temperature(1) * value(["attn_factor", "yarn_attn_factor"], 1);
}
