// Inverse frequencies of rotary positions and the rules that stretch them for longer contexts. Each rule
// maps the plain frequencies to new ones, so the graph only ever sees a table of numbers. Sources: linear
// (position interpolation), llama3 (Llama 3.1 model card), yarn (arXiv 2309.00071, §3.2 and eq. 22 as
// published checkpoints use it), longrope (arXiv 2402.13753, as Phi-3 uses it). "dynamic" changes nothing up to
// the trained length, and contexts are never longer. The frequencies of longrope depend on how long the
// whole text is, so a second set comes with the length beyond which it counts.

import { FormatError, UnsupportedError } from "../errors.ts";
import type { MetadataValue } from "../formats/source.ts";

/** Frequencies in radians per position, and the factor on cosines and sines. */
export interface RopeFrequencies {
  readonly inverse: Float32Array;
  readonly magnitude: number;
  /** Frequencies of texts that are longer than `beyond` tokens. */
  readonly long?: { readonly inverse: Float32Array; readonly beyond: number };
}

/** What a rule may use. */
export interface RopeOptions {
  /** Rotated channels of a head. */
  readonly dim: number;
  readonly theta: number;
  /** Trained context length, for rules whose file leaves the original length out. */
  readonly context: number;
  /** Length before stretching, where the file has it outside the rule's record. */
  readonly original?: number | undefined;
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
  readonly long?: { readonly inverse: Float64Array; readonly beyond: number };
}

/** Fields of a record that each rule reads. */
export const RULE_FIELDS: Readonly<Record<string, readonly string[]>> = {
  default: ["mrope_section"],
  linear: ["factor"],
  dynamic: ["factor"],
  llama3: ["factor", "low_freq_factor", "high_freq_factor"],
  longrope: ["factor", "short_factor", "long_factor", "attention_factor"],
  yarn: [
    ...["factor", "attention_factor", "yarn_attn_factor", "yarn_log_multiplier"],
    ...["beta_fast", "yarn_beta_fast", "beta_slow", "yarn_beta_slow", "truncate"],
    ...["mscale", "mscale_all_dim"],
  ],
  // By place in pictures (build.ts); of texts all axes have the same places, so nothing is changed.
  mrope: ["mrope_section"],
};
/** Fields that may stand beside any rule. */
const COMMON_FIELDS: readonly string[] = [
  ...["rope_type", "type", "attn_factor"],
  // Read elsewhere, too.
  ...["rope_theta", "partial_rotary_factor", "max_position_embeddings"],
  // A length that is for rules that ask for it, and how the model came to be.
  ...["original_max_position_embeddings", "original_context_length", "finetuned"],
];
/** Fields that change frequencies or attention in a way that is not built. */
const NOT_BUILT: readonly string[] = [
  ...["alpha", "short_mscale", "long_mscale", "mrope_interleaved", "llama_4_scaling_beta"],
];

const FACTOR = ["factor"];
const ORIGINAL = ["original_max_position_embeddings", "original_context_length"];

const RULES: Readonly<Record<string, (input: RuleInput) => RuleResult>> = {
  default: ({ plain }) => ({ inverse: plain, magnitude: 1 }),
  linear: ({ plain, value }) => {
    const factor = value(FACTOR);
    return { inverse: plain.map((f) => f / factor), magnitude: 1 };
  },
  dynamic: ({ plain }) => ({ inverse: plain, magnitude: 1 }),
  llama3,
  longrope,
  yarn,
  mrope: ({ plain }) => ({ inverse: plain, magnitude: 1 }),
};

/**
 * Frequencies of one rotary table.
 *
 * @throws {UnsupportedError} For a rule that is not built. @throws {FormatError} For a bad number in it.
 */
