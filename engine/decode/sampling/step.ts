// What a sampling step is: a name, its parameters with defaults and limits, and a function of numbers
// that narrows or reshapes the candidates. Steps know nothing of each other; a chain is a list of them.
// `defineStep` binds the two halves of the record in types: rules give the values, `apply` receives them.

import type { Candidates } from "./candidates.ts";
import type { TokenHistory } from "./history.ts";
import type { TokenTable } from "./token_table.ts";

/** How one parameter is read. */
export interface ParameterRule<T> {
  /** Value where none is given. */
  readonly default: T;
  /** Other names of the parameter. */
  readonly aliases?: readonly string[];
  /** What is allowed, for error texts: "a number from 0 to 1". */
  readonly allowed: string;
  /** Sampler options that set it, in camelCase; synonyms stand behind the usual name. */
  readonly options?: readonly string[];
  /** What its flag does, one line; `--sampling` alone sets it where there is none. */
  readonly flag?: string;
  /** The option that the flag is named after, where it is not the first. */
  readonly flagOption?: string;
  /** Limits, if it is a number. */
  readonly limits?: { readonly min: number; readonly max: number; readonly integer: boolean };
  /** The value, or undefined if it is not allowed. */
  parse(value: unknown): T | undefined;
}

/** A number by which an option chooses one of several steps; 0 is none of them. */
export interface StepVersion {
  readonly option: string;
  readonly number: number;
  readonly help: string;
}

/** What a step may use besides candidates and parameters. */
export interface StepContext {
  /** Tokens so far. */
  readonly history: TokenHistory;
  /** Surprise limit of mirostat in bits; NaN before its first token. */
  mu: number;
  /** Next random number in [0, 1). */
  coin(): number;
  /** Scratch: numbers by token id. */
  table(): TokenTable;
  /** Scratch: at least `length` integers with undefined content. */
  integers(length: number): Int32Array;
  /** Scratch: at least `length` doubles with undefined content. */
  doubles(length: number): Float64Array;
  /** Whether the text of a token holds one of the sequence breakers. */
  isBreaker(id: number, breakers: SequenceBreakers): boolean;
}

/**
 * Texts or token ids at which DRY ends a sequence.
 * @category Sampling
 */
export type SequenceBreakers = readonly (string | number)[];

/** A step with its parameter values in place. */
export interface BoundStep {
  /** Canonical name of the step. */
  readonly name: string;
  /** All parameters, by canonical name. */
  readonly parameters: Readonly<Record<string, unknown>>;
  /** Whether with these values the step never changes anything. */
  readonly isOff: boolean;
  /** Whether with these values the step leaves the best candidate only. */
  readonly isGreedy: boolean;
  /** Whether the best candidate always stays the best. */
  readonly keepsBest: boolean;
  /** Whether it settles which distribution the token is drawn from, so that no draw step need follow. */
  readonly isDraw: boolean;
  /** Whether with these values it asks for the texts of tokens. */
  readonly needsTexts: boolean;
  /** Narrows or reshapes the candidates; at least one stays. */
  apply(candidates: Candidates, context: StepContext): void;
  /** Learns that a token of this probability (in the final distribution) was taken. */
  accept(probability: number, context: StepContext): void;
}

/** A sampling step: one row of the table in steps/mod.ts. */
export interface SamplingStep {
  /** Canonical name. */
  readonly name: string;
  /** Other names. */
  readonly aliases: readonly string[];
  /** Parameters by canonical name. */
  readonly rules: Readonly<Record<string, ParameterRule<unknown>>>;
  /** Values with which the step is off, of the parameters that switch it. */
  readonly neutral: Readonly<Record<string, unknown>>;
  /** Whether its options ask for a draw; without any that do, the best token is taken. */
  readonly asksForChance: boolean;
  /** How an option of several steps chooses this one. */
  readonly version: StepVersion | undefined;
  /** Puts parameter values, complete and checked, in place. */
  bind(parameters: Readonly<Record<string, unknown>>): BoundStep;
}

