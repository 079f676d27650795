// How the codes of a group of 32 columns lie in planes. What kernels want are words of four neighbouring columns as
// bytes, for packed dot products; so four columns that are a word are one mask and one shift away:
// - nibbles: 16 bytes, byte 4j + i holding column 4j + i low and column 16 + 4j + i high;
// - pairs: two words, bit pair q of byte i of word h being column 16h + 4q + i's;
// - bits: a word, bit q of byte i being column 4q + i's;
// - bytes: 32 bytes, a column each.
// Codes of vectors and of base 3 have planes of their own (point_planes.ts, code_layout.ts).

/**
 * Codes of a column each: unsigned ones of 2 to 6 bits, signed bytes, signs alone, indices of levels in a table, and
 * floats of 4 bits, which are twice their value and 16 more.
 */
export type ColumnKind = "s1" | "u2" | "u3" | "u4" | "u5" | "u6" | "i8" | "l4" | "f4";

/**
 * Codes of several columns: points of eight columns by indices of 8 to 11 bits, points of four by indices of
 * 8 and 9 bits, five digits of base 3 a byte.
 */
export type VectorKind = "p8" | "p9" | "p10" | "p11" | "q8" | "q9" | "t5";

/** How codes are stored. */
export type CodeKind = ColumnKind | VectorKind;

/** A plane of codes. */
export interface CodePlane {
  /** Name of its binding. */
  readonly name: string;
  /** WGSL type of what a group has in it. */
  readonly type: string;
  /** Bytes of a group. */
  readonly bytes: number;
}

const NIBBLES: CodePlane = { name: "w_codes", type: "vec4<u32>", bytes: 16 };
const BYTES: CodePlane = { ...NIBBLES, bytes: 32 };
const PAIRS: CodePlane = { name: "w_pairs", type: "vec2<u32>", bytes: 8 };
const BITS: CodePlane = { name: "w_bits", type: "u32", bytes: 4 };
/** Eight bytes of points and four of signs. */
const POINTS: CodePlane = { name: "w_points", type: "u32", bytes: 12 };
/** Upper bits of the indices of points, a byte or two. */
const UPPER: CodePlane = { name: "w_upper", type: "u32", bytes: 1 };

/**
 * Planes of each kind: with scales and a table four at most, so that a product with all that may be added to it keeps
 * to the eight bindings that every device has.
 */
export const CODE_KINDS: Readonly<Record<CodeKind, readonly CodePlane[]>> = {
  s1: [BITS],
  u2: [PAIRS],
  u3: [PAIRS, BITS],
  u4: [NIBBLES],
  u5: [NIBBLES, BITS],
  u6: [NIBBLES, PAIRS],
  i8: [BYTES],
  l4: [NIBBLES],
  f4: [NIBBLES],
  p8: [PAIRS],
  p9: [PAIRS],
  p10: [PAIRS, UPPER],
  p11: [BITS, { ...UPPER, bytes: 2 }],
  q8: [POINTS],
  q9: [POINTS, UPPER],
  // 13 words of 256 columns.
  t5: [{ name: "w_digits", type: "u32", bytes: 6.5 }],
};

/**
 * Writes so many groups of codes, eight words of four columns each, to a plane, from number `group` on; of bytes the bits of
 * `flip` are turned.
 */
export type PlaneWriter = (
  quads: Int32Array,
  plane: Int32Array,
  group: number,
  groups: number,
  flip: number,
) => void;

/** The writer of a plane that holds codes of columns. */
export function planeWriter(plane: CodePlane): PlaneWriter {
  return WRITERS.get(plane)!;
}

/** The words of a plane. */
export function wordsOf({ buffer, byteOffset, byteLength }: Uint8Array): Int32Array {
  return new Int32Array(buffer, byteOffset, byteLength >> 2);
}

// As quant/decode_fields.ts, these cut places to 32 bits.

const writeBytes: PlaneWriter = (quads, plane, group, groups, flip) => {
  const to = 8 * group, count = 8 * groups;
  for (let q = 0; q < count; q++) plane[(to + q) | 0] = quads[q]! ^ flip;
};

const writeNibbles: PlaneWriter = (quads, plane, group, groups) => {
  const count = 8 * groups;
  for (let q = 0, to = 4 * group; q < count; q = (q + 8) | 0, to = (to + 4) | 0) {
    plane[to] = quads[q]! | (quads[(q + 4) | 0]! << 4);
    plane[(to + 1) | 0] = quads[(q + 1) | 0]! | (quads[(q + 5) | 0]! << 4);
    plane[(to + 2) | 0] = quads[(q + 2) | 0]! | (quads[(q + 6) | 0]! << 4);
    plane[(to + 3) | 0] = quads[(q + 3) | 0]! | (quads[(q + 7) | 0]! << 4);
  }
};

const writePairs: PlaneWriter = (quads, plane, group, groups) => {
  const count = 8 * groups;
  for (let q = 0, to = 2 * group; q < count; q = (q + 4) | 0, to = (to + 1) | 0) {
    const low = quads[q]! | (quads[(q + 1) | 0]! << 2);
    plane[to] = low | (quads[(q + 2) | 0]! << 4) | (quads[(q + 3) | 0]! << 6);
  }
};

const writeBits: PlaneWriter = (quads, plane, group, groups) => {
  const count = 8 * groups;
  for (let q = 0, to = group; q < count; q = (q + 8) | 0, to = (to + 1) | 0) {
    const first = quads[q]! | (quads[(q + 1) | 0]! << 1) |
      (quads[(q + 2) | 0]! << 2) | (quads[(q + 3) | 0]! << 3);
    const second = quads[(q + 4) | 0]! | (quads[(q + 5) | 0]! << 1) |
      (quads[(q + 6) | 0]! << 2) | (quads[(q + 7) | 0]! << 3);
    plane[to] = first | (second << 4);
  }
};

const WRITERS: ReadonlyMap<CodePlane, PlaneWriter> = new Map([
  [BYTES, writeBytes],
  [NIBBLES, writeNibbles],
  [PAIRS, writePairs],
  [BITS, writeBits],
]);

/** Table of `l4`: of two levels, entry low + 16 · high has one in its first byte and one in its third. */
export function levelPairs(levels: ArrayLike<number>): Uint32Array<ArrayBuffer> {
  return Uint32Array.from(
    { length: 256 },
    (_, pair) => (levels[pair & 15]! & 255) | ((levels[pair >> 4]! & 255) << 16),
  );
}
