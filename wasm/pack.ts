// Weights on their way from a file into WASM memory. Bytes are read straight into a staging area there, a
// run of rows at a time, and rearranged by the module (assembly/pack.ts, pack_blocks.ts), so no weight is ever
// held twice. While rows are read, other threads pack those before (assembly/pack_weight.ts). With the first matrix
// of a format of grid points its grid comes into memory. What has no layout (format_layouts.ts) is decoded to float32:
// integers and doubles, which are no weights.

import { formatBytes, getFormat } from "../quant/mod.ts";
import { type FormatLayout, formatLayout, sourceNumbers } from "./format_layouts.ts";
import { int7TileBytes } from "./int7_layout.ts";
import type { Machine } from "./machine.ts";
import { instruction, OPCODES, type OperandsOf } from "./opcodes.ts";
import { type GridName, POINT_GRIDS } from "./point_grids.ts";
import { type Bindings, createProgram } from "./program.ts";
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
const INT7 = "INT7";

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

/** A matrix that cannot be used; the message names it. */
export class WeightError extends RangeError {
  override name = "WeightError";
  /** Name of the matrix. */
  readonly weight: string;

  constructor(weight: string, message: string) {
    super(message);
    this.weight = weight;
  }
}

/** Packs one matrix after another. */
export interface Packer extends Disposable {
  /**
   * Reads a matrix and has it packed. While the next run of rows is read, also that of the next matrix, the
   * machine's other threads pack the last one: nothing is there before `finish`.
   *
   * @param progress Told the bytes of the file that were read since the last call.
   * @param rounded Rounds the rows of a float format, of columns in groups of 32, to 7 bit (quant/int7_groups.ts).
   * @throws {RangeError} If the matrix does not fit the format or the memory.
   * @throws {WeightError} If a scale in it, or in the matrix before, is not finite.
   */
  pack(
    source: WeightSource,
    progress?: (bytes: number) => void,
    rounded?: boolean,
  ): Promise<Packed>;
  /** Waits for the rest. @throws {WeightError} If a scale in it is not finite. */
  finish(): void;
}

/** Operands of the kernel, by name. */
type PackOperands = OperandsOf<"pack_weight", number>;

/** What is being packed. */
interface Pending {
  readonly name: string;
  readonly format: string;
  readonly row: number;
  readonly rounded: boolean;
}

/** Bytes of rows that a thread packs at once. */
const CHUNK_BYTES = 64 * 1024;

