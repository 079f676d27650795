// `@std/assert` by the same names and signatures over `node:assert`, because JSR is not reachable
// everywhere npm is. Replacing the line in deno.json's import map with `jsr:@std/assert@1` is enough
// to switch to the real one; keep to the subset that both have.

import assertModule from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";

// deno-lint-ignore no-explicit-any
type ErrorClass<E extends Error> = abstract new (...args: any[]) => E;

/** The error that every assertion throws. */
export const AssertionError: typeof assertModule.AssertionError = assertModule.AssertionError;

/** Fails always. */
export function fail(msg?: string): never {
  throw new AssertionError({ message: msg ?? "Failed assertion" });
}

/** `expr` is truthy. */
export function assert(expr: unknown, msg = ""): asserts expr {
  if (!expr) fail(msg || "Expected a truthy value");
}

/** `expr` is falsy. */
export function assertFalse(expr: unknown, msg = ""): void {
  if (expr) fail(msg || "Expected a falsy value");
}

/** Deep, strict equality. */
export function assertEquals<T>(actual: T, expected: T, msg?: string): void {
  assertModule.deepStrictEqual(actual, expected, msg);
}

/** Not deeply equal. */
export function assertNotEquals<T>(actual: T, expected: T, msg?: string): void {
  assertModule.notDeepStrictEqual(actual, expected, msg);
}

/** `Object.is` equality. */
export function assertStrictEquals<T>(
  actual: unknown,
  expected: T,
  msg?: string,
): asserts actual is T {
  assertModule.strictEqual(actual, expected, msg);
}

/** Neither null nor undefined. */
export function assertExists<T>(actual: T, msg?: string): asserts actual is NonNullable<T> {
  if (actual === undefined || actual === null) fail(msg ?? `Expected a value, got ${actual}`);
}

/** `|actual - expected| <= tolerance`. */
export function assertAlmostEquals(
  actual: number,
  expected: number,
  tolerance = Math.max(Math.abs(expected) * 1e-7, 1e-7),
  msg?: string,
): void {
  if (Object.is(actual, expected)) return;
  if (!(Math.abs(actual - expected) <= tolerance)) {
    fail(msg ?? `Expected ${expected} ± ${tolerance}, got ${actual}`);
  }
}

/** `actual >= expected`. */
export function assertGreaterOrEqual<T>(actual: T, expected: T, msg?: string): void {
  if (!(actual >= expected)) fail(msg ?? `Expected ${actual} >= ${expected}`);
}

/** `actual > expected`. */
export function assertGreater<T>(actual: T, expected: T, msg?: string): void {
  if (!(actual > expected)) fail(msg ?? `Expected ${actual} > ${expected}`);
}

/** `actual <= expected`. */
export function assertLessOrEqual<T>(actual: T, expected: T, msg?: string): void {
  if (!(actual <= expected)) fail(msg ?? `Expected ${actual} <= ${expected}`);
}

/** `actual < expected`. */
export function assertLess<T>(actual: T, expected: T, msg?: string): void {
  if (!(actual < expected)) fail(msg ?? `Expected ${actual} < ${expected}`);
}

/** `actual` holds the text `expected`. */
export function assertStringIncludes(actual: string, expected: string, msg?: string): void {
  if (!actual.includes(expected)) fail(msg ?? `Expected "${actual}" to include "${expected}"`);
}

/** `actual` matches the pattern. */
export function assertMatch(actual: string, expected: RegExp, msg?: string): void {
  if (!expected.test(actual)) fail(msg ?? `Expected "${actual}" to match ${expected}`);
}

/** Every element of `expected` is (deeply) in `actual`. */
export function assertArrayIncludes<T>(
  actual: ArrayLike<T>,
  expected: ArrayLike<T>,
  msg?: string,
): void {
  for (const wanted of Array.from(expected)) {
    if (!Array.from(actual).some((item) => isDeepStrictEqual(item, wanted))) {
      fail(msg ?? `Expected the array to include ${Deno.inspect(wanted)}`);
    }
  }
}

/** Every property of `expected` is (deeply) in `actual`. */
export function assertObjectMatch(
  // deno-lint-ignore no-explicit-any
  actual: Record<PropertyKey, any>,
  expected: Record<PropertyKey, unknown>,
): void {
  for (const [key, wanted] of Object.entries(expected)) {
    const got = actual[key];
    if (wanted && typeof wanted === "object" && !Array.isArray(wanted)) {
      assertObjectMatch(got, wanted as Record<PropertyKey, unknown>);
    } else {
      assertModule.deepStrictEqual(got, wanted, `property ${key}`);
    }
  }
}

/** `actual` is an instance of the class. */
// deno-lint-ignore no-explicit-any
export function assertInstanceOf<T extends abstract new (...args: any[]) => any>(
  actual: unknown,
  expectedType: T,
  msg = "",
): asserts actual is InstanceType<T> {
  if (!(actual instanceof expectedType)) {
    fail(msg || `Expected an instance of ${expectedType.name}, got ${Deno.inspect(actual)}`);
  }
}

function checkError<E extends Error>(
  error: unknown,
  errorClass?: ErrorClass<E>,
  msgIncludes?: string,
  msg?: string,
): E {
  if (!(error instanceof Error)) fail(msg ?? `A non-error was thrown: ${error}`);
  if (errorClass && !(error instanceof errorClass)) {
    fail(msg ?? `Expected ${errorClass.name}, got ${error.name}: ${error.message}`);
  }
  if (msgIncludes !== undefined && !error.message.includes(msgIncludes)) {
    fail(msg ?? `Expected the message to include "${msgIncludes}", got "${error.message}"`);
  }
  return error as E;
}

/** `fn` throws (an instance of `errorClass`, with `msgIncludes` in its message). */
export function assertThrows<E extends Error = Error>(
  fn: () => unknown,
  errorClass?: ErrorClass<E>,
  msgIncludes?: string,
  msg?: string,
): E {
  try {
    fn();
  } catch (error) {
    return checkError(error, errorClass, msgIncludes, msg);
  }
  fail(msg ?? "Expected the function to throw");
}

/** The promise of `fn` rejects (with an instance of `errorClass`, …). */
export async function assertRejects<E extends Error = Error>(
  fn: () => PromiseLike<unknown>,
  errorClass?: ErrorClass<E>,
  msgIncludes?: string,
  msg?: string,
): Promise<E> {
  let promise: PromiseLike<unknown>;
  try {
    promise = fn();
  } catch {
    fail(msg ?? "The function threw instead of returning a promise that rejects");
  }
  try {
    await promise;
  } catch (error) {
    return checkError(error, errorClass, msgIncludes, msg);
  }
  fail(msg ?? "Expected the promise to reject");
}
