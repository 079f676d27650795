// How number formats scale their codes. A kind is an order of bytes into which every format of it is brought before a
// kernel or a decoder looks at it: WASM and WGSL kernels are told of kinds only, never of a format. Nothing is rounded
// on the way, and what a format derives from integers is derived by whoever reads them.
//
// x is the value of a code c, o what the format subtracts from codes:
// - `d`: float16 d, x = d (c - o); `f`: the same in float32;
// - `dm`: float16 pair, x = d c + m; `fm`: float32 pair;
// - `dz`: float16 d, int16 zero point z, x = d (c - z);
// - `e1`, `e2`: float16 inverse and bias of E0M4, x = (2ⁿ + c 2ⁿ⁻⁴ - bias) inverse;
// - `sides`: float32 pair, x = c times the first if c is positive, the second if it is negative;
// - `e8`: the 8-bit exponent e of a power of two, x = 2^(e - 128) (c - o);
// - `k`: per 256 columns a float16 pair (d, m), then a byte pair (s, n) for 32, x = d s c - m n;
// - `k8`: per 256 columns a float16 d, two bytes of padding, then a signed byte s for 32, x = d s (c - o);
// - `n8`, `n16`: per 256 columns a float16 d, two bytes of padding, then a nibble n for 32 or 16, the first lowest,
//   x = d (n + ½) f (c - o), f being the format's factor;
// - `k16`: per 256 columns a float16 d, two bytes of padding, then a signed byte s for 16, x = d s (c - o);
// - `kn16`: per 256 columns a float16 pair (d, m), then a byte for 16: s low, n high, x = d s c - m n;
// - `e4m3`: an 8-bit float s for 16 columns, of which half counts, x = s / 2 (c - o);
// - `b16`: bytes (b, s) for 16 columns, x = s / 1000 c + (b - 100) / 100.

import { type CodeField, codePacking } from "./fields.ts";
import { readF16, readF32 } from "./half.ts";

/** Reads a number of scale `i` of those that begin at byte `at`. */
type Reader = (bytes: Uint8Array, at: number, i: number) => number;

/** Facts of a kind of scales. */
export interface ScaleFacts {
  /** Bytes under which columns lie. */
  readonly bytes: number;
  /** How many columns; absent: a block. */
  readonly columns?: 32 | 256;
  /** How many of those bytes stand in front: floats of `floatBytes` each. */
  readonly floatBytes: 0 | 2 | 4;
  readonly headBytes: number;
  /** What a scale covers of 32 columns: all of them, each half by its own, or codes of a sign by its own. */
  readonly covers: "group" | "halves" | "signs";
  /** Whether something is added that is no multiple of the scale. */
  readonly minima: boolean;
  /** By what a code is multiplied; absent where its format reads it by itself. */
  readonly step?: Reader;
  /** What is added to the product. */
  readonly minimum?: Reader;
  /** What is subtracted from a code, if not the format's offset. */
  readonly zero?: Reader;
}

const half: Reader = (bytes, at) => readF16(bytes, at);
const signed = (byte: number) => (byte << 24) >> 24;

/** Scales that are floats alone. */
function floats(floatBytes: 2 | 4, count: 1 | 2) {
  const bytes = floatBytes * count;
  return { bytes, headBytes: bytes, floatBytes, covers: "group", minima: false } as const;
}

/** Under one or two float16 for 256 columns so many bytes of integers. */
function integers(bytes: number, covers: "group" | "halves") {
  return { ...{ bytes: 4 + bytes, columns: 256, headBytes: 4, floatBytes: 2, covers } as const };
}

/** Bytes without a float in front. */
function bytesOf(bytes: number, covers: "group" | "halves") {
  return { bytes, columns: 32, headBytes: 0, floatBytes: 0, covers } as const;
}

/** E0M4 with so many steps a unit: `c - zero` counts steps from the bias. */
function e0m4(perUnit: 4 | 8) {
  return {
    ...floats(2, 2),
    minima: true,
    step: (bytes: Uint8Array, at: number) => readF16(bytes, at) / perUnit,
    zero: (bytes: Uint8Array, at: number) => readF16(bytes, at + 2) * perUnit - 16,
  };
}