/** Makes a packer with staging memory of its own. */
export function createPacker(machine: Machine): Packer {
  const bad = machine.allocate(64);
  const badCount = machine.u32(bad, 1);
  const names = Object.keys(OPCODES.pack_weight.operands) as (keyof PackOperands)[];
  const [opcode] = instruction(
    "pack_weight",
    Object.fromEntries(names.map((name) => [name, 0])) as PackOperands,
  );
  const operands = names.map((name) => (bindings: Bindings) => bindings[name]!);
  const program = createProgram(machine, [{
    name: "pack_weight",
    opcode,
    operands,
    barrier: true,
  }]);
  // Two, so that one is filled while the other is emptied.
  const stagings = [0, 1].map(() => createScratch(machine));
  const scratch = createScratch(machine);
  let turn = 0;
  let pending: Pending | undefined;

  function finish(): void {
    if (!pending) return;
    const { name, format, row, rounded } = pending;
    pending = undefined;
    program.finish();
    const count = badCount[0]!;
    if (count === 0) return;
    throw new WeightError(
      name,
      rounded
        ? `Cannot use ${name}: ${count} of its ${format} rows from ${row} on hold numbers that ` +
          "are not finite; the file is damaged or was converted wrongly"
        : `Cannot use ${name}: ${count} of its ${format} numbers or scales near row ${row} are ` +
          "not finite; the file is damaged or was converted wrongly",
    );
  }

  async function pack(
    source: WeightSource,
    progress?: (bytes: number) => void,
    rounded = false,
  ): Promise<Packed> {
    const { name, format, rows, columns } = source;
    const { layout, source: blocks, decoded } = layoutFor(format);
    const bytes = packedBytes(format, rows, columns, rounded);
    const rowBytes = formatBytes(getFormat(format), columns);
    const stride = rounded ? int7TileBytes(columns) : tileBytes(layout, columns);
    const decode = decoded ? decoder(format, columns, rowBytes) : undefined;
    const stagedRowBytes = decode ? 4 * columns : rowBytes;
    if (layout.points) writeGrid(machine, layout.points.grid);
    const run = Math.max(TILE_ROWS, Math.floor(STAGING_BYTES / rowBytes / TILE_ROWS) * TILE_ROWS);
    const address = machine.allocate(bytes);
    // A row of floats, or the codes of a cell.
    const scratchBytes = rounded ? 4 * columns : 64;
    const [order = 0, codes_at = 0, scales = 0, scales_at = 0, block_size = 0, block_bytes = 0] =
      blocks ? sourceNumbers(format, blocks) : [];
    const shared = {
      ...{
        kind: rounded ? 2 : blocks ? 1 : 0,
        layout: layout.id,
        row_bytes: stagedRowBytes,
        columns,
      },
      ...{ tile_bytes: stride, bad, order, codes_at, scales, scales_at, block_size, block_bytes },
      chunk: Math.max(1, Math.floor(CHUNK_BYTES / (TILE_ROWS * stagedRowBytes))),
      scratch: rounded || blocks ? scratch.atLeast(machine.threads * scratchBytes) : 0,
      scratch_bytes: scratchBytes,
    };
    try {
      for (let row = 0; row < rows; row += run) {
        const count = Math.min(run, rows - row);
        const staging = stagings[turn ^= 1]!.atLeast(count * stagedRowBytes);
        if (decode) {
          await decode(source, row * rowBytes, count, machine.f32(staging, count * columns));
        } else {
          const read = source.readInto(row * rowBytes, machine.u8(staging, count * rowBytes));
          if (read) await read;
        }
        finish();
        badCount[0] = 0;
        const target = address + (row / TILE_ROWS) * stride;
        const last: PackOperands = { ...shared, source: staging, rows: count, target };
        program.start(last);
        pending = { name, format, row, rounded };
        progress?.(count * rowBytes);
      }
    } catch (error) {
      // Whoever still packs must not write to what is given back.
      if (pending) program.finish();
      pending = undefined;
      machine.release(address);
      throw error;
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

  return {
    pack,
    finish,
    [Symbol.dispose]() {
      if (pending) program.finish();
      pending = undefined;
      program.dispose();
      for (const one of [...stagings, scratch]) one.release();
      machine.release(bad);
    },
  };
}

/** The same bytes at every call, so it does not matter who reads them meanwhile. */
function writeGrid(machine: Machine, name: GridName): void {
  const { address, entries } = POINT_GRIDS[name];
  const table = entries();
  machine.u8(address, table.length).set(table);
}

/** Memory that grows to the largest size asked for. */
function createScratch(machine: Machine) {
  let address = 0;
  let size = 0;
  const release = () => {
    if (size > 0) machine.release(address);
    size = 0;
  };
  return {
    atLeast(bytes: number): number {
      if (bytes <= size) return address;
      release();
      address = machine.allocate(bytes);
      size = bytes;
      return address;
    },
    release,
  };
}

/**
 * Reads one matrix and packs it.
 *
 * @throws As {@linkcode Packer.pack}.
 */
export async function packWeight(
  machine: Machine,
  source: WeightSource,
  progress?: (bytes: number) => void,
  rounded = false,
): Promise<Packed> {
  using packer = createPacker(machine);
  const packed = await packer.pack(source, progress, rounded);
  try {
    packer.finish();
  } catch (error) {
    machine.release(packed.address);
    throw error;
  }
  return packed;
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
