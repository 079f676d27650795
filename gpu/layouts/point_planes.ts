// How the planes of formats of grid points are filled (quant/points.ts): numbers and signs as the file has them, eight
// bits of signs for eight columns. Some files leave the eighth out, because the number of minus signs is even: here it
// is there again where a byte has room for it. Ternary points are shifted by an eighth: eight times their coordinate,
// and one more or less.

import { type Grid, IQ_GRIDS } from "../../quant/iq_grids.ts";
import type { BitField, PointBlock } from "../../quant/block.ts";
import { bitOf } from "../../quant/points.ts";
import { type BitCopy, type BlockCopier, blockCopier } from "./bit_copies.ts";
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

/** Copies of the entries of all groups, so many a group, by where each goes. */
function copiesOf(field: BitField, entries: number, to: (k: number) => number): BitCopy[] {
  return Array.from({ length: 8 * entries }, (_, k) => (
    { from: bitOf(field, k, entries), to: to(k), bits: field.bits }
  ));
}

/** What goes to each plane of codes: bits that are copied, and bytes of a block. */
function planesOf({ grid, index, signs, shifts }: PointBlock) {
  const kind = POINT_KINDS[grid], points = kind.startsWith("p") ? 4 : 8;
  const [low, high] = index as [BitField, BitField?];
  const isBeside = kind === "p8" || kind === "p9",
    groupBytes = isBeside ? 8 : points + (signs ? 4 : 0);
  // Two bytes a point with its signs beside its number, or the numbers of a group and then its signs.
  const numbers = copiesOf(
    low,
    points,
    (k) => isBeside ? 16 * k : 8 * (groupBytes * Math.floor(k / points) + k % points),
  );
  const signBits = signs
    ? copiesOf(
      signs,
      4,
      (k) => isBeside ? 16 * k + low.bits : 8 * (groupBytes * (k >> 2) + points + k % 4),
    )
    : [];
  const completed = signs?.bits === 7 && kind !== "p9";
  const first = [...numbers, ...signBits.map((copy) => ({ ...copy, completed }))];
  const width = shifts ? 4 : high?.bits ?? 0;
  const upper = [
    ...high ? copiesOf(high, points, (k) => width * k) : [],
    // The shift of a point on top of its upper bits.
    ...shifts ? copiesOf(shifts, points, (k) => width * k + high!.bits) : [],
  ];
  return [{ copies: first, bytes: 8 * groupBytes }, { copies: upper, bytes: width * points }];
}

/** A function that fills the planes of so many blocks, from number `first` on, from byte `at` of a file. */
export function pointWriter(
  block: PointBlock,
  { blockBytes, bytes, planes }: {
    readonly blockBytes: number;
    readonly bytes: Uint8Array;
    readonly planes: readonly Uint8Array[];
  },
): (at: number, first: number, blocks: number) => void {
  const copiers = planesOf(block).filter(({ copies }) => copies.length > 0).map((plane) => ({
    ...plane,
    copy: blockCopier(plane.copies, { file: blockBytes, plane: plane.bytes }),
  }));
  return (at, first, blocks) => {
    copiers.forEach(({ copy, bytes: own }, i) => copy(bytes, at, blocks, planes[i]!, first * own));
  };
}

/** The copier of the scales of blocks of so many bytes (quant/scale_kinds.ts). */
export function pointScales({ d, scales }: PointBlock, blockBytes: number): BlockCopier {
  const numbers = scales.kind === "n8" ? 1 : 2;
  const halves = d.map((field, i) => ({ from: field.at, to: i * field.bits, bits: field.bits }));
  const copies = [...halves, ...copiesOf(scales, numbers, (k) => 32 + 4 * k)];
  return blockCopier(copies, { file: blockBytes, plane: 4 + 4 * numbers });
}
