// Records that others wrote (specs, policies, configs, attributes of ops), checked by rules that are data. A rule is
// what a value may be and how a message says so; what becomes of a key that is unknown or missing, and in which words,
// is for the kind of record to say, since each has its own.

/** What one value may be. */
export interface ValueRule<T = unknown> {
  /** For messages, behind "must be". */
  readonly wanted: string;
  /** All that it may be, where these are words. */
  readonly words?: readonly T[];
  accepts(value: unknown): value is T;
}

/** A rule of one's own. */
export function valueRule<T>(wanted: string, accepts: (value: unknown) => boolean): ValueRule<T> {
  return { wanted, accepts: accepts as ValueRule<T>["accepts"] };
}

/** A string. */
export const TEXT: ValueRule<string> = valueRule("a string", (value) => typeof value === "string");

/** True or false. */
export const FLAG: ValueRule<boolean> = valueRule(
  "true or false",
  (value) => typeof value === "boolean",
);

/** A finite number. */
export const NUMBER: ValueRule<number> = valueRule("a number", Number.isFinite);

/** A list of anything. */
export const LIST: ValueRule<readonly unknown[]> = valueRule("a list", Array.isArray);

/** An object that is no list of any kind. */
export const OBJECT: ValueRule<Readonly<Record<string, unknown>>> = valueRule(
  "an object",
  (value) =>
    typeof value === "object" && value !== null && !Array.isArray(value) &&
    !ArrayBuffer.isView(value),
);

/** A whole number within bounds, both included. */
export function whole(
  wanted: string,
  { least = -Infinity, most = Infinity }: { readonly least?: number; readonly most?: number } = {},
): ValueRule<number> {
  return valueRule(
    wanted,
    (value) => Number.isSafeInteger(value) && value as number >= least && value as number <= most,
  );
}

/** One of some words. */
export function oneOf<T>(words: readonly T[], wanted: string): ValueRule<T> {
  return { ...valueRule(wanted, (value) => words.includes(value as T)), words };
}

/** A whole number of 0 or more. */
export const COUNT: ValueRule<number> = whole("a whole number, 0 or more", { least: 0 });

/** A list whose items all obey `item`. */
export function listOf<T>(item: ValueRule<T>, wanted: string): ValueRule<readonly T[]> {
  return valueRule(wanted, (value) => Array.isArray(value) && value.every(item.accepts));
}

/** Sizes, ids, places. */
export const COUNTS: ValueRule<readonly number[]> = listOf(COUNT, "a list of whole numbers");

/** How the fields of one kind of record are read. */
export interface FieldReader<F> {
  /** A key that no field has; `known` lists those that there are. */
  readonly unknown: (key: string, known: string) => never;
  /** The value of a field that is not given; undefined where it stays absent. */
  readonly absent: (key: string, field: F) => unknown;
  /** The value of a field as it is given, once it is checked. */
  readonly read: (key: string, value: unknown, field: F) => unknown;
}

// Attributes of ops are read by the thousand while a model loads, and their rules are few.
const listed = new WeakMap<object, readonly (readonly [string, unknown])[]>();

/** Reads records of one kind: no key beside its fields, and each of these in order. */
export function recordReader<F>(
  { unknown, absent, read }: FieldReader<F>,
): (given: object, fields: Readonly<Record<string, F>>) => Record<string, unknown> {
  return (given, fields) => {
    for (const key in given) {
      if (!Object.hasOwn(fields, key)) unknown(key, Object.keys(fields).join(", "));
    }
    let entries = listed.get(fields) as readonly (readonly [string, F])[] | undefined;
    if (!entries) listed.set(fields, entries = Object.entries(fields));
    const result: Record<string, unknown> = {};
    for (const [key, field] of entries) {
      const value = Object.hasOwn(given, key)
        ? read(key, (given as Record<string, unknown>)[key], field)
        : absent(key, field);
      if (value !== undefined) result[key] = value;
    }
    return result;
  };
}
