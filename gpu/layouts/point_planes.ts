// How the planes of formats of grid points are filled (quant/points.ts): numbers and signs as the file has them, eight
// bits of signs for eight columns. Some files leave the eighth out, because the number of minus signs is even: here it
// is there again where a byte has room for it. Ternary points are shifted by an eighth: eight times their coordinate,
// and one more or less.

import { type Grid, IQ_GRIDS } from "../../quant/iq_grids.ts";
import type { BitField, PointBlock } from "../../quant/block.ts";
import { entryReader, signReader } from "../../quant/points.ts";
import type { VectorKind } from "./code_planes.ts";

/** Kind of codes of a grid. */
export const POINT_KINDS: Readonly<Record<PointBlock["grid"], VectorKind>> = {
  ...{ iq1: "p11", iq2_xxs: "p8", iq2_xs: "p9", iq2_s: "p10", iq3_xxs: "q8", iq3_s: "q9" },
};

/** Coordinates of all points as bytes, ternary ones without a sign. */
export function pointTable({ grid, shifts }: PointBlock): Uint32Array<ArrayBuffer> {
  const { coordinates }: Grid = IQ_GRIDS[grid]();
  const byteOf = (coordinate: number) => shifts ? 8 * coordinate + 16 : coordinate;
  return new Uint32Array(Uint8Array.from(coordinates, byteOf).buffer);
}

/** Writes the entries of a group of the block at byte `at` to `out`, from `to` on. */
type GroupWriter = (at: number, group: number, out: Uint8Array, to: number) => void;

/** A writer of entries as they follow each other in a file, or one by one as bytes: signs of 7 bits become 8. */
function groupWriter(bytes: Uint8Array, field: BitField, entries: number): GroupWriter {
  const { at: start, bits, step, group: apart } = field, size = bits * entries / 8;
  if (bits === step && bits !== 7) {
    return (at, group, out, to) => {
      const from = at + (start + group * apart >> 3);
      for (let i = 0; i < size; i++) out[to + i] = bytes[from + i]!;
    };
  }
  const read = bits === 7 ? signReader(field) : entryReader([field], entries);
  return (at, group, out, to) => {
    for (let i = 0; i < entries; i++) out[to + i] = read(bytes, at, entries * group + i);
  };
}

/** A function that fills the planes of so many blocks, from number `first` on, from byte `at` of a file. */
export function pointWriter(
  layout: PointBlock,
  { blockBytes, bytes, planes }: {
    readonly blockBytes: number;
    readonly bytes: Uint8Array;
    readonly planes: readonly Uint8Array[];
  },
): (at: number, first: number, blocks: number) => void {
  const write = blockWriter(layout, bytes, planes);
  return (at, first, blocks) => {
    for (let b = 0; b < blocks; b++) write(at + b * blockBytes, first + b);
  };
}

function blockWriter(
  layout: PointBlock,
  bytes: Uint8Array,
  planes: readonly Uint8Array[],
): (at: number, block: number) => void {
  const { index, signs, shifts } = layout, kind = POINT_KINDS[layout.grid];
  const points = kind.startsWith("p") ? 4 : 8;
  const [first, upper] = planes as [Uint8Array, Uint8Array];
  if (kind === "p8" || kind === "p9") {
    // Two bytes a point: the signs are beside its number.
    const { bits } = index[0]!, numberOf = entryReader(index, points);
    const signsOf = kind === "p9" ? entryReader([signs!], 4) : signReader(signs!);
    return (at, block) => {
      for (let p = 0, to = 64 * block; p < 32; p++, to += 2) {
        const word = numberOf(bytes, at, p) | (signsOf(bytes, at, p) << bits);
        first[to] = word;
        first[to + 1] = word >> 8;
      }
    };
  }
  const [low, high] = index as [BitField, BitField?];
  const writeLow = groupWriter(bytes, low, points);
  const writeSigns = signs && groupWriter(bytes, signs, 4);
  const groupBytes = points + (signs ? 4 : 0);
  const upperBytes = (shifts ? 4 : high?.bits ?? 0) * points / 8;
  const writeUpper = shifts
    ? shiftedWriter(bytes, high!, shifts)
    : high && groupWriter(bytes, high, points);
  return (at, block) => {
    for (let group = 0; group < 8; group++) {
      const number = 8 * block + group;
      writeLow(at, group, first, groupBytes * number);
      writeSigns?.(at, group, first, groupBytes * number + points);
      writeUpper?.(at, group, upper, upperBytes * number);
    }
  };
}

/** Nibbles of upper bits with the shift of the point on top. */
function shiftedWriter(bytes: Uint8Array, high: BitField, shifts: BitField): GroupWriter {
  const read = entryReader([high, shifts], 4);
  return (at, group, out, to) => {
    for (let i = 0; i < 4; i += 2) {
      const k = 4 * group + i;
      out[to + (i >> 1)] = read(bytes, at, k) | (read(bytes, at, k + 1) << 4);
    }
  };
}
