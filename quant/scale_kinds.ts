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

import { type BlockSizes, type CodeField, placeOf } from "./fields.ts";

/** Scales of many blocks in the order of their kind, by all the numbers that the same bytes may be. */
export interface StoredScales {
  readonly bytes: Uint8Array;
  readonly signed: Int8Array;
  readonly shorts: Int16Array;
  readonly halves: Float16Array;
  readonly singles: Float32Array;
}

/** What decoders go by, x = step (c - zero) + minimum, for each group of columns. */
export interface GroupScales {
  readonly steps: Float64Array;
  readonly minima: Float64Array;
  readonly zeros: Float64Array;
}

/** Makes the numbers of so many groups of what is stored. */
type ScaleReader = (stored: StoredScales, groups: number, scales: GroupScales) => void;

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
  /** Whether what is subtracted from a code is not the format's offset. */
  readonly hasZeros?: boolean;
  /** Absent where formats read their scales by themselves. Minima that a kind does not have stay. */
  readonly read?: ScaleReader;
}

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

/** A float as the step. */
function single(floatBytes: 2 | 4) {
  const read: ScaleReader = ({ halves, singles }, groups, { steps }) => {
    const numbers = floatBytes === 2 ? halves : singles;
    for (let g = 0; g < groups; g++) steps[g] = numbers[g]!;
  };
  return { ...floats(floatBytes, 1), read } as const;
}

/** A float as the step, another as the minimum. */
function pairs(floatBytes: 2 | 4) {
  const read: ScaleReader = ({ halves, singles }, groups, { steps, minima }) => {
    const numbers = floatBytes === 2 ? halves : singles;
    for (let g = 0; g < groups; g++) {
      steps[g] = numbers[2 * g]!;
      minima[g] = numbers[2 * g + 1]!;
    }
  };
  return { ...floats(floatBytes, 2), minima: true, read } as const;
}

/** E0M4 with so many steps a unit: `c - zero` counts steps from the bias. */
function e0m4(perUnit: 4 | 8) {
  const read: ScaleReader = ({ halves }, groups, { steps, zeros }) => {
    for (let g = 0; g < groups; g++) {
      steps[g] = halves[2 * g]! / perUnit;
      zeros[g] = halves[2 * g + 1]! * perUnit - 16;
    }
  };
  return { ...floats(2, 2), minima: true, hasZeros: true, read } as const;
}

/** So many signed bytes under a float16. */
function multiples(count: 8 | 16) {
  const read: ScaleReader = ({ halves, signed }, groups, { steps }) => {
    for (let g = 0, at = 0; g < groups; at += 4 + count) {
      const d = halves[at / 2]!;
      for (let i = 0; i < count; i++, g++) steps[g] = d * signed[at + 4 + i]!;
    }
  };
  return { ...integers(count, count === 8 ? "group" : "halves"), minima: false, read } as const;
}

