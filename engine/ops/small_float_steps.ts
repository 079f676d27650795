// Small floats as kernels convert them: a table of the values of all codes, and one of the steps at which
// the code of a float32 changes. Both are made from the scalar definition (quant/small_floats.ts), so that
// one search on a device rounds, saturates and overflows as each of the formats does.

import {
  decodeSmallFloat,
  encodeSmallFloat,
  type SmallFloat,
  type SmallFloatRounding,
} from "../../quant/small_floats.ts";

/** Codes of a byte. */
const CODES = 256;

/** The value of each code, as bits of float32. */
export function smallFloatValues(name: SmallFloat): Uint32Array {
  const values = Float32Array.from({ length: CODES }, (_, code) => decodeSmallFloat(name, code));
  return new Uint32Array(values.buffer);
}

/** Where codes begin in the order of keys: keys, then the code of each. */
export interface CodeSteps {
  /** How many. */
  readonly count: number;
  /** `count` keys, ascending, the first of them 0, then `count` codes. */
  readonly words: Uint32Array;
}

const known = new Map<string, CodeSteps>();

/**
 * The steps of a format. The key of a float32 puts all of them in order, NaNs at both ends: its bits with the
 * first one turned, or all of them if it is negative.
 */
export function smallFloatSteps(name: SmallFloat, rounding: SmallFloatRounding): CodeSteps {
  const id = `${name} ${rounding.saturate} ${rounding.round}`;
  if (!known.has(id)) {
    known.set(id, findSteps((key) => encodeSmallFloat(name, floatAt(key), rounding), name));
  }
  return known.get(id)!;
}

function findSteps(codeAt: (key: number) => number, name: SmallFloat): CodeSteps {
  // Between two values that are neighbours in the format the code changes once at most.
  const values = [...smallFloatValues(name)].map(keyOf);
  const anchors = [0, ...values, keyOf(0x7f800000), keyOf(0xff800000), 2 ** 32 - 1];
  const keys = [0], codes = [codeAt(0)];
  let from = 0;
  for (const to of [...new Set(anchors)].sort((a, b) => a - b)) {
    const code = codeAt(to);
    if (code !== codes.at(-1)) {
      keys.push(firstKey(from, to, (key) => codeAt(key) === code));
      codes.push(code);
    }
    from = to;
  }
  return { count: keys.length, words: Uint32Array.from([...keys, ...codes]) };
}

/** The first key behind `low` for which something holds that holds from there to `high`. */
function firstKey(low: number, high: number, holds: (key: number) => boolean): number {
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (holds(middle)) high = middle;
    else low = middle;
  }
  return high;
}

function keyOf(bits: number): number {
  return (bits >>> 31 ? ~bits : bits | 0x80000000) >>> 0;
}

function floatAt(key: number): number {
  const bits = key >>> 31 ? key & 0x7fffffff : ~key;
  return new Float32Array(Uint32Array.of(bits).buffer)[0]!;
}
