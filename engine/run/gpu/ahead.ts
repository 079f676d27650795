// Runs ahead of their reader. Who runs a plan says how many runs may follow with the best value fed back
// (RankedWish.repeats), and the GPU knows it first: it feeds it back by itself and goes on, several runs in one
// submission, and results are fetched in batches (ahead_batches.ts). To the host nothing changes: it asks for a run as
// ever, and if that is the one which was computed, its results are there. If it asks for another (a sampler decided
// otherwise, a stop, another session), what was computed ahead is forgotten: it lies behind the end of the session,
// where it will be overwritten.

import type { GpuMemory } from "../../../gpu/gpu.ts";
import type { Program } from "../../../gpu/program.ts";
import { compile, type CompiledDim, type DimEnv, product } from "../../graph/dim/mod.ts";
import type { HostData } from "../../graph/graph.ts";
import type { Plan } from "../../plan/plan.ts";
import type { RankedOutput, RankedWish } from "../backend.ts";
import { AheadBatches, type Batch, type Encoded } from "./ahead_batches.ts";
import type { Reach } from "./cache_reach.ts";
import type { GpuLogits, LogitsKind } from "./logits.ts";
import { type GpuOutput, rowOf } from "./outputs.ts";
import type { GpuValues } from "./values.ts";

/** Runs of the first submission: few, so that the first of them is not late. */
const FIRST_RUNS = 2;

/** What runs ahead are made of. */
export interface AheadParts {
  readonly scope: GpuMemory;
  readonly plan: Plan;
  readonly ranked: RankedOutput;
  readonly values: GpuValues;
  readonly program: Program<DimEnv>;
  readonly outputs: readonly GpuOutput[];
  readonly reach: Reach;
  readonly logits: GpuLogits;
  /** Most runs of one submission; a stop discards at most twice as many. */
  readonly depth: number;
}

/** An input that does not change from run to run. */
interface Constant {
  readonly data: HostData;
  readonly count: CompiledDim;
  /** As it was when the batches began. */
  readonly then: HostData;
}

/** Runs that may have been computed before they are asked for. */
export class RunsAhead {
  readonly #parts: AheadParts;
  readonly #batches: AheadBatches;
  readonly #fed: Int32Array;
  readonly #counted: Int32Array;
  /** Rows of a run. */
  readonly #rows: CompiledDim;
  readonly #constants: readonly Constant[];
  /** Rows of the states. */
  readonly #capacity: number;
  /** What is being served, and what the GPU works on meanwhile. */
  #current: Batch | undefined;
  #next: Batch | undefined;
  /** What is encoded for the batch after that. */
  #ready: Encoded | undefined;
  /** Runs of `current` that were served. */
  #served = 0;
  /** The value that the next run is fed, and the position behind the last one that may follow. */
  #value = 0;
  #end = 0;
  /** What is fetched of runs that follow. */
  #kind: LogitsKind = "row";
  #count = 0;

  constructor(parts: AheadParts, batches: AheadBatches) {
    const { plan: { graph }, ranked, values } = parts;
    const input = (wanted: string) => graph.inputs.find(({ name }) => name === wanted)!;
    this.#parts = parts;
    this.#batches = batches;
    this.#fed = values.input(input(ranked.fed)) as Int32Array;
    this.#counted = values.input(input(ranked.counted)) as Int32Array;
    this.#rows = compile(input(ranked.fed).shape[0]!);
    this.#constants = graph.inputs
      .filter(({ name }) => name !== ranked.fed && name !== ranked.counted)
      .map((value) => {
        const data = values.input(value);
        return { data, count: compile(product(value.shape)), then: data.slice() };
      });
    this.#capacity = Math.min(...graph.states.map(({ shape }) => shape[0] as number));
  }

  /** Runs ahead of a plan that has states for them to go into. */
  static async create(parts: AheadParts): Promise<RunsAhead | undefined> {
    const { scope, plan, program, logits, reach, outputs, depth } = parts;
    if (depth === 0 || plan.graph.states.length === 0) return undefined;
    const row = rowOf(outputs[0]!);
    const batches = await AheadBatches.create({ scope, program, logits, reach, row, depth });
    return new RunsAhead(parts, batches);
  }