const SCALE_KINDS = {
  d: { ...floats(2, 1), step: half },
  f: { ...floats(4, 1), step: (bytes, at) => readF32(bytes, at) },
  dm: { ...floats(2, 2), minima: true, step: half, minimum: (bytes, at) => readF16(bytes, at + 2) },
  fm: {
    ...floats(4, 2),
    minima: true,
    step: (bytes, at) => readF32(bytes, at),
    minimum: (bytes, at) => readF32(bytes, at + 4),
  },
  dz: {
    ...floats(2, 2),
    minima: true,
    step: half,
    zero: (bytes, at) => ((bytes[at + 2]! | (bytes[at + 3]! << 8)) << 16) >> 16,
  },
  e1: e0m4(8),
  e2: e0m4(4),
  sides: { ...floats(4, 2), covers: "signs" },
  e8: { ...bytesOf(1, "group"), minima: false, step: (bytes, at) => 2 ** (bytes[at]! - 128) },
  k: {
    ...integers(16, "group"),
    minima: true,
    step: (bytes, at, i) => readF16(bytes, at) * bytes[at + 4 + 2 * i]!,
    minimum: (bytes, at, i) => -(readF16(bytes, at + 2) * bytes[at + 5 + 2 * i]!),
  },
  k8: {
    ...integers(8, "group"),
    minima: false,
    step: (bytes, at, i) => readF16(bytes, at) * signed(bytes[at + 4 + i]!),
  },
  n8: { ...integers(4, "group"), minima: false },
  n16: { ...integers(8, "halves"), minima: false },
  k16: {
    ...integers(16, "halves"),
    minima: false,
    step: (bytes, at, i) => readF16(bytes, at) * signed(bytes[at + 4 + i]!),
  },
  kn16: {
    ...integers(16, "halves"),
    minima: true,
    step: (bytes, at, i) => readF16(bytes, at) * (bytes[at + 4 + i]! & 15),
    minimum: (bytes, at, i) => -(readF16(bytes, at + 2) * (bytes[at + 4 + i]! >> 4)),
  },
  e4m3: {
    ...bytesOf(2, "halves"),
    minima: false,
    step: (bytes, at, i) => halfOfE4m3(bytes[at + i]!),
  },
  b16: {
    ...bytesOf(4, "halves"),
    minima: true,
    step: (bytes, at, i) => bytes[at + 2 * i + 1]! / 1000,
    minimum: (bytes, at, i) => (bytes[at + 2 * i]! - 100) / 100,
  },
} as const satisfies Record<string, ScaleFacts>;

/** Name of a kind of scales. */
export type ScaleKind = keyof typeof SCALE_KINDS;

/** Names of all kinds. */
export const SCALE_KIND_NAMES: readonly ScaleKind[] = Object.keys(SCALE_KINDS) as ScaleKind[];

/** Facts of a kind. */
export function scaleFactsOf(kind: ScaleKind): ScaleFacts {
  return SCALE_KINDS[kind];
}

/** Half the value of an E4M3 code (bias 7) without its sign; 127 (NaN) means 0, as in ggml. */
export function halfOfE4m3(code: number): number {
  if (code === 127) return 0;
  const exponent = (code >> 3) & 15, mantissa = code & 7;
  return exponent === 0 ? mantissa * 2 ** -10 : (1 + mantissa / 8) * 2 ** (exponent - 8);
}

/** Writes the integers of the scales of the block at byte `at`, in the order of their kind, from `to` on. */
export type ScaleIntegers = (
  bytes: Uint8Array,
  at: number,
  out: Uint8Array,
  to: number,
) => void;

/** Where a block of a file has its scales. */
export interface ScaleSource {
  readonly kind: ScaleKind;
  /** Bytes of the block at which its floats lie, in the order of the kind. */
  readonly floats?: readonly number[];
  /** The same of its integers, which lie as in the kind; or their fields, and what is subtracted; or how they are made. */
  readonly integers?: number | IntegerFields | ScaleIntegers;
}

/** Integers of scales that are cut into fields like codes. */
export interface IntegerFields {
  /** Lowest bits first. */
  readonly fields: readonly CodeField[];
  readonly offset: number;
}

/** Bytes of the scales of so many columns of a row, `span` of which share one where the kind does not say it. */
export function scaleBytes(kind: ScaleKind, span: number, columns: number): number {
  const { bytes, columns: own = span } = scaleFactsOf(kind);
  return bytes * columns / own;
}

/** A function that brings the scales of a block of `columns` into the order of their kind. */
export function scaleCopier(
  { kind, floats = [], integers }: ScaleSource,
  columns: number,
): ScaleIntegers {
  const { floatBytes, headBytes } = scaleFactsOf(kind);
  const from = floats.flatMap((at) => Array.from({ length: floatBytes }, (_, i) => at + i));
  const count = from.length;
  if (integers === undefined) {
    return (bytes, at, out, to) => {
      for (let i = 0; i < count; i++) out[to + i] = bytes[at + from[i]!]!;
    };
  }
  const write = integerWriter(integers, scaleBytes(kind, columns, columns) - headBytes);
  return (bytes, at, out, to) => {
    for (let i = 0; i < count; i++) out[to + i] = bytes[at + from[i]!]!;
    write(bytes, at, out, to + headBytes);
  };
}

function integerWriter(
  integers: NonNullable<ScaleSource["integers"]>,
  count: number,
): ScaleIntegers {
  if (typeof integers === "function") return integers;
  if (typeof integers === "number") {
    return (bytes, at, out, to) => {
      for (let i = 0; i < count; i++) out[to + i] = bytes[at + integers + i]!;
    };
  }
  const { fields, offset } = integers, { unpack } = codePacking({ codes: fields });
  const codes = new Uint8Array(count);
  return (bytes, at, out, to) => {
    unpack(bytes, at, codes);
    for (let i = 0; i < count; i++) out[to + i] = codes[i]! - offset;
  };
}
