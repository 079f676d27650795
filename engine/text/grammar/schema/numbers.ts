// Numbers within bounds as regular languages. JSON.stringify writes a number with the fewest digits that give it back,
// up to 21 of them before the point, and beyond that, or below 1e-6, with an exponent; these texts are all read, also
// with more digits, and others that mean the same (0.50, 5e-1).
//
// Bounds are doubles, and texts are compared with their decimal digits. That is exact: what lies between the shortest
// digits of two doubles is read as a double between them, and an exclusive bound is the next double as an inclusive
// one.

import { UnsupportedError } from "../../../errors.ts";
import { type CodePoints, codePoints } from "../code_points.ts";
import type { Part } from "../dfa.ts";
import { choice, EMPTY, oneOf, type Regular, repeat, sequence, word } from "../nfa.ts";

/** What a number must be; bounds are inclusive, and infinite where there are none. */
export interface NumberRule {
  readonly low: number;
  readonly high: number;
  /** Whether whole numbers are allowed, and whether others are. */
  readonly isWhole: boolean;
  readonly isBroken: boolean;
  /** The only ones, if they are listed. */
  readonly points?: readonly number[] | undefined;
  readonly excluded: readonly number[];
  readonly multiples: readonly Multiple[];
}

/** Multiples of a number, or all others. */
export interface Multiple {
  readonly of: number;
  readonly isNegated: boolean;
  /** The path of the schema, for errors. */
  readonly place: string;
}

/** Most digits before the point, and behind it. */
const WHOLE_DIGITS = 21;
const BROKEN_DIGITS = 24;
const LEAST_EXPONENT = -324;
const MOST_EXPONENT = 308;
/** Greatest remainder that is counted with. */
const MOST_REMAINDERS = 1024;

const digitSet = (low: number, high: number): CodePoints => codePoints([0x30 + low, 0x30 + high]);
const DIGIT = oneOf(digitSet(0, 9));
const FIRST = oneOf(digitSet(1, 9));
const POINT = word(".");
const MINUS = word("-");
const NONE: Regular = choice();
const ANY_FRACTION = choice(EMPTY, sequence(POINT, repeat(DIGIT, [1, BROKEN_DIGITS])));
const ANY_WHOLE = choice(word("0"), sequence(FIRST, repeat(DIGIT, [0, WHOLE_DIGITS - 1])));
const ANY_MANTISSA = sequence(FIRST, ANY_FRACTION);

/** The next double above or below. */
export function nextDouble(value: number, direction: 1 | -1): number {
  if (value === 0) return direction * Number.MIN_VALUE;
  const bits = new BigInt64Array(Float64Array.of(value).buffer);
  bits[0]! += value > 0 === direction > 0 ? 1n : -1n;
  return new Float64Array(bits.buffer)[0]!;
}

/** The texts of the numbers of a rule, as parts that must all hold. */
export function numberParts(rule: NumberRule): readonly Part[] {
  const { points, excluded, multiples, isWhole, isBroken } = rule;
  const [low, high] = isBroken
    ? [rule.low, rule.high]
    : [Math.ceil(rule.low), Math.floor(rule.high)];
  const rest = [
    ...excluded.map((value) => ({ regular: pointTexts(value), isNegated: true })),
    ...multiples.flatMap((multiple) => multipleParts(multiple, isWhole && !isBroken)),
  ];
  // Bounds of whole numbers are most of all bounds, and need no languages to be joined.
  const isSafe = [low, high].every((bound) =>
    !Number.isFinite(bound) || Number.isSafeInteger(bound)
  );
  if (!isBroken && !points && isSafe) return [{ regular: wholeTexts(low, high) }, ...rest];
  return [
    { regular: points ? choice(...points.map(pointTexts)) : kindTexts(rule) },
    ...low === -Infinity ? [] : [{ regular: atLeast(low) }],
    ...high === Infinity ? [] : [{ regular: atMost(high) }],
    ...rest,
  ];
}

// Whole numbers between bounds, which are whole and have few digits, or are none.
function wholeTexts(low: number, high: number): Regular {
  const size = (least: number, most: number) =>
    most < Infinity ? between(least, most) : from(least);
  return choice(
    high < 0 ? NONE : size(Math.max(0, low), high),
    low > 0 ? NONE : sequence(MINUS, size(Math.max(0, -high), -low)),
  );
}

function from(least: number): Regular {
  const { length } = String(least);
  return choice(
    between(least, 10 ** length - 1),
    sequence(FIRST, repeat(DIGIT, [length, WHOLE_DIGITS - 1])),
    ...largeTexts(),
  );
}