/** What a step's file states. */
export interface StepDefinition<P> {
  /** Canonical name. */
  readonly name: string;
  /** Other names. */
  readonly aliases?: readonly string[];
  /** Whether the best candidate always stays the best. */
  readonly keepsBest?: boolean;
  /** Whether it settles which distribution the token is drawn from. */
  readonly isDraw?: boolean;
  /** False where it only moves logits, so that its options alone leave the answer greedy. */
  readonly asksForChance?: false;
  /** How an option of several steps chooses this one. */
  readonly version?: StepVersion;
  /** Rule of each parameter. */
  readonly rules: { readonly [K in keyof P]: ParameterRule<P[K]> };
  /** Values with which the step is off, of the parameters that switch it. */
  readonly neutral?: Readonly<Partial<P>>;
  /** Whether with these values the step never changes anything. */
  isOff?(parameters: P): boolean;
  /** Whether with these values it asks for the texts of tokens. */
  needsTexts?(parameters: P): boolean;
  /** Whether with these values the step leaves the best candidate only. */
  isGreedy?(parameters: P): boolean;
  /** Narrows or reshapes the candidates; at least one stays. */
  apply(candidates: Candidates, parameters: P, context: StepContext): void;
  /** Learns that a token of this probability was taken. */
  accept?(probability: number, parameters: P, context: StepContext): void;
}

/** Makes the table row of a step. */
export function defineStep<P extends object>(definition: StepDefinition<P>): SamplingStep {
  const { name, aliases = [], keepsBest = false, isDraw = false, rules } = definition;
  return {
    name,
    aliases,
    asksForChance: definition.asksForChance ?? true,
    version: definition.version,
    neutral: (definition.neutral ?? {}) as Readonly<Record<string, unknown>>,
    rules: rules as Readonly<Record<string, ParameterRule<unknown>>>,
    bind(parameters) {
      const values = parameters as P;
      return {
        name,
        parameters,
        keepsBest,
        isDraw,
        isOff: definition.isOff?.(values) ?? false,
        needsTexts: definition.needsTexts?.(values) ?? false,
        isGreedy: definition.isGreedy?.(values) ?? false,
        apply: (candidates, context) => definition.apply(candidates, values, context),
        accept: (probability, context) => definition.accept?.(probability, values, context),
      };
    },
  };
}

/** Limits of a number, and how it may be given. */
export interface NumberLimits
  extends Pick<ParameterRule<number>, "aliases" | "options" | "flag" | "flagOption"> {
  /** Least value; -Infinity if absent. */
  readonly min?: number;
  /** Greatest value; Infinity if absent. */
  readonly max?: number;
  /** Whether `min` itself is not allowed. */
  readonly above?: boolean;
  /** Whether it is a whole number. */
  readonly integer?: boolean;
}

/** Rule of a finite number within limits, `value` where none is given. */
export function number(value: number, limits: NumberLimits = {}): ParameterRule<number> {
  const { min = -Infinity, max = Infinity, above = false, integer = false, ...given } = limits;
  return {
    ...given,
    default: value,
    limits: { min, max, integer },
    allowed: describe(integer ? "a whole number" : "a number", { min, max, above }),
    parse(value) {
      if (typeof value !== "number" || !Number.isFinite(value)) return undefined;
      if (integer && !Number.isInteger(value)) return undefined;
      return value > max || value < min || (above && value === min) ? undefined : value;
    },
  };
}

/** Rule of a number from 0 to 1. */
export const share = (value: number, given: NumberLimits = {}): ParameterRule<number> =>
  number(value, { min: 0, max: 1, ...given });

/** Rule of a whole number of at least 0. */
export const count = (value: number, given: NumberLimits = {}): ParameterRule<number> =>
  number(value, { min: 0, integer: true, ...given });

function describe(
  kind: string,
  { min, max, above }: { readonly min: number; readonly max: number; readonly above: boolean },
): string {
  if (min === -Infinity) return max === Infinity ? kind : `${kind} up to ${max}`;
  const from = above ? `above ${min}` : max === Infinity ? `of at least ${min}` : `from ${min}`;
  return max === Infinity ? `${kind} ${from}` : `${kind} ${from} to ${max}`;
}
