import { assert, assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import {
  add,
  boundsOf,
  ceilDiv,
  compare,
  type Dim,
  equal,
  evaluate,
  exactDiv,
  floorDiv,
  formatDim,
  max,
  min,
  mod,
  mul,
  parseDim,
  product,
  roundUp,
  sub,
  substitute,
  symbol,
  symbolsOf,
} from "./mod.ts";

const sumN = symbol("sumN", { min: 1, max: 2048 });
const N = symbol("N", { min: 1, max: sumN });
const a = symbol("a", { min: 0, max: 10 });
const b = symbol("b", { min: 2, max: 5 });

/** Printed form, exact bounds, and the same again after parsing the printed form. */
function expectDim(dim: Dim, text: string, least: number, most: number): void {
  assertEquals(formatDim(dim), text);
  assertEquals(boundsOf(dim), { min: least, max: most }, `bounds of ${text}`);
  const known = Object.fromEntries([...symbolsOf(dim).keys()].map((name) => [name, KNOWN[name]!]));
  assert(equal(parseDim(text, known), dim), `${text} does not parse back`);
}

const KNOWN: Readonly<Record<string, Dim>> = { sumN, N, a, b };

Deno.test("sums and products are canonical", () => {
  expectDim(add(a, a), "2*a", 0, 20);
  expectDim(sub(add(a, 3), a), "3", 3, 3);
  expectDim(mul(add(a, b), sub(a, b)), "a*a - b*b", -25, 96);
  expectDim(mul(a, 0), "0", 0, 0);
  expectDim(mul(sub(0, a), -1), "a", 0, 10);
  expectDim(sub(5, b), "5 - b", 0, 3);
  expectDim(product([2, a, 3]), "6*a", 0, 60);
  expectDim(sub(a, b), "a - b", -5, 8);
});

Deno.test("a quotient is a number only where it can be no other", () => {
  assertEquals(floorDiv(a, 11), 0);
  assertEquals(evaluate(floorDiv(a, 10), { a: 10 }), 1);
  assertEquals(evaluate(ceilDiv(sub(0, a), 11), { a: 10 }), 0);
  assertEquals(evaluate(ceilDiv(sub(0, a), 10), { a: 10 }), -1);
  assertEquals([floorDiv(7, 4), ceilDiv(7, 4), ceilDiv(-7, 4)], [1, 2, -1]);
});

Deno.test("TL-1: (sumN - N) + N is sumN", () => {
  assert(equal(add(sub(sumN, N), N), sumN));
  expectDim(sub(sumN, N), "sumN - N", 0, 2047);
});

Deno.test("TL-1: N·4096 / (N·32·128) is 1", () => {
  assertEquals(exactDiv(mul(N, 4096), product([N, 32, 128])), 1);
});

Deno.test("TL-1: N·4096 and sumN·2·128 are unknown by subtraction and by division", () => {
  const left = mul(N, 4096), right = product([sumN, 2, 128]);
  assertEquals(compare(left, right), "unknown");
  assertEquals(exactDiv(left, right), undefined);
  assertEquals(exactDiv(right, left), undefined);
});

Deno.test("TL-1: the free dim of a reshape to [1, -1, 32, 128] is N", () => {
  const free = exactDiv(product([1, N, 4096]), product([1, 32, 128]));
  assert(free !== undefined && equal(free, N));
});

Deno.test("exact quotients of polynomials are found by long division", () => {
  const quotient = exactDiv(sub(mul(a, a), mul(b, b)), add(a, b));
  assert(quotient !== undefined && equal(quotient, sub(a, b)));
  assertEquals(exactDiv(add(mul(a, a), 1), add(a, 1)), undefined);
  assertEquals(exactDiv(mul(a, 3), 2), undefined);
  assertEquals(exactDiv(a, 0), undefined);
  assertEquals(exactDiv(0, a), 0);
});

Deno.test("signs are proven through bounds that are symbols", () => {
  assertEquals(compare(sumN, N), ">=");
  assertEquals(compare(add(sumN, 1), N), ">");
  assertEquals(compare(N, add(sumN, 1)), "<");
  assertEquals(compare(N, sumN), "<=");
  assertEquals(compare(mul(sumN, 4096), mul(N, 4096)), ">=");
  assertEquals(compare(a, a), "==");
  assertEquals(compare(a, b), "unknown");
  assertEquals(compare(a, 10), "<=");
  assertEquals(compare(symbol("one", { min: 1, max: 1 }), 1), "==");
});

Deno.test("floor division takes out what divides", () => {
  expectDim(floorDiv(add(mul(a, 64), 70), 64), "a + 1", 1, 11);
  expectDim(floorDiv(a, 4), "floordiv(a, 4)", 0, 2);
  expectDim(floorDiv(add(mul(a, 6), 5), 4), "a + floordiv(2*a + 1, 4) + 1", 1, 16);
  expectDim(floorDiv(a, 11), "0", 0, 0);
  expectDim(floorDiv(7, 2), "3", 3, 3);
  expectDim(floorDiv(-7, 2), "-4", -4, -4);
  expectDim(floorDiv(a, b), "floordiv(a, b)", 0, 5);
});

Deno.test("ceiling division takes out what divides", () => {
  expectDim(ceilDiv(a, 4), "ceildiv(a, 4)", 0, 3);
  expectDim(ceilDiv(mul(a, 8), 4), "2*a", 0, 20);
  expectDim(ceilDiv(-7, 2), "-3", -3, -3);
  expectDim(roundUp(a, 4), "4*ceildiv(a, 4)", 0, 12);
});

Deno.test("modulo lies in 0..divisor-1", () => {
  expectDim(mod(add(mul(a, 64), 3), 64), "3", 3, 3);
  expectDim(mod(a, 4), "mod(a, 4)", 0, 3);
  expectDim(mod(a, 11), "a", 0, 10);
  expectDim(mod(-7, 4), "1", 1, 1);
  expectDim(mod(mul(a, b), b), "0", 0, 0);
});

Deno.test("minimum and maximum are decided by bounds where they can", () => {
  expectDim(max(a, b), "max(a, b)", 2, 10);
  expectDim(min(b, a), "min(a, b)", 0, 5);
  expectDim(min(N, sumN), "N", 1, 2048);
  expectDim(max(b, 1), "b", 2, 5);
  assert(equal(max(a, b), max(b, a)));
});

Deno.test("divisors that cannot be positive are refused", () => {
  assertThrows(() => floorDiv(a, 0), RangeError, "must be positive");
  assertThrows(() => mod(a, sub(1, b)), RangeError, "must be positive");
  const zero = floorDiv(a, symbol("z"));
  assertThrows(() => evaluate(zero, { a: 1, z: 0 }), RangeError, "divisor is 0");
});

Deno.test("numbers beyond 2^53 are errors and never rounded", () => {
  const big = symbol("big");
  assertThrows(() => mul(2 ** 40, 2 ** 20), RangeError, "2^53");
  assertThrows(() => mul(mul(big, 2 ** 40), 2 ** 20), RangeError, "2^53");
  assertThrows(() => evaluate(mul(big, big), { big: 2 ** 30 }), RangeError, "1152921504606846976");
  // A partial sum may leave 2^53 where the value does not.
  const far = sub(mul(big, big), mul(big, sub(big, 1)));
  assertEquals(evaluate(far, { big: 2 ** 40 }), 2 ** 40);
  const product = symbol("c", { min: -(2 ** 52) });
  const twice = sub(mul(product, big), mul(product, symbol("other")));
  assertEquals(evaluate(twice, { c: 3 * 2 ** 30, big: 2 ** 30 + 1, other: 2 ** 30 }), 3 * 2 ** 30);
});

Deno.test("evaluation wants an integer within bounds for every symbol", () => {
  assertEquals(evaluate(sub(sumN, N), { sumN: 33, N: 1 }), 32);
  assertThrows(() => evaluate(N, {}), RangeError, "N has no value");
  assertThrows(() => evaluate(N, { N: 1.5 }), RangeError, "N is 1.5");
  assertThrows(() => evaluate(N, { N: 0 }), RangeError, "must be an integer in 1..2048");
});

Deno.test("substitution simplifies again", () => {
  assertEquals(substitute(floorDiv(a, 4), { a: 9 }), 2);
  assert(equal(substitute(add(a, b), { a: sub(N, b) }), N));
  assert(equal(substitute(max(a, b), { a: 7 }), 7));
});

Deno.test("one name with two bounds is refused", () => {
  assertThrows(() => add(a, symbol("a", { max: 11 })), TypeError, "two symbols named a");
  assertEquals(formatDim(add(a, symbol("a", { max: 10 }))), "2*a");
  assertThrows(() => symbol("x", { min: 3, max: 2 }), RangeError, "above its maximum");
});

Deno.test("ONNX dim_param strings parse", () => {
  const printed = (text: string) => formatDim(parseDim(text));
  assertEquals(printed("sumN-N"), "sumN - N");
  assertEquals(printed("lastSum + N"), "N + lastSum");
  assertEquals(printed('"batch"*16'), "16*batch");
  assertEquals(printed("s53 + s69"), "s53 + s69");
  assertEquals(printed("past_sequence_length + 1"), "past_sequence_length + 1");
  assertEquals(printed("Concatpast_key0_dim_2"), "Concatpast_key0_dim_2");
  assertEquals(printed("(s0//2) + 1"), "floordiv(s0, 2) + 1");
  assertEquals(printed("Max(1, s0)"), "max(1, s0)");
  assertEquals(printed("s0 % 8 ** 2"), "mod(s0, 64)");
  assertEquals(printed("(2*N)/2"), "N");
  assertEquals(printed(" 128 "), "128");
  assertEquals(printed("-N + 5"), "5 - N");
});

Deno.test("texts that are no expression become one opaque symbol", () => {
  for (
    const text of ["batch size", "?", "1e3", "N/2", "a+", "f(a, b)", "constructor(a, b)", "a b"]
  ) {
    assertEquals(formatDim(parseDim(text)), `"${text}"`);
    assertEquals(evaluate(parseDim(text), { [text]: 7 }), 7);
  }
  assertEquals(formatDim(parseDim('a"b')), `"a'b"`);
  assertEquals(formatDim(parseDim("(".repeat(5000))).length, 5002);
  assertThrows(() => parseDim(""), RangeError, "empty");
  assertThrows(() => parseDim("99999999999999999999"), RangeError, "2^53");
});

Deno.test("known symbols keep their bounds when parsed", () => {
  assertEquals(boundsOf(parseDim("sumN - N", { sumN, N })), { min: 0, max: 2047 });
});

Deno.test("a product of enormous polynomials is refused", () => {
  let wide: Dim = 0;
  for (let i = 0; i < 100; i++) wide = add(wide, symbol(`x${i}`));
  const error = assertThrows(() => mul(wide, wide), RangeError);
  assertStringIncludes(error.message, "100 and 100 terms");
});

Deno.test("a symbol of which no least value is known has bounds", () => {
  const size = symbol("size", { min: -Infinity, max: 4 });
  assertEquals(boundsOf(add(mul(2, size), 1)), { min: -Infinity, max: 9 });
});
