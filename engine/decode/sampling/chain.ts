// A sampling chain as data: an array of step names, or of records with a name and parameters. Here it is
// checked against the table of steps and bound. Whatever cannot be used is an error that names it and
// lists what is allowed; nothing is skipped. Any order works: a step that settles the draw narrows the
// candidates like any other, and a chain without one ends in a draw by probability.

import { ownStep, type SamplingFunction } from "./own_step.ts";
import type { BoundStep, SamplingStep } from "./step.ts";
import { getSamplingStep } from "./steps/mod.ts";

/**
 * A named step of a chain: its name, or name and parameters, as in `{ name: "top_p", top_p: 0.9 }`.
 * @category Sampling
 */
export type NamedEntry = string | { readonly name: string; readonly [parameter: string]: unknown };

/**
 * A step of a chain: a named one, or a function of one's own.
 * @category Sampling
 */
export type ChainEntry = NamedEntry | SamplingFunction;

/**
 * Checks and binds a chain. Parameters that are not given have their defaults.
 *
 * @throws {RangeError} For an unknown step or parameter, or a value outside its limits.
 * @throws {TypeError} For an entry or value of the wrong kind.
 */
export function bindChain(entries: readonly ChainEntry[]): BoundStep[] {
  const steps = entries.map((entry) => {
    if (typeof entry === "function") return ownStep(entry);
    const { name, parameters } = readEntry(entry);
    const step = getSamplingStep(name);
    return step.bind(readParameters(step, parameters));
  });
  if (!steps.some((step) => step.isDraw)) steps.push(getSamplingStep("draw").bind({}));
  return steps;
}

/**
 * Name and parameters of an entry.
 *
 * @throws {TypeError} If it is neither a name nor a record with one.
 */
export function readEntry(
  entry: NamedEntry,
): { name: string; parameters: Record<string, unknown> } {
  if (typeof entry === "string") return { name: entry, parameters: {} };
  if (typeof entry !== "object" || entry === null || typeof entry.name !== "string") {
    throw new TypeError(
      `Cannot use ${
        showValue(entry)
      } as a sampling step: give a name, an object with "name", or a function`,
    );
  }
  const { name, ...parameters } = entry;
  return { name, parameters };
}

/** A wrong value for a message; JSON has no word for some numbers. */
export function showValue(value: unknown): string {
  return typeof value === "number" || typeof value === "bigint"
    ? String(value)
    : JSON.stringify(value);
}

/**
 * All parameters of a step from those that are given; undefined and null count as not given.
 *
 * @throws {RangeError} For an unknown parameter or a value outside its limits.
 * @throws {TypeError} For a value of the wrong kind.
 */
export function readParameters(
  step: SamplingStep,
  given: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const [name, rule] of Object.entries(step.rules)) values[name] = rule.default;
  for (const [key, value] of Object.entries(given)) {
    if (value === undefined || value === null) continue;
    const name = parameterName(step, key);
    if (name === undefined) {
      const known = Object.keys(step.rules).join(", ") || "none";
      throw new RangeError(
        `Unknown parameter "${key}" of sampling step ${step.name}: allowed are ${known}`,
      );
    }
    values[name] = readValue(step, name, value);
  }
  return values;
}

/** Canonical name of a parameter given by any of its names. */
export function parameterName(step: SamplingStep, key: string): string | undefined {
  if (Object.hasOwn(step.rules, key)) return key;
  return Object.keys(step.rules).find((name) => step.rules[name]!.aliases?.includes(key));
}

function readValue(step: SamplingStep, name: string, value: unknown): unknown {
  const rule = step.rules[name]!;
  const parsed = rule.parse(value);
  if (parsed !== undefined) return parsed;
  const Wrong = typeof value === typeof rule.default ? RangeError : TypeError;
  throw new Wrong(
    `Cannot use ${name} ${
      showValue(value)
    } in sampling step ${step.name}: it must be ${rule.allowed}`,
  );
}
