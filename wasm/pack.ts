// Weights on their way from a file into WASM memory. Bytes are read straight into a staging area there, a
// run of rows at a time, and rearranged by the module (assembly/pack/pack.ts, pack/blocks.ts), so no weight is ever
// held twice. While rows are read, other threads pack those before (assembly/pack/weight.ts).
//
// This is how weights are read that only the main thread can read: from URLs and memory, of formats that JavaScript
// takes part in. Those of plain files are read by all threads (pack_files.ts), and come here when that failed,
// so that what is wrong is found and said in one place.

import { getFormat } from "../quant/mod.ts";
import type { Machine } from "./machine.ts";
import { instruction, OPCODES } from "./opcodes.ts";
import {
  NO_FILE,
  type Packed,
  type PackOperands,
  packSetup,
  placeWeight,
  type WeightShape,
} from "./place_weight.ts";
import { type Bindings, createProgram } from "./program.ts";
import { TILE_ROWS } from "./weight_layout.ts";

/** A matrix in a file. */
export interface WeightSource extends WeightShape {
  /** For messages. */
  readonly name: string;
  /** Reads bytes from `offset` in the matrix, into shared memory. */
  readInto(offset: number, target: Uint8Array): void | Promise<void>;
}

/** Most bytes that are read at once. */
const STAGING_BYTES = 1 << 20;

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
   * @throws {RangeError} If the matrix does not fit the format or the memory.
   * @throws {WeightError} If a scale in it, or in the matrix before, is not finite.
   */
  pack(source: WeightSource, options?: PackOptions): Promise<Packed>;
  /** Waits for the rest. @throws {WeightError} If a scale in it is not finite. */
  finish(): void;
}

/** How a matrix is packed. */
export interface PackOptions {
  /** Told the bytes of the file that were read since the last call. */
  readonly progress?: ((bytes: number) => void) | undefined;
  /** Rounds the rows of a float format, of columns in groups of 32, to 7 bit (quant/int7_groups.ts). */
  readonly rounded?: boolean | undefined;
  /** Where it is to lie; default: new memory. */
  readonly place?: Packed | undefined;
}

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
          "are not finite, or too large to be rounded to 7 bit; the file is damaged or was converted wrongly"
        : `Cannot use ${name}: ${count} of its ${format} numbers or scales near row ${row} are ` +
          "not finite; the file is damaged or was converted wrongly",
    );
  }

  async function pack(
    source: WeightSource,
    { progress, rounded = false, place }: PackOptions = {},
  ): Promise<Packed> {
    const { name, format, rows, columns } = source;
    const packed = place ?? placeWeight(machine, { source, rounded });
    const { operands, rowBytes, stagedRowBytes, scratchBytes, decoded } = packSetup(
      source,
      rounded,
    );
    const decode = decoded ? decoder(format, columns, rowBytes) : undefined;
    const run = Math.max(TILE_ROWS, Math.floor(STAGING_BYTES / rowBytes / TILE_ROWS) * TILE_ROWS);
    const shared = {
      ...{ ...operands, ...NO_FILE, bad },
      chunk: Math.max(1, Math.floor(CHUNK_BYTES / (TILE_ROWS * stagedRowBytes))),
      scratch: scratchBytes > 0 ? scratch.atLeast(machine.threads * scratchBytes) : 0,
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
        const target = packed.address + (row / TILE_ROWS) * packed.tileBytes;
        const last: PackOperands = { ...shared, source: staging, rows: count, target };
        program.start(last);
        pending = { name, format, row, rounded };
        progress?.(count * rowBytes);
      }
    } catch (error) {
      // Whoever still packs must not write to what is given back.
      if (pending) program.finish();
      pending = undefined;
      if (!place) machine.release(packed.address);
      throw error;
    }
    return packed;
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
