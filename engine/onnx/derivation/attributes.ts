// Attributes of ONNX ops as data: kind, default, allowed words, and the versions that have them. Reading
// gives typed values and refuses what is unknown, mistyped, missing, or of another version, so that no
// attribute is ever ignored.

import type { OnnxAttribute, OnnxGraph, OnnxTensor, OnnxType } from "../file/model.ts";

/** Rule of one attribute. */
export interface OnnxAttributeRule<T = unknown> {
  readonly kind: Exclude<OnnxAttribute["kind"], "reference">;
  /** Value when it is absent. */
  readonly fallback?: T | undefined;
  /** True: an error when it is absent. */
  readonly required?: boolean;
  /** Words that it may be. */
  readonly choices?: readonly string[];
  /** First version of the op that has it. */
  readonly since?: number;
  /** Last version of the op that has it. */
  readonly until?: number;
  /** 64-bit integers as bigint. */
  readonly exact?: boolean;
  /** An integer as true or false. */
  readonly truth?: boolean;
}

/** Rules by name. */
export type OnnxAttributeRules = Readonly<Record<string, OnnxAttributeRule>>;

/** What reading gives: the type of each rule, `undefined` where it may be absent. */
export type OnnxAttributesOf<R extends OnnxAttributeRules> = {
  readonly [K in keyof R]: R[K] extends OnnxAttributeRule<infer T> ? T : never;
};

/** Versions in which an attribute exists; both ends included. */
export interface VersionRange {
  readonly since?: number;
  readonly until?: number;
}

/** Makes rules of one kind; without a fallback an attribute may be absent. */
interface RuleMaker<T> {
  (fallback?: undefined, range?: VersionRange): OnnxAttributeRule<T | undefined>;
  (fallback: T, range?: VersionRange): OnnxAttributeRule<T>;
}

function rulesOf<T>(kind: OnnxAttributeRule["kind"], more?: Partial<OnnxAttributeRule>) {
  return ((fallback?: T, range?: VersionRange) => ({
    ...{ kind, fallback },
    ...more,
    ...range,
  })) as RuleMaker<T>;
}

/** An integer; beyond 2^53 rounded (ONNX uses 2^63-1 for "to the end"). */
export const int: RuleMaker<number> = rulesOf("int");
/** An integer that says yes (anything but 0) or no. */
export const flag: RuleMaker<boolean> = rulesOf("int", { truth: true });
/** A 64-bit integer, exact. */
export const bigint: RuleMaker<bigint> = rulesOf("int", { exact: true });
/** A number. */
export const float: RuleMaker<number> = rulesOf("float");
/** A list of integers. */
export const ints: RuleMaker<readonly number[]> = rulesOf("ints");
/** A list of 64-bit integers, exact. */
export const bigints: RuleMaker<readonly bigint[]> = rulesOf("ints", { exact: true });
/** A list of numbers. */
export const floats: RuleMaker<readonly number[]> = rulesOf("floats");
/** A list of words. */
export const texts: RuleMaker<readonly string[]> = rulesOf("strings");
/** A tensor. */
export const tensor: RuleMaker<OnnxTensor> = rulesOf("tensor");
/** A type. */
export const type: RuleMaker<OnnxType> = rulesOf("type");

/** A word; `choices` lists the allowed ones. */
export function text<F extends string | undefined = undefined>(
  fallback?: F,
  { choices, range }: {
    readonly choices?: readonly string[] | undefined;
    readonly range?: VersionRange | undefined;
  } = {},
): OnnxAttributeRule<F extends string ? string : string | undefined> {
  return { kind: "string", fallback, ...choices && { choices }, ...range };
}

/** A body. */
export function graph(): OnnxAttributeRule<OnnxGraph> {
  return { kind: "graph", required: true };
}

/** The same rule for an attribute that must be there. */
export function required<T>(rule: OnnxAttributeRule<T>): OnnxAttributeRule<NonNullable<T>> {
  return { ...rule, required: true } as OnnxAttributeRule<NonNullable<T>>;
}

/**
 * Reads the attributes of a node.
 *
 * @param version Version of the op in force.
 * @throws {TypeError} On the first attribute that is unknown, missing, of another kind or no allowed word.
 */
export function readOnnxAttributes<R extends OnnxAttributeRules>(
  rules: R,
  { given, version }: {
    readonly given: ReadonlyMap<string, OnnxAttribute>;
    readonly version: number;
  },
): OnnxAttributesOf<R> {
  for (const name of given.keys()) {
    const rule = Object.hasOwn(rules, name) ? rules[name] : undefined;
    if (!rule) throw new TypeError(`attribute "${name}" is not supported`);
    if (!exists(rule, version)) {
      throw new TypeError(`attribute "${name}" does not exist in version ${version} of the op`);
    }
  }
  const read: Record<string, unknown> = {};
  for (const [name, rule] of Object.entries(rules)) {
    const attribute = given.get(name);
    if (attribute) read[name] = valueOf(name, rule, attribute);
    else if (rule.required && exists(rule, version)) {
      throw new TypeError(`attribute "${name}" is missing`);
    } else read[name] = rule.fallback;
  }
  return read as OnnxAttributesOf<R>;
}

function exists({ since = 0, until = Infinity }: OnnxAttributeRule, version: number): boolean {
  return version >= since && version <= until;
}

function valueOf(name: string, rule: OnnxAttributeRule, attribute: OnnxAttribute): unknown {
  if (attribute.kind !== rule.kind) {
    throw new TypeError(
      `attribute "${name}" must be of kind ${rule.kind}: it is ${attribute.kind}`,
    );
  }
  if (rule.exact && "exact" in attribute) return attribute.exact;
  if (rule.truth) return attribute.value !== 0;
  if (rule.choices && !rule.choices.includes(attribute.value as string)) {
    throw new TypeError(
      `attribute "${name}" must be one of ${rule.choices.join(", ")}: it is ${
        JSON.stringify(attribute.value)
      }`,
    );
  }
  return attribute.value;
}
