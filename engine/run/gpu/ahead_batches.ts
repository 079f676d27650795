// Batches of runs that follow each other without the host: each feeds the best values of its rows back by itself, and all
// but the first are one pass, since a pass of its own costs each as much as ten dispatches (bench/results/gpu-h200.md). Two of them share
// the memory of results: while one is served, the GPU works on the other, and the commands of the one behind that are
// encoded.

import type { GpuMemory } from "../../../gpu/gpu.ts";
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

/** A pass that is being encoded. */
interface Open {
  readonly encoder: GPUCommandEncoder;
  readonly pass: GPUComputePassEncoder;
}

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
  /** Runs so far. */
  size: number;
  /** The first of them alone: handing over long commands takes the host a while, in which the device has that to do. */
  head?: GPUCommandBuffer;
  /** Where the others are encoded; absent: there is none yet, or `commands` are whole. */
  open?: Open | undefined;
  commands?: GPUCommandBuffer;
}

/** A submission of several runs. */
export interface Batch extends Pick<Encoded, "first" | "pick" | "turn" | "runBytes"> {
  readonly size: number;
  /** What was fetched of each run. */
  readonly results: Uint32Array<ArrayBuffer>;
  isFetched: boolean;
}

/** Batches of which results are kept: one is served while the next one is computed. */
export const BATCHES = 2;

/** What a batch is made of. */
export interface BatchParts {
  readonly scope: GpuMemory;
  readonly program: Program<DimEnv>;
  readonly logits: GpuLogits;
  readonly reach: Reach;
  readonly values: Pick<GpuValues, "writeTables">;
  /** Most runs of a batch. */
  readonly depth: number;
}

/** Makes batches. */
export class AheadBatches {
  readonly #parts: BatchParts;
  readonly #readbacks: readonly Readback[];
  readonly #results: readonly Uint32Array<ArrayBuffer>[];
  #turn = 0;

  constructor(parts: BatchParts, readbacks: readonly Readback[]) {
    this.#parts = parts;
    this.#readbacks = readbacks;
    this.#results = readbacks.map(() => new Uint32Array(batchBytes(parts) / 4));
  }

  /** Makes batches with the readbacks that they need. */
  static async create(parts: BatchParts): Promise<AheadBatches> {
    const bytes = batchBytes(parts);
    const readbacks = await Promise.all(
      Array.from({ length: BATCHES }, () => createReadback(parts.scope, bytes)),
    );
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
    const runBytes = bytesOfAll(this.#parts.logits.sources(batch.pick, 0));
    return { ...batch, bindings, turn: this.#turn, runBytes, size: 0 };
  }

  /** Encodes runs until there are so many. */
  encode(batch: Encoded, size: number): void {
    const { scope, program, logits } = this.#parts, { bindings, most, pick, turn } = batch;
    if (batch.commands || batch.size >= Math.min(size, most)) return;
    program.bind(bindings);
    while (batch.size < Math.min(size, most)) {
      const { encoder, pass } = batch.open ??= beginPass(scope.device);
      program.encode(pass);
      logits.encode(pass, pick, this.#runOf(turn, batch.size++));
      if (batch.head) continue;
      pass.end();
      batch.head = encoder.finish();
      batch.open = undefined;
    }
  }

  /** Ends what is encoded, which takes most of the time of encoding: better before the device waits for it. */
  finish(batch: Encoded): GPUCommandBuffer {
    if (batch.commands) return batch.commands;
    const { open, size, pick, turn, runBytes } = batch, { scope: { device }, logits } = this.#parts;
    open?.pass.end();
    const encoder = open?.encoder ?? device.createCommandEncoder();
    for (let run = 0; run < size; run++) {
      const sources = logits.sources(pick, this.#runOf(turn, run));
      this.#readbacks[turn]!.copy(encoder, sources, run * runBytes);
    }
    batch.open = undefined;
    return batch.commands = encoder.finish();
  }

  submit(batch: Encoded): Batch {
    const { scope, program, values } = this.#parts;
    const { first, turn, pick, runBytes, bindings, size } = batch;
    const commands = this.finish(batch);
    program.bind(bindings);
    values.writeTables();
    this.#readbacks[turn]!.stamp();
    const { queue } = scope.device;
    if (batch.head) queue.submit([batch.head]);
    queue.submit([commands]);
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

  /** The row of which the best alone were fetched, as long as the host may still ask for it: of runs of one. */
  #keptRow({ kind, rows }: LogitsPick, turn: number, index: number): CopySource | undefined {
    if (kind === "none" || rows > 1 || !this.#readbacks[turn]!.isImmediate) return undefined;
    return this.#parts.logits.kept(this.#runOf(turn, index));
  }

  #runOf(turn: number, index: number): number {
    return turn * this.#parts.depth + index;
  }
}

function beginPass(device: GPUDevice): Open {
  const encoder = device.createCommandEncoder();
  return { encoder, pass: encoder.beginComputePass() };
}

/** Bytes of the results of a batch, at most. */
function batchBytes({ logits, depth }: BatchParts): number {
  const one = { kind: "none", rows: 1, whole: [0] } as const;
  const all = { kind: "top", rows: logits.most, whole: [] } as const;
  return depth * Math.max(...[one, all].map((pick) => bytesOfAll(logits.sources(pick, 0))));
}
