// What a layout of integer codes with scales is: how codes are stored, how scales are, how many columns share one.
// The three are independent, so a few kinds of each serve every number format, and formats that agree in all of
// them share their shaders whatever their files look like. Every group of 32 columns is one step of a kernel; group
// g of row r is number r · K/32 + g in every plane of codes. Scales keep the precision of the file, and what a
// format derives from integers is derived by the shader: nothing is rounded on the way.

import type { GpuWeightLayout, PackSize } from "../packed_layout.ts";
import type { FileRows } from "./quads.ts";
import { CODE_KINDS, type CodeKind, type ColumnKind, groupWriter } from "./code_planes.ts";

/** Columns of a group. */
export const GROUP_COLUMNS = 32;

/**
 * How scales are stored; x is the value of a code c, o the layout's offset.
 * - `d`: float16 d, x = d (c - o); `f`: the same in float32;
 * - `dm`: float16 pair, x = d (c - o) + m; `fm`: float32 pair;
 * - `dz`: float16 d, int16 zero point z, x = d (c - z);
 * - `e1`, `e2`: float16 inverse and bias of E0M4, x = (2ⁿ + c 2ⁿ⁻⁴ - bias) inverse;
 * - `sides`: float32 pair, x = c times the first if c is positive, the second if it is negative;
 * - `e8`: the 8-bit exponent e of a power of two, x = 2^(e - 128) (c - o);
 * - `k`: per 256 columns a float16 pair (d, m), then a byte pair (s, n) for 32, x = d s c - m n;
 * - `k8`: per 256 columns a float16 d, two bytes of padding, then a signed byte s for 32, x = d s (c - o);
 * - `n8`, `n16`: per 256 columns a float16 d, two bytes of padding, then a nibble n for 32 or 16, the first lowest,
 *   x = d (n + ½) f (c - o), f being the layout's factor;
 * - `k16`: per 256 columns a float16 d, two bytes of padding, then a signed byte s for 16, x = d s (c - o);
 * - `kn16`: per 256 columns a float16 pair (d, m), then a byte for 16: s low, n high, x = d s c - m n;
 * - `e4m3`: an 8-bit float s for 16 columns, of which half counts, x = s / 2 (c - o);
 * - `b16`: bytes (b, s) for 16 columns, x = s / 1000 c + (b - 100) / 100.
 */
export type ScaleKind = keyof typeof SCALE_KINDS;

/** Facts of a kind of scales. */
export interface ScaleFacts {
  /** Bytes under which columns lie. */
  readonly bytes: number;
  /** How many columns; absent: the layout's span. */
  readonly columns?: 32 | 256;
  /** What a scale covers of a group: all of it, each half by its own, or codes of a sign by its own. */
  readonly covers: "group" | "halves" | "signs";
  /** Whether something is added that is no multiple of the scale. */
  readonly minima: boolean;
}

const SCALE_KINDS = {
  d: { bytes: 2, covers: "group", minima: false },
  f: { bytes: 4, covers: "group", minima: false },
  dm: { bytes: 4, covers: "group", minima: true },
  fm: { bytes: 8, covers: "group", minima: true },
  dz: { bytes: 4, covers: "group", minima: true },
  e1: { bytes: 4, covers: "group", minima: true },
  e2: { bytes: 4, covers: "group", minima: true },
  sides: { bytes: 8, covers: "signs", minima: false },
  e8: { bytes: 1, columns: 32, covers: "group", minima: false },
  k: { bytes: 20, columns: 256, covers: "group", minima: true },
  k8: { bytes: 12, columns: 256, covers: "group", minima: false },
  n8: { bytes: 8, columns: 256, covers: "group", minima: false },
  n16: { bytes: 12, columns: 256, covers: "halves", minima: false },
  k16: { bytes: 20, columns: 256, covers: "halves", minima: false },
  kn16: { bytes: 20, columns: 256, covers: "halves", minima: true },
  e4m3: { bytes: 2, columns: 32, covers: "halves", minima: false },
  b16: { bytes: 4, columns: 32, covers: "halves", minima: true },
} as const satisfies Record<string, ScaleFacts>;

/** Columns that share a scale, for kinds that do not say it. */
export type Span = 32 | 64 | 128 | 256 | "row";

/** What kernels have to know about a layout of codes. */
export interface CodeLayout extends GpuWeightLayout {
  readonly codes: CodeKind;
  readonly scales: ScaleKind;
  readonly span: Span;
  /** What is subtracted from a stored code. */
  readonly offset: number;
  /** By which scales of the kinds `n8` and `n16` are multiplied. */
  readonly factor: number;
}