function kindTexts({ isWhole, isBroken }: NumberRule): Regular {
  if (isWhole && isBroken) {
    const exponent = exponents(LEAST_EXPONENT, MOST_EXPONENT - 1);
    const items = [sequence(ANY_WHOLE, ANY_FRACTION), sequence(ANY_MANTISSA, exponent), largest()];
    return sequence(repeat(MINUS, [0, 1]), choice(...items));
  }
  if (isWhole) {
    return sequence(repeat(MINUS, [0, 1]), choice(ANY_WHOLE, ...largeTexts()));
  }
  const zeros = repeat(word("0"), [0, BROKEN_DIGITS - 1]);
  const broken = sequence(POINT, zeros, FIRST, repeat(DIGIT, [0, BROKEN_DIGITS - 1]));
  const small = sequence(ANY_MANTISSA, exponents(LEAST_EXPONENT, -1));
  return sequence(repeat(MINUS, [0, 1]), choice(sequence(ANY_WHOLE, broken), small));
}

// Whole numbers that have an exponent.
function largeTexts(): Regular[] {
  return [sequence(ANY_MANTISSA, exponents(WHOLE_DIGITS, MOST_EXPONENT - 1)), largest()];
}

// Beyond the greatest double a text is read as Infinity.
const largest = (): Regular =>
  sequence(mantissaAtMost(decimalOf(Number.MAX_VALUE)), exponents(MOST_EXPONENT, MOST_EXPONENT));

/** A positive number: whole digits without zeros in front, further digits without zeros behind. */
interface Decimal {
  readonly whole: string;
  readonly further: string;
  /** The same as d.ddd × 10^exponent. */
  readonly mantissa: string;
  readonly exponent: number;
}

function decimalOf(value: number): Decimal {
  const [written, exponent] = value.toExponential().split("e") as [string, string];
  const mantissa = written.replace(".", "");
  const point = Number(exponent) + 1;
  const whole = point <= 0 ? "0" : mantissa.padEnd(point, "0").slice(0, point);
  const further = point <= 0 ? "0".repeat(-point) + mantissa : mantissa.slice(point);
  return { whole, further, mantissa, exponent: Number(exponent) };
}

function atLeast(low: number): Regular {
  if (low > 0) return sizeAtLeast(low);
  return choice(anySize(), sequence(MINUS, low === 0 ? zero() : sizeAtMost(-low)));
}

function atMost(high: number): Regular {
  if (high < 0) return sequence(MINUS, sizeAtLeast(-high));
  return choice(sequence(MINUS, anySize()), high === 0 ? zero() : sizeAtMost(high));
}

function anySize(): Regular {
  return choice(
    sequence(ANY_WHOLE, ANY_FRACTION),
    sequence(ANY_MANTISSA, exponents(LEAST_EXPONENT, MOST_EXPONENT)),
  );
}

function zero(): Regular {
  return sequence(word("0"), choice(EMPTY, sequence(POINT, repeat(word("0"), [1, BROKEN_DIGITS]))));
}

function sizeAtLeast(value: number): Regular {
  const decimal = decimalOf(value);
  const { exponent } = decimal;
  const plain = digitsAtLeast(decimal);
  return choice(
    ...[plain, longerThan(decimal.whole.length)],
    sequence(ANY_MANTISSA, exponents(exponent + 1, MOST_EXPONENT)),
    sequence(mantissaAtLeast(decimal), exponents(exponent, exponent)),
  );
}

function sizeAtMost(value: number): Regular {
  const decimal = decimalOf(value);
  const { exponent } = decimal;
  return choice(
    ...[digitsAtMost(decimal), shorterThan(decimal.whole.length)],
    sequence(ANY_MANTISSA, exponents(LEAST_EXPONENT, exponent - 1)),
    sequence(mantissaAtMost(decimal), exponents(exponent, exponent)),
  );
}

function longerThan(length: number): Regular {
  if (length >= WHOLE_DIGITS) return NONE;
  return sequence(FIRST, repeat(DIGIT, [length, WHOLE_DIGITS - 1]), ANY_FRACTION);
}

function shorterThan(length: number): Regular {
  if (length <= 1) return NONE;
  const longer = sequence(FIRST, repeat(DIGIT, [0, length - 2]));
  return sequence(choice(word("0"), longer), ANY_FRACTION);
}

