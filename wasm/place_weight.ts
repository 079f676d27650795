// Where a weight goes in WASM memory, and what the packing kernel has to be told of it (assembly/pack/weight.ts):
// shared by those who read it on the main thread (pack.ts) and on all threads (pack_files.ts). What has no layout
// (format_layouts.ts) is decoded to float32: integers and doubles, which are no weights.

import { formatBytes, getFormat } from "../quant/mod.ts";
import { type FormatLayout, formatLayout, sourceNumbers } from "./format_layouts.ts";
import { int7TileBytes } from "./int7_layout.ts";
import type { Machine } from "./machine.ts";
import type { OperandsOf } from "./opcodes.ts";
import type { GridName } from "../quant/iq_grids.ts";
import { POINT_GRIDS } from "./point_grids.ts";
import { PADDED_ROWS, TILE_ROWS, tileBytes } from "./weight_layout.ts";

/** Format and extents of a matrix. */
export interface WeightShape {
  /** Name of its number format. */
  readonly format: string;
  readonly rows: number;
  readonly columns: number;
}

/** A matrix in WASM memory. */
export interface Packed {
  /** Number of the layout. */
  readonly layout: number;
  /** What lies in memory: the file's format, F32 for one without a layout, or INT7 for a rounded matrix. */
  readonly format: string;
  readonly address: number;
  readonly rows: number;
  readonly columns: number;
  /** Bytes from one tile of eight rows to the next. */
  readonly tileBytes: number;
  /** Bytes in all. */
  readonly bytes: number;
}

/** What stands for the format of a matrix that was rounded to 7 bit. */
const INT7 = "INT7";

/** Operands of the kernel, by name. */
export type PackOperands = OperandsOf<"pack_weight", number>;

/** What the kernel is told of a matrix, but for where its rows are. */
export interface PackSetup {
  readonly operands: Omit<
    PackOperands,
    "source" | "rows" | "target" | "chunk" | "bad" | "scratch" | keyof typeof NO_FILE
  >;
  /** Bytes of a row in the file, and as the kernel takes it. */
  readonly rowBytes: number;
  readonly stagedRowBytes: number;
  /** Scratch memory that a thread needs. */
  readonly scratchBytes: number;
  /** Whether JavaScript decodes it between the file and the kernel. */
  readonly decoded: boolean;
}

/** Operands of rows that lie in memory. */
export const NO_FILE = {
  file: 0,
  file_offset: 0,
  file_offset_high: 0,
  staging_bytes: 0,
  loaded: 0,
};

/** Operands of rows whose packer needs none of blocks. */
export const NO_BLOCKS = {
  ...{ codes: 0, codes_above: 0, scales: 0, floats: 0, integers: 0, integers_above: 0, offset: 0 },
  ...{ block_size: 0, block_bytes: 0 },
};

/** What packing a matrix takes. */
export function packSetup({ format, columns }: WeightShape, rounded: boolean): PackSetup {
  const { layout, source, isKnown, decoded } = layoutFor(format);
  const rowBytes = formatBytes(getFormat(format), columns);
  const stagedRowBytes = decoded ? 4 * columns : rowBytes;
  // A row of floats, or the codes of a cell.
  const scratchBytes = rounded ? 4 * columns : 64;
  const operands = {
    ...{ kind: rounded ? 2 : isKnown ? 0 : 1, layout: layout.id, row_bytes: stagedRowBytes },
    ...{ columns, tile_bytes: strideOf(format, columns, rounded), scratch_bytes: scratchBytes },
    ...source ? sourceNumbers(format, source) : NO_BLOCKS,
  };
  return { operands, rowBytes, stagedRowBytes, scratchBytes, decoded };
}

function strideOf(format: string, columns: number, rounded: boolean): number {
  return rounded ? int7TileBytes(columns) : tileBytes(layoutFor(format).layout, columns);
}

/**
 * Memory for a matrix that is going to be packed. With the first one of a format of grid points its grid comes into
 * memory.
 *
 * @throws {RangeError} If the matrix does not fit the format or the memory.
 */
export function placeWeight(
  machine: Machine,
  { source, rounded = false }: {
    readonly source: WeightShape;
    readonly rounded?: boolean | undefined;
  },
): Packed {
  const { format, rows, columns } = source;
  const { layout } = layoutFor(format);
  if (layout.points) writeGrid(machine, layout.points.grid);
  const address = machine.allocate(packedBytes(format, { rows, columns, rounded }));
  const packed = packedAt(address, { ...source, rounded });
  // The tiles behind the last row are read by kernels that take two at a time.
  const used = Math.ceil(rows / TILE_ROWS) * packed.tileBytes;
  machine.u8(address + used, packed.bytes - used).fill(0);
  return packed;
}

/** A matrix that is, or will be, at an address. */
export function packedAt(
  address: number,
  { format, rows, columns, rounded }: WeightShape & { readonly rounded: boolean },
): Packed {
  const { layout, decoded } = layoutFor(format);
  return {
    layout: layout.id,
    format: rounded ? INT7 : decoded ? "F32" : format,
    ...{ address, rows, columns, tileBytes: strideOf(format, columns, rounded) },
    bytes: packedBytes(format, { rows, columns, rounded }),
  };
}

/** The same bytes at every call, so it does not matter who reads them meanwhile. */
function writeGrid(machine: Machine, name: GridName): void {
  const { address, entries } = POINT_GRIDS[name];
  const table = entries();
  machine.u8(address, table.length).set(table);
}

function layoutFor(format: string): FormatLayout & { readonly decoded: boolean } {
  const own = formatLayout(format);
  return { ...own ?? formatLayout("F32")!, decoded: own === undefined };
}

/**
 * Bytes that a matrix takes in WASM memory.
 *
 * @param rounded To 7 bit (quant/int7_groups.ts).
 * @throws {RangeError} If the columns do not fill whole blocks of the format.
 */
export function packedBytes(
  format: string,
  { rows, columns, rounded = false }: {
    readonly rows: number;
    readonly columns: number;
    readonly rounded?: boolean | undefined;
  },
): number {
  formatBytes(getFormat(format), columns);
  const tiles = Math.ceil(rows / PADDED_ROWS) * (PADDED_ROWS / TILE_ROWS);
  return tiles * (rounded ? int7TileBytes(columns) : tileBytes(layoutFor(format).layout, columns));
}
