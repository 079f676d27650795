// Random matrices in every number format, for kernel tests: any codes, and scales that are ordinary,
// negative, zero, subnormal or large, but finite. Seeded, so a failure can be repeated.

import { formatBytes, getFormat } from "../../quant/mod.ts";
import { f16ToF32, f32ToF16 } from "../../quant/half.ts";

/** A generator of numbers in [0, 1), xorshift. */
export function random(seed: number): () => number {
  let state = (seed * 2654435761 + 1) | 0 || 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

/** Normally distributed numbers, now and then scaled far up or down in a run of 32. */
export function randomValues(count: number, seed: number): Float32Array {
  const next = random(seed);
  const values = new Float32Array(count);
  let size = 1;
  for (let i = 0; i < count; i++) {
    if (i % 32 === 0) size = next() < 0.1 ? 10 ** (8 * next() - 4) : 1;
    values[i] = size * (next() + next() + next() + next() - 2);
  }
  return values;
}

/** Writes the scales of a block. */
type ScaleWriter = (view: DataView, block: number, next: () => number, extreme: boolean) => void;

/** Half-float scales at offsets in a block. */
function halves(...offsets: readonly number[]): ScaleWriter {
  return (view, block, next, extreme) => {
    for (const at of offsets) view.setUint16(block + at, scale(next, extreme), true);
  };
}

/** float32 scales with half-float values, so that a product with a code is exact and all ways to multiply agree. */
function coarseSingles(...offsets: readonly number[]): ScaleWriter {
  return (view, block, next, extreme) => {
    for (const at of offsets) {
      view.setFloat32(block + at, f16ToF32(scale(next, extreme)), true);
    }
  };
}

/** One float32 scale of any value. */
const single: ScaleWriter = (view, block, next, extreme) =>
  view.setFloat32(block, f16ToF32(scale(next, extreme)) * (1 + next() / 3), true);

/** A scale and a bias of whole steps, as encoders of E0M4 write it. */
function e0m4(step: number): ScaleWriter {
  return (view, block, next, extreme) => {
    halves(0)(view, block, next, extreme);
    const steps = Math.floor(4096 * (next() - 0.5) * (next() < 0.8 ? 1 / 64 : 1));
    view.setUint16(block + 2, f32ToF16(step * steps), true);
  };
}

const int4: ScaleWriter = (view, block, next, extreme) => {
  halves(0)(view, block, next, extreme);
  const zero = next() < 0.8 ? Math.floor(40 * next()) - 12 : Math.floor(65536 * next()) - 32768;
  view.setInt16(block + 2, zero, true);
};

/** Exponents, the two smallest among them, that leave numbers finite. */
const mxfp4: ScaleWriter = (view, block, next, extreme) =>
  view.setUint8(
    block,
    next() < 0.1 ? Math.floor(4 * next()) : 110 + Math.floor((extreme ? 110 : 20) * next()),
  );

const SCALES: Readonly<Record<string, ScaleWriter>> = {
  ...Object.fromEntries(
    [
      ...["F16", "Q4_0", "Q5_0", "Q8_0", "IQ4_NL", "IQ4_XS"],
      ...["IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S"],
    ].map((name) => [name, halves(0)]),
  ),
  ...Object.fromEntries(
    ["Q4_1", "Q5_1", "Q8_1", "Q4_K", "Q5_K", "Q8_B32T1", "Q6_B64T1", "Q5_B64T1", "Q4_B64T1"]
      .map((name) => [name, halves(0, 2)]),
  ),
  ...Object.fromEntries(
    ["Q4_B32T1A", "Q4_B32T1B", "Q3H_B64T1", "Q3_B32T1A", "Q3_B32T1B", "Q2_B32T1A", "Q2_B32T1B"]
      .map((name) => [name, halves(0, 2)]),
  ),
  ...Object.fromEntries([32, 64, 128, 256].flatMap((group) => [
    [`E0M4_G${group}`, e0m4(1 / 8)],
    [`E0M4_G${group}_N2`, e0m4(1 / 4)],
    [`INT4_G${group}`, int4],
  ])),
  IQ1_S: halves(0),
  IQ1_M: (view, block, next, extreme) => {
    const d = scale(next, extreme);
    [49, 51, 53, 55].forEach((at, i) => {
      view.setUint8(block + at, (view.getUint8(block + at) & 15) | (((d >> (4 * i)) & 15) << 4));
    });
  },
  Q2_K: halves(80, 82),
  Q3_K: halves(108),
  Q6_K: halves(208),
  TQ2_0: halves(64),
  NB4: coarseSingles(0, 4),
  LF8: single,
  Q8_K: single,
  Q8_GL: (view, block, next, extreme) => {
    for (const at of [0, 4]) {
      view.setFloat32(
        block + at,
        Math.abs(f16ToF32(scale(next, extreme))) * (1 + next() / 3),
        true,
      );
    }
  },
  Q1_0: halves(0),
  TQ1_0: halves(52),
  I8PC: single,
  I4PC: single,
  MXFP4: mxfp4,
  // Every byte is a scale that can be used.
  NVFP4: () => {},
  Q4_B16: () => {},
  Q8_LOG: () => {},
};

/** The name under which a format stores rows of `columns`: a family of row formats gets them appended. */
export function formatOfRows(family: string, columns: number): string {
  return ROW_FAMILIES.includes(family) ? `${family}_${columns}` : family;
}

function familyOf(format: string): string {
  return ROW_FAMILIES.find((family) => format.startsWith(`${family}_`)) ?? format;
}

/** Formats that models come in most often, which are tested most. */
export const COMMON_FORMATS: readonly string[] = [
  ...["F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "NB4", "Q4_K", "Q5_K", "Q6_K"],
];

/** Formats whose block is a row. */
export const ROW_FAMILIES: readonly string[] = ["I8PC", "I4PC", "Q8_GL"];

/** A matrix as a file stores it, and its numbers. */
export interface RandomWeight {
  readonly bytes: Uint8Array;
  readonly values: Float32Array;
}

/** A random matrix; `extreme` makes every code bit 1 and mixes in the scales that hurt most. */
export function randomWeight(
  format: string,
  rows: number,
  columns: number,
  seed: number,
  extreme = false,
): RandomWeight {
  const record = getFormat(format);
  const bytes = new Uint8Array(formatBytes(record, rows * columns));
  const next = random(seed);
  const view = new DataView(bytes.buffer);
  if (format === "F32" || format === "BF16") {
    record.encode!(randomValues(rows * columns, seed), bytes);
  } else {
    for (let i = 0; i < bytes.length; i++) bytes[i] = extreme ? 255 : Math.floor(256 * next());
    for (let block = 0; block < bytes.length; block += record.blockBytes) {
      SCALES[familyOf(format)]!(view, block, next, extreme);
      // -128, which encoders never write
      if (extreme && format === "Q8_0") bytes.fill(128, block + 2, block + 34);
    }
  }
  const values = new Float32Array(rows * columns);
  record.decode(bytes, values);
  return { bytes, values };
}

function scale(next: () => number, extreme: boolean): number {
  const kind = next();
  const sign = next() < 0.5 ? 0x8000 : 0;
  if (kind < 0.05) return sign;
  if (kind < 0.1) return sign | Math.floor(1024 * next());
  if (extreme && kind < 0.4) return sign | 0x7bff;
  return sign | f32ToF16(0.001 + 0.1 * next());
}
