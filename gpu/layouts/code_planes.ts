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

/** Writes the codes of a group, eight words of four columns from `from` on, to its place. */
export type GroupWriter = (quads: Int32Array, from: number, group: number) => void;

/** The writer of a kind into planes that begin at multiples of 4. */
export function groupWriter(kind: ColumnKind, planes: readonly Uint8Array[]): GroupWriter {
  const words = planes.map(wordsOf);
  const parts = CODE_KINDS[kind].map((plane, i) => {
    const write = plane === NIBBLES
      ? writeNibbles
      : plane === PAIRS
      ? writePairs
      : plane === BITS
      ? writeBits
      : writeBytes;
    // The second plane has the bits above the first one's.
    return {
      write,
      plane: words[i]!,
      shift: i === 0 ? 0 : CODE_KINDS[kind][0] === NIBBLES ? 4 : 2,
    };
  });
  const [first, second] = parts;
  if (!second) return (quads, from, group) => first!.write(quads, from, 0, first!.plane, group);
  return (quads, from, group) => {
    first!.write(quads, from, 0, first!.plane, group);
    second.write(quads, from, second.shift, second.plane, group);
  };
}

function wordsOf({ buffer, byteOffset, byteLength }: Uint8Array): Int32Array {
  return new Int32Array(buffer, byteOffset, byteLength >> 2);
}

type PlaneWriter = (
  quads: Int32Array,
  from: number,
  shift: number,
  plane: Int32Array,
  group: number,
) => void;

const writeBytes: PlaneWriter = (quads, from, _shift, plane, group) => {
  for (let q = 0; q < 8; q++) plane[8 * group + q] = quads[from + q]!;
};

const writeNibbles: PlaneWriter = (quads, from, _shift, plane, group) => {
  for (let q = 0; q < 4; q++) {
    const low = quads[from + q]! & 0x0f0f0f0f, high = quads[from + q + 4]! & 0x0f0f0f0f;
    plane[4 * group + q] = low | (high << 4);
  }
};

const writePairs: PlaneWriter = (quads, from, shift, plane, group) => {
  for (let half = 0; half < 2; half++) {
    let word = 0;
    for (let q = 0; q < 4; q++) {
      word |= ((quads[from + 4 * half + q]! >> shift) & 0x03030303) << (2 * q);
    }
    plane[2 * group + half] = word;
  }
};

const writeBits: PlaneWriter = (quads, from, shift, plane, group) => {
  let word = 0;
  for (let q = 0; q < 8; q++) word |= ((quads[from + q]! >> shift) & 0x01010101) << q;
  plane[group] = word;
};

/** Table of `l4`: of two levels, entry low + 16 · high has one in its first byte and one in its third. */
export function levelPairs(levels: ArrayLike<number>): Uint32Array<ArrayBuffer> {
  return Uint32Array.from(
    { length: 256 },
    (_, pair) => (levels[pair & 15]! & 255) | ((levels[pair >> 4]! & 255) << 16),
  );
}