  /** Runs that were given without being computed when they were asked for. */
  get count(): number {
    return this.#count;
  }

  /**
   * Gives the results of a run if it was computed ahead, or if others will follow it.
   *
   * @returns False if it must be computed; a promise where results cannot be taken at once.
   */
  take(bindings: DimEnv, wish: RankedWish | undefined): boolean | Promise<void> {
    if (!this.#isNext(bindings)) this.forget();
    const repeats = wish?.repeats ?? 0;
    this.#kind = this.#parts.logits.kindOf(bindings, wish);
    this.#end = this.#counted[0]! + 1 + repeats;
    if (!this.#current && repeats > 0 && this.#isOneRow(bindings)) this.#begin(bindings);
    const batch = this.#current;
    if (!batch) return false;
    const fetched = batch.isFetched ? undefined : this.#fetch(batch, bindings);
    if (fetched) return fetched.then(() => this.#serve(batch));
    this.#serve(batch);
    return true;
  }

  /** To be called when states are changed otherwise than by runs. */
  forget(): void {
    this.#current = this.#next = this.#ready = undefined;
    this.#served = 0;
  }

  #isNext(bindings: DimEnv): boolean {
    const batch = this.#current;
    if (!batch || this.#fed[0] !== this.#value) return false;
    if (this.#counted[0] !== batch.position + this.#served) return false;
    if (!this.#isOneRow(bindings)) return false;
    for (const { data, count, then } of this.#constants) {
      const elements = count(bindings);
      for (let i = 0; i < elements; i++) if (data[i] !== then[i]) return false;
    }
    return true;
  }

  #isOneRow(bindings: DimEnv): boolean {
    const { outputs, logits: { vocabulary } } = this.#parts;
    return this.#rows(bindings) === 1 && outputs[0]!.count(bindings) === vocabulary;
  }

  #begin(bindings: DimEnv): void {
    const first = this.#prepare(bindings, this.#counted[0]!);
    if (!first) return;
    for (const { data, then } of this.#constants) (then as Uint8Array).set(data as Uint8Array);
    this.#value = this.#fed[0]!;
    this.#parts.values.writeInputs();
    this.#batches.encode(first, FIRST_RUNS);
    this.#current = this.#batches.submit(first);
  }

  #prepare(bindings: DimEnv, position: number): Encoded | undefined {
    const most = Math.min(this.#parts.depth, Math.min(this.#capacity, this.#end) - position);
    if (most <= 0) return undefined;
    return this.#batches.begin(bindings, { position, kind: this.#kind, most });
  }

  #fetch(batch: Batch, bindings: DimEnv): void | Promise<void> {
    const { position, size } = batch;
    // While the GPU works on this batch, the next one is encoded; most of it was already, a run at each `serve`.
    this.#ready ??= this.#prepare(bindings, position + size);
    if (this.#ready) this.#batches.encode(this.#ready, 2 * size);
    const upcoming = this.#ready;
    this.#ready = undefined;
    return this.#batches.fetch(batch, () => {
      const next = this.#next = upcoming && this.#batches.submit(upcoming);
      this.#ready = next && this.#prepare(bindings, next.position + next.size);
    });
  }

  #serve(batch: Batch): void {
    const { logits, outputs } = this.#parts;
    const { kind, turn, results } = batch;
    const at = this.#served * this.#batches.runBytes(kind);
    if (kind === "row") {
      logits.forget();
      (outputs[0]!.data as Float32Array).set(
        new Float32Array(results.buffer, at, logits.vocabulary),
      );
    } else logits.take(kind, results.buffer, at, this.#batches.keptRow(turn, this.#served));
    this.#value = batch.best[this.#served++]!;
    this.#count++;
    if (this.#ready) this.#batches.encode(this.#ready, this.#ready.commands.length + 1);
    if (this.#served < batch.size) return;
    this.#current = this.#next;
    this.#next = undefined;
    this.#served = 0;
  }
}
