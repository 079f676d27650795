// Random matrices in every number format, for kernel tests: any codes, and scales that are ordinary,
// negative, zero, subnormal or large, but finite. Seeded, so a failure can be repeated.

import type { BitField } from "../../quant/block.ts";
import { formatBytes, getFormat, type NumberFormat, ROW_FAMILIES } from "../../quant/mod.ts";
import type { ScaleKind } from "../../quant/scale_kinds.ts";
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

/** Writes the scales of the block at `block`, whose floats are at some bytes of it. */
type ScaleWriter = (block: DataView, floats: readonly number[], draw: Draw) => void;

/** Where numbers come from, and whether those that hurt most are mixed in. */
interface Draw {
  readonly next: () => number;
  readonly extreme: boolean;
}

const halves: ScaleWriter = (block, floats, draw) => {
  for (const at of floats) block.setUint16(at, scale(draw), true);
};

const single: ScaleWriter = (block, floats, draw) => {
  for (const at of floats) {
    block.setFloat32(at, f16ToF32(scale(draw)) * (1 + draw.next() / 3), true);
  }
};

/** A scale and a bias of whole steps, as encoders of E0M4 write it. */
function e0m4(step: number): ScaleWriter {
  return (block, [first, second], draw) => {
    halves(block, [first!], draw);
    const steps = Math.floor(4096 * (draw.next() - 0.5) * (draw.next() < 0.8 ? 1 / 64 : 1));
    block.setUint16(second!, f32ToF16(step * steps), true);
  };
}

/** By kind of scales (quant/scale_kinds.ts); of others every byte can be used. */
const WRITERS: Partial<Record<ScaleKind, ScaleWriter>> = {
  ...{ d: halves, dm: halves, k: halves, k8: halves, k16: halves, kn16: halves },
  f: single,
  // Half-float values, so that a product with a code is exact and all ways to multiply agree.
  fm(block, floats, draw) {
    for (const at of floats) block.setFloat32(at, f16ToF32(scale(draw)), true);
  },
  sides(block, floats, draw) {
    single(block, floats, draw);
    for (const at of floats) block.setFloat32(at, Math.abs(block.getFloat32(at, true)), true);
  },
  e1: e0m4(1 / 8),
  e2: e0m4(1 / 4),
  dz(block, [first, second], draw) {
    halves(block, [first!], draw);
    const { next } = draw;
    const zero = next() < 0.8 ? Math.floor(40 * next()) - 12 : Math.floor(65536 * next()) - 32768;
    block.setInt16(second!, zero, true);
  },
  /** Exponents, the two smallest among them, that leave numbers finite. */
  e8(block, _floats, { next, extreme }) {
    const exponent = next() < 0.1 ? 4 * next() : 110 + (extreme ? 110 : 20) * next();
    block.setUint8(0, Math.floor(exponent));
  },
};

function writeScales({ name, block }: NumberFormat, at: DataView, draw: Draw): void {
  if (!block) {
    if (name === "F16") halves(at, [0], draw);
  } else if ("grid" in block) writeFields(at, block.d, scale(draw));
  else {WRITERS[block.scales.kind]?.(
      at,
      (block.scales.floats ?? []).toSorted((a, b) => a - b),
      draw,
    );}
}

/** Writes 16 bits, or four times four. */
function writeFields(block: DataView, fields: readonly BitField[], value: number): void {
  if (fields.length === 1) return block.setUint16(0, value, true);
  fields.forEach(({ at }, i) => {
    const byte = block.getUint8(at >> 3) & 15;
    block.setUint8(at >> 3, byte | (((value >> (4 * i)) & 15) << 4));
  });
}

/** The name under which a format stores rows of `columns`: a family of row formats gets them appended. */
export function formatOfRows(family: string, columns: number): string {
  return ROW_FAMILIES.includes(family) ? `${family}_${columns}` : family;
}

/** Formats that models come in most often, which are tested most. */
export const COMMON_FORMATS: readonly string[] = [
  ...["F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "NB4", "Q4_K", "Q5_K", "Q6_K"],
];

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
  if (format === "F32" || format === "BF16") {
    record.encode!(randomValues(rows * columns, seed), bytes);
  } else {
    for (let i = 0; i < bytes.length; i++) bytes[i] = extreme ? 255 : Math.floor(256 * next());
    for (let block = 0; block < bytes.length; block += record.blockBytes) {
      const bytesOfBlock = new DataView(bytes.buffer, block, record.blockBytes);
      writeScales(record, bytesOfBlock, { next, extreme });
      // -128, which encoders never write
      if (extreme && format === "Q8_0") bytes.fill(128, block + 2, block + 34);
    }
  }
  const values = new Float32Array(rows * columns);
  record.decode(bytes, values);
  return { bytes, values };
}

/** Bits of a half float. */
function scale({ next, extreme }: Draw): number {
  const kind = next();
  const sign = next() < 0.5 ? 0x8000 : 0;
  if (kind < 0.05) return sign;
  if (kind < 0.1) return sign | Math.floor(1024 * next());
  if (extreme && kind < 0.4) return sign | 0x7bff;
  return sign | f32ToF16(0.001 + 0.1 * next());
}
