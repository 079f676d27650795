// Names of options: one that no option has is refused with what was meant, since an option that is read past would be a
// setting that nobody makes.

import { nearest } from "./nearest.ts";

/** Every name of an options type, once; the compiler holds it complete. */
export type OptionKeys<T> = Readonly<Record<keyof Required<T>, true>>;

type Kind = readonly [is: (value: unknown) => boolean, what: string];

const TEXT: Kind = [(value) => typeof value === "string", "a text"];
const FUNCTION: Kind = [(value) => typeof value === "function", "a function"];
const LIST: Kind = [Array.isArray, "a list"];

/** Options that mean the same wherever they are taken, and whose values nothing else looks at before they are used. */
const KINDS = new Map<string, Kind>([
  ["signal", [(value) => value instanceof AbortSignal, "an AbortSignal"]],
  ["onProgress", FUNCTION],
  ["onChoice", FUNCTION],
  ["onStart", FUNCTION],
  ["cacheDir", TEXT],
  ["endpoint", TEXT],
  ["chatTemplate", TEXT],
  ["excludeKernels", LIST],
  ["images", LIST],
  ["tools", LIST],
]);

/**
 * Refuses what are no options, and values of another kind than an option of that name has in every call.
 *
 * @param of What takes the options, for the message: `generate()`.
 * @throws {TypeError} Naming the option and what it must be.
 */
export function checkOptionKinds(options: unknown, of: string): void {
  if (options === undefined) return;
  if (typeof options !== "object" || options === null) {
    throw new TypeError(`Cannot use options of ${of}: they must be an object`);
  }
  for (const [name, value] of Object.entries(options)) {
    const [isRight, what] = KINDS.get(name) ?? [];
    if (isRight === undefined || value === undefined || value === null || isRight(value)) continue;
    throw new TypeError(`Cannot use ${name} of ${of}: it must be ${what}`);
  }
}

/**
 * Refuses names that are not known.
 *
 * @param of What takes the options, for the message: `load()`.
 * @throws {RangeError} Naming the option, and the nearest one or all there are.
 * @throws {TypeError} As {@linkcode checkOptionKinds}.
 */
export function checkOptionKeys<T>(
  options: T,
  { of, known }: { readonly of: string; readonly known: OptionKeys<T> },
): void {
  checkOptionKinds(options, of);
  for (const name of Object.keys(options ?? {})) {
    if (Object.hasOwn(known, name)) continue;
    const names = Object.keys(known);
    const near = meantBy(name, names);
    const hint = near === undefined ? `There are ${names.join(", ")}` : `Did you mean ${near}?`;
    throw new RangeError(`Cannot use option "${name}" of ${of}: there is none. ${hint}`);
  }
}

/** The option that was meant: as Python writes names, or with another second half (max_tokens, contextSize). */
export function meantBy(name: string, names: readonly string[]): string | undefined {
  const plain = name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
  const [word] = /^[a-z]+/.exec(plain) ?? [];
  return nearest(plain, names) ??
    (word && word.length > 3 ? names.find((one) => one.startsWith(word)) : undefined);
}

/**
 * Refuses what are no bytes: a path, as a rule.
 *
 * @throws {TypeError} Saying what is wanted; never what was given.
 */
export function checkBytes(bytes: unknown, what: string): asserts bytes is Uint8Array {
  if (bytes instanceof Uint8Array) return;
  throw new TypeError(`Cannot read ${what}: give its bytes as a Uint8Array (Deno.readFile(path))`);
}
