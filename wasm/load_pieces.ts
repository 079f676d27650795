// Weights as pieces for threads that load (loaders.ts): mostly a whole matrix, so that a thread reads a file from one end of
// it to the other. What a piece is told never changes, but for where its bytes are, if its place serves several weights in
// turn.

import { INSTRUCTION } from "./layout.ts";
import { PIECE } from "./loaders.ts";
import type { Machine } from "./machine.ts";
import { CHUNK_BYTES, type FileBytes, MOST_CHUNK_BYTES } from "./pack_files.ts";
import { halves, NOTHING, PACK_NAMES, packWords, writeText } from "./pack_operands.ts";
import { type Packed, packSetup, type WeightShape } from "./place_weight.ts";
import { TILE_ROWS } from "./weight_layout.ts";

/**
 * Most bytes of a file in a piece. Wherever a thread begins to read, the system begins anew to learn what it may read ahead:
 * Linux takes pages of 4 KiB at first, of up to 2 MiB later, and a disk gives most in large ones. Where threads took turns
 * every 4 MiB, reads of 0.8 MB reached the disk on average, and 3 MB where each keeps to a matrix.
 */
const PIECE_BYTES = 128 * 1024 * 1024;

/** A matrix that comes and goes. */
export interface PieceSource {
  readonly bytes: FileBytes;
  readonly shape: WeightShape;
  readonly rounded: boolean;
  readonly place: Packed;
  /** Addresses of the words that count its finished pieces, and what could not be read or used of it. */
  readonly done: number;
  readonly bad: number;
}

/** Pieces in memory. */
export interface Pieces {
  /** By source, their addresses. */
  readonly of: readonly (readonly number[])[];
  /** Bytes of memory taken. */
  readonly bytes: number;
  /** Address of the word that counts KiB that were read. */
  readonly loaded: number;
  /** Reads for the calling thread. */
  read(file: number, offset: number, target: number, bytes: number): boolean;
  /** Says that a source's bytes are those of another file, or lie elsewhere in it. */
  move(source: number, bytes: FileBytes): void;
}

/** Whether threads can load a matrix without JavaScript, a run of rows at a time. */
export function loadsInPieces(shape: WeightShape, rounded: boolean): boolean {
  const { decoded, rowBytes } = packSetup(shape, rounded);
  return !decoded && TILE_ROWS * rowBytes <= MOST_CHUNK_BYTES;
}

/** Options of {@linkcode writePieces}. */
export interface PieceOptions {
  readonly sources: readonly PieceSource[];
  /** Threads that will load, beside the calling one. */
  readonly loaders: number;
  /** As they will read; a piece is a second's at most. */
  readonly bytesPerSecond?: number | undefined;
}

/**
 * Writes the pieces of all sources.
 *
 * @throws {OutOfMemoryError} If there is no room.
 */
export function writePieces(
  machine: Machine,
  { sources, loaders, bytesPerSecond = PIECE_BYTES }: PieceOptions,
): Pieces {
  const before = machine.usedBytes;
  const setups = sources.map(({ shape, rounded }) => packSetup(shape, rounded));
  const chunks = setups.map(({ rowBytes }) =>
    Math.max(1, Math.floor(CHUNK_BYTES / (TILE_ROWS * rowBytes)))
  );
  const most = (of: (setup: typeof setups[number], i: number) => number) =>
    Math.max(0, ...setups.map(of));
  const staging_bytes =
    Math.ceil(most(({ rowBytes }, i) => chunks[i]! * TILE_ROWS * rowBytes) / 64) * 64;
  const source = machine.allocate((loaders + 1) * staging_bytes);
  // A loader's place is the same for all pieces: others may be at another one.
  const scratch_bytes = most(({ operands }) => operands.scratch_bytes);
  const scratch = machine.allocate((loaders + 1) * scratch_bytes);
  const loaded = machine.allocate(4);
  const files = new Map<string, number>(), readers = new Map<number, FileBytes>();
  const fileAt = (bytes: FileBytes): number => {
    let address = files.get(bytes.file);
    if (address === undefined) {
      const { allocate } = machine;
      files.set(bytes.file, address = writeText(machine, { text: bytes.file, allocate }));
      readers.set(address, bytes);
    }
    return address;
  };
  const perPiece = sources.map(({ shape: { rows } }, i) => {
    const chunkRows = TILE_ROWS * chunks[i]!;
    const bytes = rows * setups[i]!.rowBytes;
    const count = Math.ceil(bytes / Math.min(PIECE_BYTES, bytesPerSecond));
    return chunkRows * Math.ceil(rows / count / chunkRows);
  });
  const of = sources.map(({ bytes, shape: { rows }, place, done, bad }, i) => {
    const { operands, rowBytes } = setups[i]!;
    const addresses: number[] = [];
    for (let row = 0; row < rows; row += perPiece[i]!) {
      const count = Math.min(perPiece[i]!, rows - row);
      const address = machine.allocate(PIECE.BYTES);
      addresses.push(address);
      const words = packWords({
        ...{ ...NOTHING, ...operands, ...halves(bytes.offset + row * rowBytes) },
        ...{
          source,
          scratch,
          scratch_bytes,
          staging_bytes,
          loaded,
          bad,
          chunk: chunks[i]!,
          rows: count,
        },
        target: place.address + row / TILE_ROWS * place.tileBytes,
        file: fileAt(bytes),
      });
      machine.u32(address + INSTRUCTION.OPERANDS, words.length).set(words);
      machine.u32(address + PIECE.DONE, 3).set([done, bad, Math.ceil(count * rowBytes / 1024)]);
    }
    return addresses;
  });
  return {
    of,
    ...{ bytes: machine.usedBytes - before, loaded },
    read(file, offset, target, bytes) {
      try {
        readers.get(file)!.readInto(offset, machine.u8(target, bytes));
        return true;
      } catch {
        return false;
      }
    },
    move(index, bytes) {
      of[index]!.forEach((address, i) => {
        const row = i * perPiece[index]!;
        const { file_offset, file_offset_high } = halves(
          bytes.offset + row * setups[index]!.rowBytes,
        );
        machine.u32(address + FILE_AT, 3).set([fileAt(bytes), file_offset, file_offset_high]);
      });
    },
  };
}

/** Where the operands of a file are, which follow each other. */
const FILE_AT = INSTRUCTION.OPERANDS + 4 * PACK_NAMES.indexOf("file");