const SCALE_KINDS = {
  d: single(2),
  f: single(4),
  dm: pairs(2),
  fm: pairs(4),
  dz: {
    ...floats(2, 2),
    ...{ minima: true, hasZeros: true },
    read({ halves, shorts }, groups, { steps, zeros }) {
      for (let g = 0; g < groups; g++) {
        steps[g] = halves[2 * g]!;
        zeros[g] = shorts[2 * g + 1]!;
      }
    },
  },
  e1: e0m4(8),
  e2: e0m4(4),
  sides: { ...floats(4, 2), covers: "signs" },
  e8: {
    ...bytesOf(1, "group"),
    minima: false,
    read({ bytes }, groups, { steps }) {
      for (let g = 0; g < groups; g++) steps[g] = 2 ** (bytes[g]! - 128);
    },
  },
  k: {
    ...integers(16, "group"),
    minima: true,
    read({ halves, bytes }, groups, { steps, minima }) {
      for (let g = 0, at = 0; g < groups; at += 20) {
        const d = halves[at / 2]!, m = halves[at / 2 + 1]!;
        for (let i = at + 4; i < at + 20; i += 2, g++) {
          steps[g] = d * bytes[i]!;
          minima[g] = -(m * bytes[i + 1]!);
        }
      }
    },
  },
  k8: multiples(8),
  n8: { ...integers(4, "group"), minima: false },
  n16: { ...integers(8, "halves"), minima: false },
  k16: multiples(16),
  kn16: {
    ...integers(16, "halves"),
    minima: true,
    read({ halves, bytes }, groups, { steps, minima }) {
      for (let g = 0, at = 0; g < groups; at += 20) {
        const d = halves[at / 2]!, m = halves[at / 2 + 1]!;
        for (let i = at + 4; i < at + 20; i++, g++) {
          steps[g] = d * (bytes[i]! & 15);
          minima[g] = -(m * (bytes[i]! >> 4));
        }
      }
    },
  },
  e4m3: {
    ...bytesOf(2, "halves"),
    minima: false,
    read({ bytes }, groups, { steps }) {
      for (let g = 0; g < groups; g++) steps[g] = halfOfE4m3(bytes[g]!);
    },
  },
  b16: {
    ...bytesOf(4, "halves"),
    minima: true,
    read({ bytes }, groups, { steps, minima }) {
      for (let g = 0; g < groups; g++) {
        steps[g] = bytes[2 * g + 1]! / 1000;
        minima[g] = (bytes[2 * g]! - 100) / 100;
      }
    },
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
export type ScaleIntegers = (bytes: Uint8Array, at: number, out: Uint8Array, to: number) => void;

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
  /** Two, lowest bits first. */
  readonly fields: readonly [CodeField, CodeField];
  readonly offset: number;
}

/** Bytes of the scales of so many columns of a row, `span` of which share one where the kind does not say it. */
export function scaleBytes(kind: ScaleKind, span: number, columns: number): number {
  const { bytes, columns: own = span } = scaleFactsOf(kind);
  return bytes * columns / own;
}

/** Brings the scales of so many blocks, of which the first is at byte `at`, into the order of their kind. */
export type ScaleCopier = (
  bytes: Uint8Array,
  at: number,
  blocks: number,
  out: Uint8Array,
  to: number,
) => void;

/** The copier of a format's scales. */
export function scaleCopier(
  { kind, floats = [], integers }: ScaleSource,
  { blockSize, blockBytes }: BlockSizes,
): ScaleCopier {
  const { floatBytes, headBytes } = scaleFactsOf(kind),
    own = scaleBytes(kind, blockSize, blockSize);
  const write = typeof integers === "object" || typeof integers === "function"
    ? integerWriter(integers, own - headBytes)
    : undefined;
  return (bytes, at, blocks, out, to) => {
    for (let f = 0; f < floats.length; f++) {
      let from = at + floats[f]!, start = to + f * floatBytes;
      for (let b = 0; b < blocks; b++, from += blockBytes, start += own) {
        out[start] = bytes[from]!;
        out[start + 1] = bytes[from + 1]!;
        if (floatBytes === 2) continue;
        out[start + 2] = bytes[from + 2]!;
        out[start + 3] = bytes[from + 3]!;
      }
    }
    if (write) {
      for (let b = 0; b < blocks; b++) {
        write(bytes, at + b * blockBytes, out, to + b * own + headBytes);
      }
    } else if (typeof integers === "number") {
      const count = own - headBytes;
      let from = (at + integers) | 0, start = (to + headBytes) | 0;
      for (let b = 0; b < blocks; b++) {
        for (let i = 0; i < count; i++) out[(start + i) | 0] = bytes[(from + i) | 0]!;
        from = (from + blockBytes) | 0;
        start = (start + own) | 0;
      }
    }
  };
}

function integerWriter(integers: IntegerFields | ScaleIntegers, count: number): ScaleIntegers {
  if (typeof integers === "function") return integers;
  const { fields: [low, high], offset } = integers;
  const columns = Array.from({ length: count }, (_, i) => [placeOf(low, i), placeOf(high, i)]);
  const places = Uint8Array.from(columns.flat().flatMap(({ byte, shift }) => [byte, shift]));
  const below = low.bits, mask = (1 << below) - 1, above = (1 << high.bits) - 1;
  return (bytes, at, out, to) => {
    for (let i = 0, p = 0; i < count; i++, p += 4) {
      const first = bytes[at + places[p]!]! >> places[p + 1]!;
      const second = bytes[at + places[p + 2]!]! >> places[p + 3]!;
      out[to + i] = ((first & mask) | ((second & above) << below)) - offset;
    }
  };
}
