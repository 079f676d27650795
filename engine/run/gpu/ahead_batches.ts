// Batches of runs that follow each other without the host: each feeds the best values of its rows back by itself, and all
// are one submission. Two of them share the memory of results: while one is served, the GPU works on the other, and the
// commands of the one behind that are encoded.

import { type GpuMemory, STORAGE_USAGE } from "../../../gpu/gpu.ts";
import type { Program } from "../../../gpu/program.ts";
import {
  bytesOfAll,
  type CopySource,
  createReadback,
  type Readback,
} from "../../../gpu/readback.ts";
import type { DimEnv } from "../../graph/dim/mod.ts";
import { entryWords } from "./best_programs.ts";
import type { Reach } from "./cache_reach.ts";
import type { GpuLogits, LogitsPick } from "./logits.ts";
import type { GpuValues } from "./values.ts";

/** Runs that wait to be submitted. */
export interface Encoded {
  /** Runs before the first of them. */
  readonly first: number;
  readonly bindings: DimEnv;
  /** Runs that may be added. */
  readonly most: number;
  readonly pick: LogitsPick;
  readonly turn: number;
  /** Bytes that are fetched of a run. */
  readonly runBytes: number;
  readonly commands: GPUCommandBuffer[];
}

/** A submission of several runs. */
export interface Batch extends Pick<Encoded, "first" | "pick" | "turn" | "runBytes"> {
  readonly size: number;
  /** What was fetched of each run. */
  readonly results: Uint32Array<ArrayBuffer>;
  isFetched: boolean;
}

/** What a batch is made of. */
export interface BatchParts {
  readonly scope: GpuMemory;
  readonly program: Program<DimEnv>;
  readonly logits: GpuLogits;
  readonly reach: Reach;
  readonly values: Pick<GpuValues, "writeTables">;
  /** Where a run leaves its first row. */
  readonly row: CopySource;
  /** Most runs of a batch. */
  readonly depth: number;
}

/** Makes batches. */
export class AheadBatches {
  readonly #parts: BatchParts;
  readonly #readbacks: readonly Readback[];
  readonly #results: readonly Uint32Array<ArrayBuffer>[];
  /** The rows of which the best alone were fetched, as long as the host may still ask for them: of runs of one. */
  readonly #kept: GPUBuffer;
  #turn = 0;

  constructor(parts: BatchParts, readbacks: readonly Readback[]) {
    const { scope, row, depth } = parts;
    this.#parts = parts;
    this.#readbacks = readbacks;
    this.#results = readbacks.map(() => new Uint32Array(batchBytes(parts) / 4));
    this.#kept = scope.createBuffer("logits ahead", 2 * depth * row.bytes, STORAGE_USAGE);
  }

  /** Makes batches with the readbacks that they need. */
  static async create(parts: BatchParts): Promise<AheadBatches> {
    const bytes = batchBytes(parts);
    const readbacks = await Promise.all([0, 1].map(() => createReadback(parts.scope, bytes)));
    return new AheadBatches(parts, readbacks);
  }

  /** A batch of at most `most` runs, up to a position, without any yet. */
  begin(
    given: DimEnv,
    { position, ...batch }: Pick<Encoded, "first" | "pick" | "most"> & { position: number },
  ): Encoded {
    this.#turn = 1 - this.#turn;
    // One reach for all: sizes must not change between what is encoded and what is submitted.
    const bindings = this.#parts.reach.of(given, position);
    const runBytes = bytesOfAll(this.#parts.logits.sources(batch.pick, true));
    return { ...batch, bindings, turn: this.#turn, runBytes, commands: [] };
  }

  /** Encodes runs until there are so many. */
  encode({ commands, bindings, most, pick, turn, runBytes }: Encoded, size: number): void {
    const { scope, program, logits, row } = this.#parts;
    if (commands.length >= Math.min(size, most)) return;
    program.bind(bindings);
    const sources = logits.sources(pick, true);
    while (commands.length < Math.min(size, most)) {
      const index = commands.length;
      const encoder = scope.device.createCommandEncoder();
      const pass = encoder.beginComputePass();
      program.encode(pass);
      logits.encode(pass, pick, true);
      pass.end();
      const kept = this.#keptRow(pick, turn, index);
      if (kept) {
        encoder.copyBufferToBuffer(row.buffer, row.offset, kept.buffer, kept.offset, row.bytes);
      }
      this.#readbacks[turn]!.copy(encoder, sources, index * runBytes);
      commands.push(encoder.finish());
    }
  }

  submit({ first, turn, pick, runBytes, commands, bindings }: Encoded): Batch {
    const { scope, program, values } = this.#parts;
    program.bind(bindings);
    values.writeTables();
    this.#readbacks[turn]!.stamp();
    scope.device.queue.submit(commands);
    const size = commands.length;
    const results = this.#results[turn]!;
    return { first, pick, turn, runBytes, size, results, isFetched: false };
  }

  /** Brings the results of a batch to the host; `between` gives the GPU more work meanwhile. */
  fetch(batch: Batch, between: () => void): void | Promise<void> {
    const { turn, size, runBytes, results } = batch;
    const bytes = size * runBytes;
    return this.#readbacks[turn]!.read(bytes, (range, start) => {
      results.set(new Uint32Array(range, start, bytes / 4));
      batch.isFetched = true;
    }, between);
  }

  /** The column that a run fed back to a row of the one behind. */
  fed({ pick, runBytes, results }: Batch, { run, row }: { run: number; row: number }): number {
    // The best few begin with the best; the second word of an entry is the column.
    const words = entryWords(pick.kind) || entryWords("best");
    return results[run * runBytes / 4 + row * words + 1]!;
  }

  /** Gives what a run of a batch brought of so many rows that are asked for; `places`: which those are. */
  serve(
    { pick, turn, runBytes, results }: Batch,
    { run, rows, places }: { run: number; rows: number; places: Int32Array },
  ): void {
    this.#parts.logits.take(pick, rows, {
      ...{ range: results.buffer, at: run * runBytes, isFed: true, places },
      source: this.#keptRow(pick, turn, run),
    });
  }

  #keptRow({ kind, rows }: LogitsPick, turn: number, index: number): CopySource | undefined {
    if (kind === "none" || rows > 1 || !this.#readbacks[turn]!.isImmediate) return undefined;
    const { depth, row: { bytes } } = this.#parts;
    return { buffer: this.#kept, offset: (turn * depth + index) * bytes, bytes };
  }
}

/** Bytes of the results of a batch, at most. */
function batchBytes({ logits, depth }: BatchParts): number {
  const one = { kind: "none", rows: 1, whole: [0] } as const;
  const all = { kind: "top", rows: logits.most, whole: [] } as const;
  return depth * Math.max(...[one, all].map((pick) => bytesOfAll(logits.sources(pick, true))));
}
