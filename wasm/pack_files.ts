// Weights of plain files, read and packed by all threads at once: one program, an instruction a weight, whose
// chunks are read by the thread that takes them (assembly/pack/weight.ts). Between `start` and `finish` the main
// thread is free: it builds tokenizer and programs while the workers load, then takes part in what is left.
//
// Nothing is explained here. A chunk that could not be read, or holds what cannot be used, marks its weight, and
// the caller reads that weight again the careful way (pack.ts), which names place and cause.

import type { Machine } from "./machine.ts";
import { halves, NOTHING, PACK_OPCODE, packWords, writeText } from "./pack_operands.ts";
import {
  type Packed,
  type PackOperands,
  type PackSetup,
  packSetup,
  placeWeight,
  type WeightShape,
} from "./place_weight.ts";
import { createProgram, type Program, type ProgramInstruction } from "./program.ts";
import { TILE_ROWS } from "./weight_layout.ts";

/** Bytes in a file that other threads can open. */
export interface FileBytes {
  /** The file, in the words of the machine's reader of files (pool.ts). */
  readonly file: string;
  /** Of the first byte. */
  readonly offset: number;
  /** Reads from the start of the file into shared memory, on this thread. */
  readInto(offset: number, target: Uint8Array): void;
}

/** Reads weights on all threads. */
export interface FilePacker {
  /**
   * Plans to read a matrix.
   *
   * @param rounded As {@linkcode Packer.pack} takes it.
   * @returns Its place, empty as yet; undefined if its format or size is not for this, or it comes too late.
   * @throws {RangeError} If the matrix does not fit the format or the memory.
   */
  add(bytes: FileBytes, shape: WeightShape, rounded: boolean): PendingWeight | undefined;
  /** Plans to read bytes as they are. @returns undefined if it comes too late. */
  addPlain(bytes: FileBytes, address: number, length: number): PendingWeight | undefined;
  /** Lets the workers begin. */
  start(): void;
  /**
   * Takes part until all is read.
   *
   * @param progress Told, now and then, how many bytes of the files are read.
   * @throws {Error} What `progress` threw, or what a machine throws; it is of no use afterwards.
   */
  finish(progress: (bytes: number) => void): void;
}

/** A weight that is being read. */
export interface PendingWeight {
  /** Where a matrix will lie. */
  readonly packed?: Packed;
  /** After `finish`: whether it has to be read again. */
  failed: boolean;
}

/**
 * Bytes that a thread reads at once: few enough that they are still in its cache when it packs them (of 128 KiB to
 * 1 MiB, 256 KiB was fastest), enough that calling the system costs nothing.
 */
export const CHUNK_BYTES: number = 256 * 1024;
/** Rows of a tile that are longer are not for this: every thread would need so much. */
export const MOST_CHUNK_BYTES: number = 1024 * 1024;
/** Bytes between two reports of progress. */
const REPORT_BYTES = 1024 * 1024;

const COPY = 3;
const CLOSE = 4;

interface Item {
  readonly bytes: FileBytes;
  readonly weight: PendingWeight;
  readonly operands: Omit<PackOperands, Placed>;
  /** Of a chunk that is staged; 0 where bytes go straight to their place. */
  readonly stagedBytes: number;
}
/** Operands that are known when all weights are. */
type Placed = "source" | "scratch" | "bad" | "loaded" | "file" | "staging_bytes";

