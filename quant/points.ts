// Formats whose codes are points of a grid, each for four or eight columns (iq_grids.ts), as data: which bits of a
// block are the numbers of points, their signs or shifts, and the scales. Decoder and packers follow from it.
//   x = d (n + 1/2) factor · coordinate, with its sign or moved by an eighth

import type { BitField, PointBlock } from "./block.ts";
import type { NumberFormat } from "./format.ts";
import { f16ToF32 } from "./half.ts";
import { IQ_GRIDS } from "./iq_grids.ts";

/** A float16 in front. */
export const HALF_AT_0: readonly BitField[] = [{ at: 0, bits: 16, step: 0, group: 0 }];

/** Reads all entries of the block at byte `at`. */
type EntryReader = (bytes: Uint8Array, at: number, entries: Uint16Array) => void;

/** Where entry `k` of a field begins, all groups of so many entries counted through. */
export function bitOf(
  { at, step, group, pair = 2 * group }: BitField,
  k: number,
  entries: number,
): number {
  const g = Math.floor(k / entries);
  return at + (g >> 1) * pair + (g & 1) * group + (k % entries) * step;
}

/** A reader of fields put together, that of the lowest bits first, of so many entries in each of the groups. */
function entryReader(fields: readonly BitField[], entries: number, groups = 8): EntryReader {
  let below = 0;
  const count = groups * entries,
    parts = fields.map((field) => {
      const bits = Array.from({ length: count }, (_, k) => bitOf(field, k, entries));
      const part = {
        low: Uint8Array.from(bits, (bit) => bit >> 3),
        // Nothing is read behind a block.
        high: Uint8Array.from(bits, (bit) => (bit + field.bits - 1) >> 3),
        shifts: Uint8Array.from(bits, (bit) => bit & 7),
        ...{ mask: (1 << field.bits) - 1, below },
      };
      below += field.bits;
      return part;
    });
  return (bytes, at, out) => {
    for (let p = 0; p < parts.length; p++) {
      const { low, high, shifts, mask, below } = parts[p]!;
      for (let k = 0; k < count; k++) {
        const two = bytes[(at + low[k]!) | 0]! | (bytes[(at + high[k]!) | 0]! << 8);
        const entry = ((two >> shifts[k]!) & mask) << below;
        out[k] = below === 0 ? entry : out[k]! | entry;
      }
    }
  };
}

/** Eight signs by the seven that are stored: the eighth makes the number of minus signs even. */
export const SIGNS: Uint8Array = Uint8Array.from({ length: 128 }, (_, seven) => {
  let parity = seven ^ (seven >> 4);
  parity ^= parity >> 2;
  return seven | (((parity ^ (parity >> 1)) & 1) << 7);
});

/** A format of points, described by its block. */
export interface PointFormat extends PointBlock {
  readonly name: string;
  readonly ggmlType: number;
  readonly blockBytes: number;
}

/** The record of a format of points. They have no encoder: the sets are made for a search over whole models. */
export function definePoints({ name, ggmlType, blockBytes, ...block }: PointFormat): NumberFormat {
  return {
    ...{ name, ggmlType, blockBytes, blockSize: 256, block },
    decode: decoderOf(block, blockBytes),
  };
}

function decoderOf(block: PointBlock, blockBytes: number): NumberFormat["decode"] {
  const { grid, index, signs, shifts, d, scales, factor } = block, shift = shifts ? 0.125 : 0;
  const covered = scales.kind === "n8" ? 5 : 4, isCompleted = signs?.bits === 7;
  const numbers = new Uint16Array(64), minus = new Uint16Array(32), moved = new Uint16Array(64);
  const multiples = new Uint16Array(16), halves = new Uint16Array(1);
  let readers: { readonly read: EntryReader; readonly entries: Uint16Array }[] | undefined;
  return (bytes, out) => {
    const { dimensions, coordinates } = IQ_GRIDS[grid]();
    const points = 32 / dimensions, column = dimensions === 8 ? 3 : 2;
    readers ??= [
      { read: entryReader(index, points), entries: numbers },
      { read: entryReader([scales], 32 >> covered), entries: multiples },
      { read: entryReader(d, 1, 1), entries: halves },
      ...signs ? [{ read: entryReader([signs], 4), entries: minus }] : [],
      ...shifts ? [{ read: entryReader([shifts], points), entries: moved }] : [],
    ];
    for (let b = 0, o = 0; o < out.length; b += blockBytes) {
      for (const { read, entries } of readers) read(bytes, b, entries);
      const unit = f16ToF32(halves[0]!) * factor;
      for (let p = 0, c = 0; c < 256; p++, c = p << column) {
        const point = numbers[p]! << column;
        const scale = unit * (multiples[c >> covered]! + 0.5);
        const stored = minus[c >> 3]!, bits = (isCompleted ? SIGNS[stored]! : stored) >> (c & 7);
        const by = shift - 2 * shift * moved[p]!;
        for (let i = 0; i < dimensions; i++) {
          // One or minus one: to branch by bits that nobody can foresee takes longer than to multiply.
          const sign = 1 - 2 * ((bits >> i) & 1);
          out[(o + i) | 0] = sign * (scale * (coordinates[(point + i) | 0]! + by));
        }
        o = (o + dimensions) | 0;
      }
    }
  };
}