function mantissaAtLeast({ mantissa }: Decimal): Regular {
  return digitsAtLeast({ whole: mantissa[0]!, further: mantissa.slice(1) });
}

function mantissaAtMost({ mantissa }: Decimal): Regular {
  const first = Number(mantissa[0]);
  const equal = equalOrLess(mantissa[0]!, mantissa.slice(1));
  // Its first digit is not 0.
  return first === 1 ? equal : choice(sequence(oneOf(digitSet(1, first - 1)), ANY_FRACTION), equal);
}

// As many digits before the point, and not less.
function digitsAtLeast({ whole, further }: Pick<Decimal, "whole" | "further">): Regular {
  const items: Regular[] = [];
  for (let i = 0; i < whole.length; i++) {
    const digit = Number(whole[i]);
    if (digit === 9) continue;
    const rest = repeat(DIGIT, [whole.length - i - 1, whole.length - i - 1]);
    items.push(sequence(word(whole.slice(0, i)), greater(digit), rest, ANY_FRACTION));
  }
  if (further === "") return choice(...items, sequence(word(whole), ANY_FRACTION));
  const behind: Regular[] = [];
  // Of more digits than are written, the last that are must be greater.
  for (let i = 0; i < Math.min(further.length, BROKEN_DIGITS); i++) {
    const digit = Number(further[i]);
    if (digit < 9) {
      behind.push(sequence(word(further.slice(0, i)), greater(digit), moreDigits(i + 1)));
    }
  }
  if (further.length <= BROKEN_DIGITS) {
    behind.push(sequence(word(further), moreDigits(further.length)));
  }
  return choice(...items, sequence(word(whole), POINT, choice(...behind)));
}

// As many digits before the point, and not more.
function digitsAtMost({ whole, further }: Pick<Decimal, "whole" | "further">): Regular {
  const items: Regular[] = [];
  for (let i = 0; i < whole.length; i++) {
    const digit = Number(whole[i]);
    const least = i === 0 && whole.length > 1 ? 1 : 0;
    if (digit <= least) continue;
    const rest = repeat(DIGIT, [whole.length - i - 1, whole.length - i - 1]);
    const smaller = oneOf(digitSet(least, digit - 1));
    items.push(sequence(word(whole.slice(0, i)), smaller, rest, ANY_FRACTION));
  }
  return choice(...items, equalOrLess(whole, further));
}

// These digits before the point, and behind it not more than those.
function equalOrLess(whole: string, digits: string): Regular {
  const further = digits.slice(0, BROKEN_DIGITS);
  const behind: Regular[] = [];
  for (let i = 0; i < further.length; i++) {
    const digit = Number(further[i]);
    const smaller = oneOf(digitSet(0, digit - 1));
    if (digit > 0) behind.push(sequence(word(further.slice(0, i)), smaller, moreDigits(i + 1)));
    if (i > 0) behind.push(word(further.slice(0, i)));
  }
  const zeros = repeat(word("0"), [
    further === "" ? 1 : 0,
    Math.max(1, BROKEN_DIGITS - further.length),
  ]);
  behind.push(sequence(word(further), zeros));
  return sequence(word(whole), choice(EMPTY, sequence(POINT, choice(...behind))));
}

function greater(digit: number): Regular {
  return oneOf(digitSet(digit + 1, 9));
}

// Digits may follow the first few behind a point.
function moreDigits(count: number): Regular {
  return repeat(DIGIT, [0, BROKEN_DIGITS - count]);
}

function exponents(low: number, high: number): Regular {
  const from = Math.max(low, LEAST_EXPONENT);
  const to = Math.min(high, MOST_EXPONENT);
  const items: Regular[] = [];
  if (to >= 0 && to >= from) {
    items.push(sequence(repeat(word("+"), [0, 1]), between(Math.max(from, 0), to)));
  }
  if (from < 0) items.push(sequence(MINUS, between(Math.max(1, -to), -from)));
  return items.length === 0 ? NONE : sequence(choice(word("e"), word("E")), choice(...items));
}

// Whole numbers from 0 up, without a sign.
function between(low: number, high: number): Regular {
  if (low > high) return NONE;
  const items: Regular[] = [];
  for (let length = String(low).length; length <= String(high).length; length++) {
    const from = Math.max(low, length === 1 ? 0 : 10 ** (length - 1));
    items.push(sameLength(String(from), String(Math.min(high, 10 ** length - 1))));
  }
  return choice(...items);
}

