// Weights on their way from a file into WASM memory. Bytes are read straight into a staging area there, a
// run of rows at a time, and rearranged by the module (assembly/pack.ts, pack_blocks.ts), so no weight is ever
// held twice. Formats without a layout (format_layouts.ts) are decoded to float32 on the way: right, but four
// to sixteen times as large.

import { formatBytes, getFormat } from "../quant/mod.ts";
import { type FormatLayout, formatLayout, sourceNumbers } from "./format_layouts.ts";
import { int7TileBytes } from "./int7_layout.ts";
import type { Machine } from "./machine.ts";
import { PADDED_ROWS, TILE_ROWS, tileBytes } from "./weight_layout.ts";

/** A matrix in a file. */
export interface WeightSource {
  /** For messages. */
  readonly name: string;
  /** Name of its number format. */
  readonly format: string;
  readonly rows: number;
  readonly columns: number;
  /** Reads bytes from `offset` in the matrix, into shared memory. */
  readInto(offset: number, target: Uint8Array): void | Promise<void>;
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
export const INT7 = "INT7";

/** Most bytes that are read at once. */
const STAGING_BYTES = 1 << 20;

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
  rows: number,
  columns: number,
  rounded = false,
): number {
  formatBytes(getFormat(format), columns);
  const tiles = Math.ceil(rows / PADDED_ROWS) * (PADDED_ROWS / TILE_ROWS);
  return tiles * (rounded ? int7TileBytes(columns) : tileBytes(layoutFor(format).layout, columns));
}

/**
 * Reads a matrix and packs it.
 *
 * @param progress Told the bytes of the file that were read since the last call.
 * @param rounded Rounds the rows of a float format, of columns in groups of 32, to 7 bit (quant/int7_groups.ts).
 * @throws {RangeError} If the matrix does not fit the format or the memory, or if a scale in it is not
 * finite.
 */
export async function packWeight(
  machine: Machine,
  source: WeightSource,
  progress?: (bytes: number) => void,
  rounded = false,
): Promise<Packed> {
  const { format, rows, columns } = source;
  const { layout, source: blocks, decoded } = layoutFor(format);
  const bytes = packedBytes(format, rows, columns, rounded);
  const rowBytes = formatBytes(getFormat(format), columns);
  const stride = rounded ? int7TileBytes(columns) : tileBytes(layout, columns);
  const decode = decoded ? decoder(format, columns, rowBytes) : undefined;
  const stagedRowBytes = decode ? 4 * columns : rowBytes;
  const run = Math.max(TILE_ROWS, Math.floor(STAGING_BYTES / rowBytes / TILE_ROWS) * TILE_ROWS);
  const address = machine.allocate(bytes);
  const staging = machine.allocate(Math.min(run, rows) * stagedRowBytes);
  const scratch = rounded ? machine.allocate(4 * columns) : 0;
  try {
    for (let row = 0; row < rows; row += run) {
      const count = Math.min(run, rows - row);
      if (decode) {
        const target = machine.f32(staging, count * columns);
        await decode(source, row * rowBytes, count, target);
      } else {
        const read = source.readInto(row * rowBytes, machine.u8(staging, count * rowBytes));
        if (read) await read;
      }
      const target = address + (row / TILE_ROWS) * stride;
      const operands = [layout.id, staging, count, stagedRowBytes, columns, target, stride];
      const bad = rounded
        ? machine.exports.packInt7!(...operands, scratch)
        : blocks
        ? machine.exports.packBlocks!(...operands, ...sourceNumbers(format, blocks))
        : machine.exports.packRows!(...operands);
      if (bad) {
        throw new RangeError(
          rounded
            ? `Cannot use ${source.name}: ${bad} of its ${format} rows from ${row} on hold numbers that ` +
              "are not finite; the file is damaged or was converted wrongly"
            : `Cannot use ${source.name}: ${bad} of its ${format} numbers or scales near row ${row} are ` +
              "not finite; the file is damaged or was converted wrongly",
        );
      }
      progress?.(count * rowBytes);
    }
  } catch (error) {
    machine.release(address);
    throw error;
  } finally {
    machine.release(staging);
    if (scratch) machine.release(scratch);
  }
  clearPadding(machine, address, rows, bytes, stride);
  return {
    layout: layout.id,
    format: rounded ? INT7 : decoded ? "F32" : format,
    address,
    rows,
    columns,
    tileBytes: stride,
    bytes,
  };
}

/** The tiles behind the last row are read by kernels that take two at a time. */
function clearPadding(
  machine: Machine,
  address: number,
  rows: number,
  bytes: number,
  stride: number,
): void {
  const used = Math.ceil(rows / TILE_ROWS) * stride;
  machine.u8(address + used, bytes - used).fill(0);
}

function decoder(name: string, columns: number, rowBytes: number) {
  const format = getFormat(name);
  const values = new Float32Array(columns);
  return async (source: WeightSource, offset: number, count: number, target: Float32Array) => {
    const bytes = new Uint8Array(count * rowBytes);
    await source.readInto(offset, bytes);
    for (let row = 0; row < count; row++) {
      format.decode(bytes.subarray(row * rowBytes, (row + 1) * rowBytes), values);
      target.set(values, row * columns);
    }
  };
}
