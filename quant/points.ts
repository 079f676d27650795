// Formats whose codes are points of a grid, each for four or eight columns (iq_grids.ts), as data: which bits of a
// block are the numbers of points, their signs or shifts, and the scales. Decoder and packers follow from it.
//   x = d (n + 1/2) factor · coordinate, with its sign or moved by an eighth

import type { BitField, PointBlock } from "./block.ts";
import type { NumberFormat } from "./format.ts";
import { f16ToF32 } from "./half.ts";
import { IQ_GRIDS } from "./iq_grids.ts";

/** A float16 in front. */
export const HALF_AT_0: readonly BitField[] = [{ at: 0, bits: 16, step: 0, group: 0 }];

/** Reads entry `k` of the block at byte `at`, all groups counted through. */
type EntryReader = (bytes: Uint8Array, at: number, k: number) => number;

/** A reader of fields put together, that of the lowest bits first, of so many entries a group. */
function entryReader(fields: readonly BitField[], entries: number): EntryReader {
  const [field, ...others] = fields, read = fieldReader(field!, entries), { bits } = field!;
  if (others.length === 0) return read;
  const above = entryReader(others, entries);
  return (bytes, at, k) => read(bytes, at, k) | (above(bytes, at, k) << bits);
}

function fieldReader(
  { at: start, bits, step, group, pair = 2 * group }: BitField,
  entries: number,
): EntryReader {
  const places = Array.from({ length: 8 * entries }, (_, k) => {
    const g = Math.floor(k / entries);
    return start + (g >> 1) * pair + (g & 1) * group + (k % entries) * step;
  });
  const low = Uint8Array.from(places, (bit) => bit >> 3), mask = (1 << bits) - 1;
  // Nothing is read behind a block.
  const high = Uint8Array.from(places, (bit) => (bit + bits - 1) >> 3);
  const shifts = Uint8Array.from(places, (bit) => bit & 7);
  return (bytes, at, k) =>
    ((bytes[at + low[k]!]! | (bytes[at + high[k]!]! << 8)) >> shifts[k]!) & mask;
}

/** Eight sign bits from the seven stored ones: the eighth makes the number of minus signs even. */
function completeSigns(stored: number): number {
  let parity = stored ^ (stored >> 4);
  parity ^= parity >> 2;
  parity ^= parity >> 1;
  return stored | ((parity & 1) << 7);
}

/** A reader of signs, four entries a group: a bit for each of eight columns, set where it is minus. */
function signReader(field: BitField): EntryReader {
  const read = entryReader([field], 4);
  return field.bits === 7 ? (bytes, at, k) => completeSigns(read(bytes, at, k)) : read;
}

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
  const { grid, index, signs, shifts, d, scales, factor } = block;
  const none: EntryReader = () => 0;
  return (bytes, out) => {
    const { dimensions, coordinates } = IQ_GRIDS[grid]();
    const points = 32 / dimensions, column = dimensions === 8 ? 3 : 2;
    const numberOf = entryReader(index, points), halfOf = entryReader(d, 1);
    const signsOf = signs ? signReader(signs) : none;
    const shiftOf = shifts ? entryReader([shifts], points) : none, shift = shifts ? 0.125 : 0;
    const covered = scales.kind === "n8" ? 5 : 4, scaleOf = entryReader([scales], 32 >> covered);
    for (let b = 0, o = 0; o < out.length; b += blockBytes) {
      const unit = f16ToF32(halfOf(bytes, b, 0)) * factor;
      for (let p = 0, c = 0; c < 256; p++, c = p << column) {
        const point = numberOf(bytes, b, p) << column;
        const scale = unit * (scaleOf(bytes, b, c >> covered) + 0.5);
        const minus = signsOf(bytes, b, c >> 3) >> (c & 7);
        const moved = shiftOf(bytes, b, p) ? -shift : shift;
        for (let i = 0; i < dimensions; i++) {
          const value = scale * (coordinates[point + i]! + moved);
          out[o++] = (minus >> i) & 1 ? -value : value;
        }
      }
    }
  };
}
