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

/** An integer; beyond 2^53 rounded (ONNX uses 2^63-1 for "to the end"). */
export function int(fallback: number, range?: VersionRange): OnnxAttributeRule<number>;
export function int(
  fallback?: undefined,
  range?: VersionRange,
): OnnxAttributeRule<number | undefined>;
export function int(
  fallback?: number,
  range: VersionRange = {},
): OnnxAttributeRule<number | undefined> {
  return { kind: "int", fallback, ...range };
}

/** A number. */
export function float(fallback: number, range?: VersionRange): OnnxAttributeRule<number>;
export function float(
  fallback?: undefined,
  range?: VersionRange,
): OnnxAttributeRule<number | undefined>;
export function float(
  fallback?: number,
  range: VersionRange = {},
): OnnxAttributeRule<number | undefined> {
  return { kind: "float", fallback, ...range };
}

/** A word; `choices` lists the allowed ones. */
export function text(
  fallback: string,
  choices?: readonly string[],
  range?: VersionRange,
): OnnxAttributeRule<string>;
export function text(
  fallback?: undefined,
  choices?: readonly string[],
  range?: VersionRange,
): OnnxAttributeRule<string | undefined>;
export function text(
  fallback?: string,
  choices?: readonly string[],
  range: VersionRange = {},
): OnnxAttributeRule<string | undefined> {
  return { kind: "string", fallback, ...choices && { choices }, ...range };
}

/** A list of integers. */
export function ints(
  fallback: readonly number[],
  range?: VersionRange,
): OnnxAttributeRule<readonly number[]>;
export function ints(
  fallback?: undefined,
  range?: VersionRange,
): OnnxAttributeRule<readonly number[] | undefined>;
export function ints(
  fallback?: readonly number[],
  range: VersionRange = {},
): OnnxAttributeRule<readonly number[] | undefined> {
  return { kind: "ints", fallback, ...range };
}

/** A list of 64-bit integers, exact. */
export function bigints(
  range: VersionRange = {},
): OnnxAttributeRule<readonly bigint[] | undefined> {
  return { kind: "ints", exact: true, ...range };
}

/** A 64-bit integer, exact. */
export function bigint(range: VersionRange = {}): OnnxAttributeRule<bigint | undefined> {
  return { kind: "int", exact: true, ...range };
}

/** A list of numbers. */
export function floats(
  fallback: readonly number[],
  range?: VersionRange,
): OnnxAttributeRule<readonly number[]>;
export function floats(
  fallback?: undefined,
  range?: VersionRange,
): OnnxAttributeRule<readonly number[] | undefined>;
export function floats(
  fallback?: readonly number[],
  range: VersionRange = {},
): OnnxAttributeRule<readonly number[] | undefined> {
  return { kind: "floats", fallback, ...range };
}

/** A list of words. */
export function texts(
  range: VersionRange = {},
): OnnxAttributeRule<readonly string[] | undefined> {
  return { kind: "strings", ...range };
}

/** A tensor. */
export function tensor(range: VersionRange = {}): OnnxAttributeRule<OnnxTensor | undefined> {
  return { kind: "tensor", ...range };
}

/** A body. */
export function graph(): OnnxAttributeRule<OnnxGraph> {
  return { kind: "graph", required: true };
}

/** A type. */
export function type(): OnnxAttributeRule<OnnxType | undefined> {
  return { kind: "type" };
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
  given: ReadonlyMap<string, OnnxAttribute>,
  version: number,
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
  if (rule.choices && !rule.choices.includes(attribute.value as string)) {
    throw new TypeError(
      `attribute "${name}" must be one of ${rule.choices.join(", ")}: it is ${
        JSON.stringify(attribute.value)
      }`,
    );
  }
  return attribute.value;
}