function sameLength(low: string, high: string): Regular {
  // Every way through the digits comes to such a rest, and each would be written out anew.
  if (/^0*$/.test(low) && /^9*$/.test(high)) return repeat(DIGIT, [low.length, low.length]);
  const [first, last] = [Number(low[0]), Number(high[0])];
  const rest = low.length - 1;
  if (first === last) return sequence(word(low[0]!), sameLength(low.slice(1), high.slice(1)));
  return choice(
    sequence(word(low[0]!), sameLength(low.slice(1), "9".repeat(rest))),
    sequence(oneOf(digitSet(first + 1, last - 1)), repeat(DIGIT, [rest, rest])),
    sequence(word(high[0]!), sameLength("0".repeat(rest), high.slice(1))),
  );
}

function pointTexts(value: number): Regular {
  if (value === 0) return sequence(repeat(MINUS, [0, 1]), zero());
  const { whole, further, mantissa, exponent } = decimalOf(Math.abs(value));
  const sign = value < 0 ? MINUS : EMPTY;
  const zeros = (least: number) => repeat(word("0"), [least, BROKEN_DIGITS]);
  const fraction = (digits: string) =>
    digits === ""
      ? choice(EMPTY, sequence(POINT, zeros(1)))
      : sequence(POINT, word(digits), zeros(0));
  const scientific = sequence(
    ...[word(mantissa[0]!), fraction(mantissa.slice(1)), exponents(exponent, exponent)],
  );
  const isPlain = whole.length <= WHOLE_DIGITS && further.length <= BROKEN_DIGITS;
  const plain = isPlain ? [sequence(word(whole), fraction(further))] : [];
  return sequence(sign, choice(...plain, scientific));
}

// Digit by digit the remainder is known: before the point, and behind it for as many digits as the divisor has.
function multipleParts({ of, isNegated, place }: Multiple, isWhole: boolean): Part[] {
  const { mantissa, exponent } = decimalOf(of);
  const behind = Math.max(0, mantissa.length - 1 - exponent);
  let divisor = BigInt(mantissa + "0".repeat(Math.max(0, exponent + 1 - mantissa.length)));
  if (isWhole) divisor /= gcd(divisor, 10n ** BigInt(behind));
  if (isWhole && divisor === 1n) return isNegated ? [{ regular: NONE }] : [];
  const places = isWhole ? 0 : behind;
  if (divisor > MOST_REMAINDERS || places > 6) {
    throw new UnsupportedError(
      `multiples of ${of} are not counted: at most ${MOST_REMAINDERS} remainders and 6 places are`,
      { place },
    );
  }
  const own = { regular: remainders(Number(divisor), places), isNegated };
  // What is no multiple may be written in every way but with an exponent.
  return isNegated
    ? [own, { regular: sequence(repeat(MINUS, [0, 1]), ANY_WHOLE, ANY_FRACTION) }]
    : [own];
}

function gcd(a: bigint, b: bigint): bigint {
  return b === 0n ? a : gcd(b, a % b);
}

function remainders(divisor: number, places: number): Regular {
  const edges: [number, CodePoints, number][] = [];
  const state = (level: number, remainder: number) => 1 + level * divisor + remainder;
  const minus = 0;
  const zeros = state(places + 2, 0);
  edges.push([zeros, digitSet(0, 0), zeros]);
  // Level 0 stands before the point, level 1 + k behind it and k digits.
  for (let remainder = 0; remainder < divisor; remainder++) {
    for (let digit = 0; digit <= 9; digit++) {
      const next = (10 * remainder + digit) % divisor;
      const set = digitSet(digit, digit);
      if (remainder === 0) edges.push([minus, set, state(0, digit % divisor)]);
      edges.push([state(0, remainder), set, state(0, next)]);
      for (let k = 0; k < places; k++) {
        edges.push([state(1 + k, remainder), set, state(2 + k, next)]);
      }
    }
    edges.push([state(0, remainder), codePoints([0x2e, 0x2e]), state(1, remainder)]);
  }
  edges.push([state(places + 1, 0), digitSet(0, 0), zeros]);
  const ends = [zeros];
  for (let remainder = 0; remainder < divisor; remainder++) {
    if (remainder * 10 ** places % divisor === 0) ends.push(state(0, remainder));
    for (let k = 1; k <= places; k++) {
      if (remainder * 10 ** (places - k) % divisor === 0) ends.push(state(1 + k, remainder));
    }
  }
  const graph: Regular = { kind: "graph", size: zeros + 1, edges, ends };
  return sequence(repeat(MINUS, [0, 1]), graph);
}