/** How blocks of a file give codes and scales. */
export interface BlockReader {
  readonly bytes: number;
  /** A multiple of 32. */
  readonly columns: number;
  /**
   * Codes of a group of the block at byte `at`, four columns a word, the first in the lowest byte.
   *
   * @param quads Receives eight words; bits above a code are 0, signed codes fill their byte.
   */
  codes(file: FileRows, at: number, group: number, quads: Int32Array): void;
  /** Of a block of one group whose codes lie in the file as they lie in their only plane: where in it they begin. */
  readonly codesAt?: number;
  /** Writes the bytes that the scales of the block at byte `at` take in their plane, from `to` on. */
  scales(file: FileRows, at: number, plane: Uint8Array, to: number): void;
}

/** How blocks of a file give the planes of a kind of codes that is no code a column. */
export interface VectorReader extends Pick<BlockReader, "bytes" | "columns" | "scales"> {
  /**
   * Writes the codes of the block at byte `at`.
   *
   * @param planes Of all kinds, in their order; block number `block` is to be filled.
   */
  planes(file: FileRows, at: number, planes: readonly Uint8Array[], block: number): void;
}

/** What is known of a layout before its blocks are. */
export interface CodeShape {
  readonly codes: CodeKind;
  readonly scales: ScaleKind;
  /** Default 32. */
  readonly span?: Span;
  /** Default 0. */
  readonly offset?: number;
  /** Part of the id where layouts differ in their table or offset only. */
  readonly variant?: string;
  /** Made when it is first asked for. */
  readonly table?: () => Uint32Array<ArrayBuffer>;
  /** Default 1. */
  readonly factor?: number;
}

/** Facts of a layout's scales. */
export function scaleFacts({ scales }: Pick<CodeLayout, "scales">): ScaleFacts {
  return SCALE_KINDS[scales];
}

/** Bytes of the scales of some columns of a row. */
function scaleBytes(scales: ScaleKind, span: Span, columns: number): number {
  const { bytes, columns: own }: ScaleFacts = SCALE_KINDS[scales];
  return bytes * columns / (own ?? (span === "row" ? columns : span));
}

/**
 * A layout.
 *
 * @param block Of rows of so many columns.
 */
export function defineCodeLayout(
  { codes, scales, span = 32, offset = 0, factor = 1, variant = "", table }: CodeShape,
  block: BlockReader | VectorReader | ((columns: number) => BlockReader),
): CodeLayout {
  // So many rows make the scales of an odd number of groups whole words.
  const rowGroup = scales === "e8" ? 4 : 2;
  let made: Uint32Array<ArrayBuffer> | undefined;
  const place = span === 32 ? "" : `_${span}`;
  return {
    id: `${codes}${variant}_${scales}${place}`,
    codes,
    scales,
    span,
    offset,
    factor,
    rowGroup,
    get table() {
      return made ??= table?.();
    },
    planeBytes(columns) {
      const groups = rowGroup * columns / GROUP_COLUMNS;
      return [
        ...CODE_KINDS[codes].map(({ bytes }) => groups * bytes),
        rowGroup * scaleBytes(scales, span, columns),
      ];
    },
    pack(bytes, { rows, columns }: PackSize, planes) {
      const file = {
        bytes,
        view: new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength),
      };
      const reader = typeof block === "function" ? block(columns) : block;
      const blocks = rows * columns / reader.columns;
      const own = scaleBytes(scales, span, reader.columns);
      const scalePlane = planes[CODE_KINDS[codes].length]!;
      const write = "planes" in reader
        ? (at: number, b: number) => reader.planes(file, at, planes, b)
        : reader.codesAt !== undefined
        ? copiesOf(reader.codesAt, CODE_KINDS[codes][0].bytes / 4, file, planes)
        : codesOf(reader, codes as ColumnKind, file, planes);
      for (let b = 0, at = 0; b < blocks; b++, at += reader.bytes) {
        write(at, b);
        reader.scales(file, at, scalePlane, b * own);
      }
    },
  };
}

/** Copies the codes of a block as they are, so many words. */
function copiesOf(
  start: number,
  words: number,
  { view }: FileRows,
  [plane]: readonly Uint8Array[],
): (at: number, block: number) => void {
  const codes = new Int32Array(plane!.buffer, plane!.byteOffset, plane!.byteLength >> 2);
  return (at, block) => {
    const from = at + start, to = words * block;
    for (let word = 0; word < words; word++) {
      codes[to + word] = view.getInt32(from + 4 * word, true);
    }
  };
}

/** Writes the codes of a block group by group. */
function codesOf(
  reader: BlockReader,
  kind: ColumnKind,
  file: FileRows,
  planes: readonly Uint8Array[],
): (at: number, block: number) => void {
  const groups = reader.columns / GROUP_COLUMNS;
  const write = groupWriter(kind, planes);
  const quads = new Int32Array(8);
  return (at, block) => {
    for (let group = 0; group < groups; group++) {
      reader.codes(file, at, group, quads);
      write(quads, block * groups + group);
    }
  };
}
