// Batches of runs that follow each other without the host: each feeds its best value back by itself, and all are one
// submission. Two of them share the memory of results: while one is served, the GPU works on the other, and the commands
// of the one behind that are encoded.

import { type GpuMemory, STORAGE_USAGE } from "../../../gpu/gpu.ts";
import type { Program } from "../../../gpu/program.ts";
import { type CopySource, createReadback, type Readback } from "../../../gpu/readback.ts";
import type { DimEnv } from "../../graph/dim/mod.ts";
import type { Reach } from "./cache_reach.ts";
import type { GpuLogits, LogitsKind } from "./logits.ts";

/** Runs that wait to be submitted. */
export interface Encoded {
  /** Where the row of the first of them goes in the states. */
  readonly position: number;
  readonly bindings: DimEnv;
  /** Runs that may be added. */
  readonly most: number;
  readonly kind: LogitsKind;
  readonly turn: number;
  readonly commands: GPUCommandBuffer[];
}

/** A submission of several runs. */
export interface Batch {
  readonly position: number;
  readonly kind: LogitsKind;
  readonly turn: number;
  readonly size: number;
  /** What was fetched of each run, and the columns that follow them. */
  readonly results: Uint32Array<ArrayBuffer>;
  readonly best: Uint32Array;
  isFetched: boolean;
}

/** What a batch is made of. */
export interface BatchParts {
  readonly scope: GpuMemory;
  readonly program: Program<DimEnv>;
  readonly logits: GpuLogits;
  readonly reach: Reach;
  /** Where a run leaves the row. */
  readonly row: CopySource;
  /** Most runs of a batch. */
  readonly depth: number;
}

/** Makes batches. */
export class AheadBatches {
  readonly #parts: BatchParts;
  readonly #readbacks: readonly Readback[];
  readonly #memory: readonly Pick<Batch, "results" | "best">[];
  /** The rows of which the best alone were fetched, as long as the host may still ask for them. */
  readonly #kept: GPUBuffer;
  readonly #sources: Readonly<Record<LogitsKind, readonly CopySource[]>>;
  #turn = 0;

  constructor(parts: BatchParts, readbacks: readonly Readback[]) {
    const { scope, logits, row, depth } = parts;
    this.#parts = parts;
    this.#readbacks = readbacks;
    this.#memory = readbacks.map(() => ({
      results: new Uint32Array(batchBytes(parts) / 4),
      best: new Uint32Array(depth),
    }));
    this.#kept = scope.createBuffer("logits ahead", 2 * depth * row.bytes, STORAGE_USAGE);
    this.#sources = sourcesOf(logits, row);
  }

  /** Makes batches with the readbacks that they need. */
  static async create(parts: BatchParts): Promise<AheadBatches> {
    const bytes = batchBytes(parts);
    const readbacks = await Promise.all([0, 1].map(() => createReadback(parts.scope, bytes)));
    return new AheadBatches(parts, readbacks);
  }

  /** A batch of at most `most` runs without any yet. */
  begin(
    given: DimEnv,
    { position, kind, most }: Pick<Encoded, "position" | "kind" | "most">,
  ): Encoded {
    this.#turn = 1 - this.#turn;
    // One reach for all: sizes must not change between what is encoded and what is submitted.
    const bindings = this.#parts.reach.of(given, position + most - 1);
    return { position, bindings, most, kind, turn: this.#turn, commands: [] };
  }

  /** Encodes runs until there are so many. */
  encode({ commands, bindings, most, kind, turn }: Encoded, size: number): void {
    const { scope, program, logits, row } = this.#parts;
    if (commands.length >= Math.min(size, most)) return;
    program.bind(bindings);
    while (commands.length < Math.min(size, most)) {
      const index = commands.length;
      const encoder = scope.device.createCommandEncoder();
      const pass = encoder.beginComputePass();
      program.encode(pass);
      logits.feedback.encode(pass);
      if (kind === "top") logits.top.encode(pass);
      pass.end();
      if (kind !== "row") {
        const { buffer, offset, bytes } = this.keptRow(turn, index);
        encoder.copyBufferToBuffer(row.buffer, row.offset, buffer, offset, bytes);
      }
      this.#readbacks[turn]!.copy(encoder, this.#sources[kind], index * this.runBytes(kind));
      commands.push(encoder.finish());
    }
  }

  submit({ position, turn, kind, commands, bindings }: Encoded): Batch {
    const { scope, program } = this.#parts;
    program.bind(bindings);
    this.#readbacks[turn]!.stamp();
    scope.device.queue.submit(commands);
    const size = commands.length;
    return { position, kind, turn, size, ...this.#memory[turn]!, isFetched: false };
  }

  /** Brings the results of a batch to the host; `between` gives the GPU more work meanwhile. */
  fetch(batch: Batch, between: () => void): void | Promise<void> {
    const { turn, kind, size, results, best } = batch;
    const words = this.runBytes(kind) / 4;
    // Behind a row comes the entry that was fed back; the best few begin with it. Its second word is the column.
    const columnAt = kind === "row" ? this.#parts.logits.vocabulary + 1 : 1;
    return this.#readbacks[turn]!.read(4 * size * words, (range, start) => {
      results.set(new Uint32Array(range, start, size * words));
      for (let i = 0; i < size; i++) best[i] = results[i * words + columnAt]!;
      batch.isFetched = true;
    }, between);
  }

  /** Bytes that are fetched of a run. */
  runBytes(kind: LogitsKind): number {
    return bytesOfAll(this.#sources[kind]);
  }

  /** Where the row of a run is kept. */
  keptRow(turn: number, index: number): CopySource {
    const { depth, row: { bytes } } = this.#parts;
    return { buffer: this.#kept, offset: (turn * depth + index) * bytes, bytes };
  }
}

/** Bytes of the results of a batch, at most. */
function batchBytes({ logits, row, depth }: BatchParts): number {
  return depth * Math.max(...Object.values(sourcesOf(logits, row)).map(bytesOfAll));
}

function sourcesOf(
  logits: GpuLogits,
  row: CopySource,
): Readonly<Record<LogitsKind, readonly CopySource[]>> {
  const [entry, entries] = [logits.source("best")!, logits.source("top")!];
  return { row: [row, entry], best: [entry], top: [entries] };
}

function bytesOfAll(sources: readonly CopySource[]): number {
  return sources.reduce((sum, { bytes }) => sum + bytes, 0);
}
