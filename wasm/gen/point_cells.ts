// Text that reads the codes of one cell of grid points (wasm/weight_layout.ts): each point is looked up in its grid's
// table (wasm/point_grids.ts), four or eight columns of a row at once, into the lane that the row has in w{q}_{h}
// (cells.ts). With eight columns, two rows fill a vector, and two vectors are taken apart into two quads.
//   numbers of points: all of a row, or half of them, are in one word; its shift leaves the offset in the table
//   signs:             a vector has them all; bit 3 of a coordinate's rank, which is looked up in a vector
//   shifts:            added, as bit 1
//
// A cell has 32 (or 64) points to look up, each a load that V8 checks, so that multiplying is a small part of the
// work: these formats have no GEMV of their own, a block is unpacked first (gemv_unpacked.ts).
//
// The cells are as small as the file's; layouts with a code for each column are 1.25 to 2.1 times as large and twice as
// fast to unpack (bench/results/kernels.md).

import { POINT_GRIDS } from "../point_grids.ts";
import type { WeightLayout } from "../weight_layout.ts";
import { shifted } from "./cells.ts";
import { HALVES, scaleConstants } from "./scales.ts";

/** Statements at the start of a function. */
export function pointConstants(layout: WeightLayout): string[] {
  const { table, points } = layout;
  return [
    ...scaleConstants(layout),
    "const LOW4 = v128.load(LOW4_AT), ONE_HALF = f32x4.splat(0.5);",
    ...points!.beside === "shifts"
      ? ["const BIT1 = v128.load(BIT1_AT), FOURFOLD = v128.load(FOURFOLD_AT);"]
      : [],
    ...table
      ? [`const BIT3 = v128.load(BIT3_AT), TABLE = v128.load(${table.toUpperCase()}_AT);`]
      : [],
  ];
}

/** Where things stand in a cell, and how numbers of points are read. */
function planOf({ points, scaleBytes }: WeightLayout) {
  const { dimensions, indexBits, address } = POINT_GRIDS[points!.grid];
  const pointsARow = 32 / dimensions, planeBytes = pointsARow * indexBits;
  // Four numbers of 8 bit fill a word of 32; of more bits they need one of 64, which may begin within a byte.
  const wordBytes = indexBits === 8 ? 4 : 8;
  const words = pointsARow / 4;
  return {
    ...{ dimensions, indexBits, address, planeBytes, wordBytes, words },
    /** First byte of a word, and its shift; not to read behind the cell the last ones begin earlier. */
    wordAt(row: number, word: number) {
      const bit = 4 * indexBits * (words * row + word);
      const byte = Math.min(bit >> 3, planeBytes - wordBytes);
      return { at: scaleBytes + byte, shift: bit - 8 * byte };
    },
  };
}

/** Statements, once a cell, that load the signs or shifts. */
function besidePoints(layout: WeightLayout): string[] {
  const { scaleBytes, points } = layout;
  const at = scaleBytes + planOf(layout).planeBytes;
  switch (points!.beside) {
    case "signs":
      return HALVES.map((h) => `const b${h} = v128.load(w, ${at + 16 * h});`);
    case "shifts":
      return [`const S = lookUp(v128.load32_zero(w, ${at}), FOURFOLD);`];
    case "nothing":
      return [];
  }
}

/** Statements that load a word of each row of a half. */
function pointWords(layout: WeightLayout, word: number, h: number): string[] {
  const { wordAt, wordBytes } = planOf(layout);
  return [0, 1, 2, 3].map((r) => 4 * h + r).map((row) =>
    `const i${row}_${word} = load<u${8 * wordBytes}>(w, ${wordAt(row, word).at});`
  );
}

/** Offset in the table of a row's point. */
function offsetOf(layout: WeightLayout, row: number, point: number): string {
  const { dimensions, indexBits, wordAt } = planOf(layout);
  const word = point >> 2, scale = dimensions === 8 ? 3 : 2;
  const right = wordAt(row, word).shift + indexBits * (point & 3) - scale;
  const value = `i${row}_${word}`;
  const moved = right > 0
    ? `(${value} >> ${right})`
    : right < 0
    ? `(${value} << ${-right})`
    : value;
  return `<usize>${moved} & ${((1 << indexBits) - 1) << scale}`;
}

/** Statements that define what the grid has for quad `q` of the rows of a half, and with eight columns the next. */
function lookUpPoints(layout: WeightLayout, q: number, h: number): string[] {
  const { dimensions, address } = planOf(layout);
  const offset = (row: number, point: number) => offsetOf(layout, 4 * h + row, point);
  if (dimensions === 4) {
    const first = `v128.load32_zero(${offset(0, q)}, ${address})`;
    const all = [1, 2, 3].reduce(
      (lanes, r) => `v128.load32_lane(${offset(r, q)}, ${lanes}, ${r}, ${address})`,
      first,
    );
    return [`const g${q}_${h} = ${all};`];
  }
  if (q & 1) return [];
  const pair = (row: number) =>
    `v128.load64_lane(${offset(row + 1, q >> 1)}, ` +
    `v128.load64_zero(${offset(row, q >> 1)}, ${address}), 1, ${address})`;
  return [
    `const A${q}_${h} = ${pair(0)}, B${q}_${h} = ${pair(2)};`,
    `const g${q}_${h} = v128.shuffle<i32>(A${q}_${h}, B${q}_${h}, 0, 2, 4, 6);`,
    `const g${q + 1}_${h} = v128.shuffle<i32>(A${q}_${h}, B${q}_${h}, 1, 3, 5, 7);`,
  ];
}

/** What quad `q` of a half is multiplied by. */
function valueOf(layout: WeightLayout, q: number, h: number): string {
  const point = `g${q}_${h}`;
  switch (layout.points!.beside) {
    case "signs":
      return `lookUp(TABLE, v128.or(${point}, v128.and(${shifted(`b${h}`, 3 - q)}, BIT3)))`;
    case "shifts":
      return `v128.or(${point}, s${q >> 1}_${h})`;
    case "nothing":
      return point;
  }
}

/**
 * Statements that store the quads of a cell at `codes`, `codeStride` apart. One half after the other: the words of
 * four rows stay in registers.
 */
export function storePoints(layout: WeightLayout): string[] {
  const { dimensions } = planOf(layout), shifts = layout.points!.beside === "shifts";
  const lines = besidePoints(layout);
  for (const h of HALVES) {
    lines.push(`let at${h} = codes;`);
    for (let q = 0; q < 8; q++) {
      // A word has four points.
      if (q % dimensions === 0) lines.push(...pointWords(layout, q / dimensions, h));
      if (shifts && q % 2 === 0) {
        const left = 1 - (q >> 1) - 4 * h;
        lines.push(`const s${q >> 1}_${h} = v128.and(${shifted("S", left)}, BIT1);`);
      }
      lines.push(...lookUpPoints(layout, q, h));
      lines.push(`v128.store(at${h}, ${valueOf(layout, q, h)}, ${16 * h}); at${h} += codeStride;`);
    }
  }
  return [...lines, "codes = at0;"];
}