export function ropeFrequencies(options: RopeOptions): RopeFrequencies {
  const { dim, theta, scaling, factors, file } = options;
  const plain = Float64Array.from({ length: dim / 2 }, (_, i) => theta ** (-2 * i / dim));
  checkRecord(scaling, file);
  const name = ruleName(scaling);
  const rule = Object.hasOwn(RULES, name) ? RULES[name] : undefined;
  if (!rule) {
    throw new UnsupportedError(
      `rotary scaling "${name}" is not built: known are ${Object.keys(RULES).join(", ")}`,
      { file },
    );
  }
  const value = reader(scaling, file);
  const { inverse, magnitude, long } = rule({ ...options, plain, value });
  if (factors && factors.length !== inverse.length) {
    throw new FormatError(
      `holds ${factors.length} rotary factors where ${inverse.length} are needed`,
      { file },
    );
  }
  const stretched = (values: Float64Array) =>
    Float32Array.from(values, (f, i) => f / (factors?.[i] ?? 1));
  return {
    inverse: stretched(inverse),
    // GGUF has this factor beside any rule; two of them count it themselves.
    magnitude: name === "yarn" || name === "longrope"
      ? magnitude
      : magnitude * value(["attn_factor"], 1),
    ...long && { long: { inverse: stretched(long.inverse), beyond: long.beyond } },
  };
}

/** Fields of a record that its rule does not read. */
export function unreadRopeFields(record: NonNullable<RopeOptions["scaling"]>): string[] {
  // A rule of GGUF that has a factor and no name is the linear one.
  const isNamed = record.rope_type !== undefined || record.type !== undefined;
  const rule = !isNamed && record.factor !== undefined ? "linear" : ruleName(record);
  const known = [...COMMON_FIELDS, ...RULE_FIELDS[rule] ?? []];
  return Object.keys(record).filter((field) => !known.includes(field));
}

function checkRecord(scaling: RopeOptions["scaling"], file: string): void {
  for (const [field, value] of Object.entries(scaling ?? {})) {
    const at = { file, place: `rotary scaling, ${field}` };
    if (typeof value === "number" && !Number.isFinite(value)) {
      throw new FormatError(`must be a number above 0, and is ${value}`, at);
    }
    if (NOT_BUILT.includes(field) && value !== null) {
      throw new UnsupportedError("changes rotations in a way that is not built", at);
    }
  }
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
  if (typeof scaling?.attention_factor === "number") return value(["attention_factor"]);
  // Where GGUF files have this, attention itself takes the temperature, and the table none.
  if (typeof scaling?.yarn_log_multiplier === "number") return 1;
  if (scaling?.mscale && scaling?.mscale_all_dim) {
    return temperature(value(["mscale"])) / temperature(value(["mscale_all_dim"]));
  }
  return temperature(1) * value(["attn_factor", "yarn_attn_factor"], 1);
}

// Every frequency has a divisor of its own: a mild list up to the original length, a strong one beyond.
function longrope(input: RuleInput): RuleResult {
  const { plain, context, scaling, original, value } = input;
  const beyond = value(ORIGINAL, original ?? context);
  const divided = (list: string) => {
    const divisors = divisorsOf(input, list);
    return plain.map((f, i) => f / divisors[i]!);
  };
  const factor = context / beyond;
  const stated = ["attention_factor", "attn_factor"];
  const magnitude = stated.some((name) => typeof scaling?.[name] === "number")
    ? value(stated)
    : factor <= 1
    ? 1
    : Math.sqrt(1 + Math.log(factor) / Math.log(beyond));
  const inverse = divided("short_factor");
  return { inverse, magnitude, long: { inverse: divided("long_factor"), beyond } };
}

function divisorsOf({ plain, scaling, file }: RuleInput, list: string): readonly number[] {
  const values = scaling?.[list];
  const fits = Array.isArray(values) && values.length === plain.length &&
    values.every((value) => typeof value === "number" && value > 0);
  if (fits) return values as number[];
  throw new FormatError(`must be ${plain.length} numbers above 0`, {
    file,
    place: `rotary scaling, ${list}`,
  });
}
