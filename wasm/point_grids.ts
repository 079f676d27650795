// The grids of the IQ1, IQ2 and IQ3 formats as kernels look them up: a table in WASM memory that has a byte for
// each coordinate of each point, at an address that is part of the kernels' text. Tables are made from quant/ and
// written when a matrix that needs one is packed, so that most processes never have them.
//   IQ1         8 · (coordinate + 1); the shift by an eighth comes on top
//   IQ2, IQ3    the rank of the coordinate among the levels, 0..7; with the sign as bit 3 it is looked up once more

import { type Grid, type GridName, IQ_GRIDS } from "../quant/iq_grids.ts";
import { CONTROL } from "./layout.ts";

/** A grid's table. */
export interface PointGrid {
  /** Coordinates, and bytes, of a point. */
  readonly dimensions: 4 | 8;
  /** Bits of a point's number. */
  readonly indexBits: number;
  /** Levels of the coordinates, of grids with signs. */
  readonly table?: keyof typeof POINT_LEVELS | undefined;
  /** Address in WASM memory. */
  readonly address: number;
  /** Coordinates of all points, `dimensions << indexBits` long. */
  entries(): Uint8Array;
}

type Signed = "iq2" | "iq3" | "iq3_s";

/** Magnitudes of the coordinates of grids with signs, by rank. */
export const POINT_LEVELS: Readonly<Record<Signed, readonly number[]>> = {
  iq2: [8, 25, 43],
  iq3: [4, 12, 20, 28, 36, 44, 52, 62],
  iq3_s: [1, 3, 5, 7, 9, 11, 13, 15],
};

/** Bytes of coordinates: ranks of levels, or of ternary ones eighths above the least. */
function entriesOf({ coordinates }: Grid, table: Signed | undefined): Uint8Array {
  const levels = table && POINT_LEVELS[table];
  return Uint8Array.from(coordinates, (level) => levels ? levels.indexOf(level) : 8 * (level + 1));
}

type Line = readonly [PointGrid["dimensions"], indexBits: number, table?: Signed];

const LINES: Readonly<Record<GridName, Line>> = {
  iq1: [8, 11],
  iq2_xxs: [8, 8, "iq2"],
  iq2_xs: [8, 9, "iq2"],
  iq2_s: [8, 10, "iq2"],
  iq3_xxs: [4, 8, "iq3"],
  iq3_s: [4, 9, "iq3_s"],
};

function place(): Readonly<Record<GridName, PointGrid>> {
  let address = CONTROL.GRIDS;
  const grids = Object.entries(LINES).map(([name, [dimensions, indexBits, table]]) => {
    const at = address;
    address += dimensions << indexBits;
    let made: Uint8Array | undefined;
    const entries = () => made ??= entriesOf(IQ_GRIDS[name as GridName](), table);
    return [name, { dimensions, indexBits, table, address: at, entries }] as const;
  });
  if (address > CONTROL.END) throw new RangeError(`Grids end at ${address}, beyond CONTROL.END`);
  return Object.fromEntries(grids) as Record<GridName, PointGrid>;
}

/** All grids, one behind the other. */
export const POINT_GRIDS: Readonly<Record<GridName, PointGrid>> = place();