/** Makes a packer. Its memory goes back to the machine in `finish`. */
export function createFilePacker(machine: Machine): FilePacker {
  const items: Item[] = [];
  const setups = new Map<string, PackSetup>();
  const setupOf = (shape: WeightShape, rounded: boolean): PackSetup => {
    const key = `${shape.format} ${shape.columns} ${rounded}`;
    const known = setups.get(key) ?? packSetup(shape, rounded);
    setups.set(key, known);
    return known;
  };
  let started = false;
  let running: Running | undefined;

  return {
    add(bytes, shape, rounded) {
      const setup = setupOf(shape, rounded);
      const tileRows = TILE_ROWS * setup.rowBytes;
      if (started || setup.decoded || tileRows > MOST_CHUNK_BYTES) {
        return undefined;
      }
      const packed = placeWeight(machine, { source: shape, rounded });
      const weight = { packed, failed: false };
      const chunk = Math.max(1, Math.floor(CHUNK_BYTES / tileRows));
      const operands = {
        ...{ ...setup.operands, ...halves(bytes.offset), chunk, rows: shape.rows },
        target: packed.address,
      };
      items.push({ bytes, weight, operands, stagedBytes: chunk * tileRows });
      return weight;
    },
    addPlain(bytes, address, length) {
      if (started) return undefined;
      const weight = { failed: false };
      const operands = {
        ...{ ...NOTHING, ...halves(bytes.offset), kind: COPY, rows: 1, chunk: 1 },
        ...{ row_bytes: length, target: address },
      };
      items.push({ bytes, weight, operands, stagedBytes: 0 });
      return weight;
    },
    start() {
      if (started) return;
      started = true;
      if (items.length > 0) running = launch(machine, items);
    },
    finish(progress) {
      if (!running) return;
      try {
        running.join(progress);
      } finally {
        running = undefined;
      }
    },
  };
}

interface Running {
  join(progress: (bytes: number) => void): void;
}

function launch(machine: Machine, items: readonly Item[]): Running {
  const blocks: number[] = [];
  const allocate = (bytes: number) => {
    const address = machine.allocate(bytes);
    blocks.push(address);
    return address;
  };
  const most = (of: (item: Item) => number) => items.reduce((n, item) => Math.max(n, of(item)), 0);
  // By weight, a word that says whether it failed; behind them what was read, in KiB.
  const words = allocate(4 * (items.length + 1));
  const counts = machine.u32(words, items.length + 1).fill(0);
  const staging_bytes = Math.ceil(most(({ stagedBytes }) => stagedBytes) / 64) * 64;
  const source = allocate(machine.threads * staging_bytes);
  // A thread's place is the same for all weights: others may be at another one.
  const scratch_bytes = most(({ operands }) => operands.scratch_bytes);
  const scratch = allocate(machine.threads * scratch_bytes);
  const files = new Map<string, number>();
  const readers = new Map<number, FileBytes>();
  for (const { bytes } of items) {
    if (files.has(bytes.file)) continue;
    const address = writeText(machine, { text: bytes.file, allocate });
    files.set(bytes.file, address);
    readers.set(address, bytes);
  }
  const loaded = words + 4 * items.length;
  const instructions = items.map(({ bytes, operands }, i) =>
    packInstruction({
      ...operands,
      ...{ source, scratch, scratch_bytes, bad: words + 4 * i, loaded, staging_bytes },
      file: files.get(bytes.file)!,
    })
  );
  // Every thread that has read comes by here.
  instructions.push(packInstruction({ ...NOTHING, kind: CLOSE }));
  const program: Program = createProgram(machine, instructions);

  let report: (bytes: number) => void = () => {};
  let reported = 0;
  let thrown: { readonly error: unknown } | undefined;
  machine.readFilesBy((file, offset, target, length) => {
    try {
      readers.get(file)!.readInto(offset, machine.u8(target, length));
    } catch {
      return false;
    }
    const bytes = 1024 * Atomics.load(counts, items.length);
    if (bytes < reported + REPORT_BYTES) return true;
    reported = bytes;
    try {
      report(bytes);
    } catch (error) {
      // Stops this thread; the caller stops the others with the machine.
      thrown = { error };
      throw error;
    }
    return true;
  });
  program.start();

  return {
    join(progress) {
      report = progress;
      try {
        program.finish();
      } catch (error) {
        throw thrown ? thrown.error : error;
      } finally {
        machine.readFilesBy(undefined);
      }
      items.forEach(({ weight }, i) => weight.failed = counts[i] !== 0);
      program.dispose();
      blocks.forEach(machine.release);
    },
  };
}

function packInstruction(operands: PackOperands): ProgramInstruction {
  return {
    name: "pack_weight",
    opcode: PACK_OPCODE,
    operands: packWords(operands),
    barrier: false,
  };
}
