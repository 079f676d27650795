// Floats of 8 and 4 bit as ONNX files hold them, one code a byte: OCP FP8 (E4M3FN, E5M2), the variants
// without infinity and negative zero (FNUZ), OCP MX scales (E8M0: an exponent alone) and FP4 (E2M1).
// They are element types of tensors, not block formats of weights, so they have no NumberFormat record.
// Decoding is a table of all codes; encoding searches it, which rounds to nearest, ties to the even code.

/** Names of the small floats; they are also the element types of graphs. */
export type SmallFloat = "f8e4m3fn" | "f8e4m3fnuz" | "f8e5m2" | "f8e5m2fnuz" | "f8e8m0" | "f4e2m1";

/** What happens between two codes and beyond the largest. */
export interface SmallFloatRounding {
  /** Beyond the largest: true gives the largest, false infinity or NaN; default true. */
  readonly saturate?: boolean;
  /** Of E8M0 alone: towards which power of two; default `nearest`, a tie going up. */
  readonly round?: "up" | "down" | "nearest";
}

interface Coding {
  /** Values of all codes. */
  readonly values: Float32Array;
  /** Non-negative finite codes: 0 to this. */
  readonly largest: number;
  /** The bit that makes a code negative; 0 where there is none. */
  readonly sign: number;
  readonly nan: number;
  /** Code for overflow that does not saturate. */
  readonly overflow: number;
  readonly hasNegativeZero: boolean;
}

/** `largest`, the last finite non-negative code, is what infinity or NaN leave. */
function coding(
  exponentBits: number,
  mantissaBits: number,
  bias: number,
  special: Omit<Coding, "values" | "sign">,
): Coding {
  const sign = 1 << (exponentBits + mantissaBits);
  const values = new Float32Array(256).fill(NaN);
  const codes = 2 * sign;
  for (let code = 0; code < codes; code++) {
    const magnitude = code & (sign - 1);
    if (magnitude > special.largest) continue;
    const exponent = magnitude >> mantissaBits;
    const fraction = (magnitude & ((1 << mantissaBits) - 1)) / (1 << mantissaBits);
    const value = exponent === 0
      ? fraction * 2 ** (1 - bias)
      : (1 + fraction) * 2 ** (exponent - bias);
    values[code] = code & sign ? -value : value;
  }
  if (!special.hasNegativeZero) values[sign] = NaN;
  return { ...special, values, sign };
}

function e5m2(): Coding {
  const made = coding(5, 2, 15, {
    largest: 0x7b,
    nan: 0x7f,
    overflow: 0x7c,
    hasNegativeZero: true,
  });
  made.values[0x7c] = Infinity;
  made.values[0xfc] = -Infinity;
  return made;
}

const unsignedZero = { largest: 0x7f, nan: 0x80, overflow: 0x80, hasNegativeZero: false };

const CODINGS: Readonly<Record<Exclude<SmallFloat, "f8e8m0">, Coding>> = {
  f8e4m3fn: coding(4, 3, 7, { largest: 0x7e, nan: 0x7f, overflow: 0x7f, hasNegativeZero: true }),
  f8e4m3fnuz: coding(4, 3, 8, unsignedZero),
  f8e5m2: e5m2(),
  f8e5m2fnuz: coding(5, 2, 16, unsignedZero),
  f4e2m1: coding(2, 1, 1, { largest: 7, nan: 8, overflow: 7, hasNegativeZero: true }),
};

/** Whether an element type is one of them. */
export function isSmallFloat(name: string): name is SmallFloat {
  return name === "f8e8m0" || Object.hasOwn(CODINGS, name);
}

/** Value of a code. */
export function decodeSmallFloat(name: SmallFloat, code: number): number {
  if (name !== "f8e8m0") return CODINGS[name].values[code]!;
  return code === 0xff ? NaN : 2 ** (code - 127);
}

/** Code of a number. E2M1 has no NaN: it becomes -0, as ONNX's own encoder (ml_dtypes) has it. */
export function encodeSmallFloat(
  name: SmallFloat,
  value: number,
  { saturate = true, round = "nearest" }: SmallFloatRounding = {},
): number {
  if (name === "f8e8m0") return encodeExponent(value, saturate, round);
  const { values, largest, sign, nan, overflow, hasNegativeZero } = CODINGS[name];
  if (Number.isNaN(value)) return nan;
  const negative = value < 0 || Object.is(value, -0);
  const magnitude = Math.abs(value);
  const code = nearest(values, largest, magnitude);
  // A signless special code, as that of FNUZ, stands for both signs.
  if (code > largest && !saturate) return overflow | (negative && overflow < sign ? sign : 0);
  const kept = Math.min(code, largest);
  return kept | (negative && (kept > 0 || hasNegativeZero) ? sign : 0);
}

/** Nearest of codes 0 to `largest`; `largest + 1` if the number would round to what comes behind. */
function nearest(values: Float32Array, largest: number, magnitude: number): number {
  let low = 0, high = largest;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (values[middle]! <= magnitude) low = middle;
    else high = middle - 1;
  }
  const below = values[low]!;
  const above = low < largest ? values[low + 1]! : 2 * below - values[low - 1]!;
  const half = below + (above - below) / 2;
  return magnitude < half || (magnitude === half && low % 2 === 0) ? low : low + 1;
}

function encodeExponent(value: number, saturate: boolean, round: "up" | "down" | "nearest") {
  if (Number.isNaN(value) || value < 0) return 0xff;
  if (value === Infinity) return saturate ? 0xfe : 0xff;
  if (value === 0) return 0;
  let exponent = Math.floor(Math.log2(value));
  // The logarithm may be off by one at powers of two.
  if (2 ** exponent > value) exponent--;
  else if (2 ** (exponent + 1) <= value) exponent++;
  const fraction = value / 2 ** exponent;
  if (round === "up" ? fraction > 1 : round === "nearest" && fraction >= 1.5) exponent++;
  if (exponent > 127) return saturate ? 0xfe : 0xff;
  return Math.max(0, exponent + 127);
}
