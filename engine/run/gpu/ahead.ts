// Runs ahead of their reader. Who runs a plan says how many runs may follow with the best values fed back
// (RankedWish.repeats), and the GPU knows those first: it feeds them back by itself and goes on, several runs in one
// submission, and results are fetched in batches (ahead_batches.ts). To the host nothing changes: it asks for a run as
// ever, and if that is the one which was computed, its results are there. If it asks for another (a sampler decided
// otherwise, a stop, another session), what was computed ahead is forgotten: it lies behind the ends of the sessions,
// where it will be overwritten.
//
// Rows that stop being asked for, because their answers have ended, cost the others nothing: what has been submitted is
// given out as far as it is asked for, in any order. Nothing more is submitted with such rows in it, since their places in
// the states may be given to others. A row whose slot was opened, restored or given other pages meanwhile is lost, too.

import type { CompiledDim, DimEnv } from "../../graph/dim/mod.ts";
import type { RankedWish } from "../backend.ts";
import { AheadBatches, type Batch, type Encoded } from "./ahead_batches.ts";
import { ENTRIES } from "./best_programs.ts";
import {
  areConstant,
  type ConstantInput,
  fedInputs,
  type FedParts,
  noteConstants,
} from "./fed_inputs.ts";
import type { LogitsPick } from "./logits.ts";

/** Runs of the first submission: few, so that the first of them is not late. */
const FIRST_RUNS = 2;

/** What runs ahead are made of. */
export interface AheadParts extends FedParts {
  /** Most runs of one submission, 0: none; a stop discards at most twice as many. */
  readonly depth: number;
}

/** Runs that may have been computed before they are asked for. */
export class RunsAhead {
  readonly #parts: AheadParts;
  readonly #batches: AheadBatches;
  readonly #fed: Int32Array;
  readonly #counted: Int32Array;
  readonly #rowsOf: CompiledDim;
  readonly #constants: readonly ConstantInput[];
  /** Rows of the states. */
  readonly #capacity: number;
  /** What is being served, and what the GPU works on meanwhile. */
  #current: Batch | undefined;
  #next: Batch | undefined;
  /** What is encoded for the batch after that. */
  #ready: Encoded | undefined;
  /** Rows of the runs, and where they went in the states when the batches began. */
  #rows = 0;
  readonly #started: Int32Array;
  /** Rows that are asked for, and which of the runs' rows those are. */
  #asked = 0;
  readonly #places: Int32Array;
  /** Rows whose slots have other rows by now; whether some rows are no longer asked for. */
  readonly #isLost: boolean[] = [];
  #hasLost = false;
  /** Runs of `current` that were served. */
  #served = 0;
  /** By row, the value that the next run is fed. */
  readonly #values: Int32Array;
  /** Runs since the batches began that may be asked for. */
  #end = 0;
  #count = 0;

  constructor(parts: AheadParts, batches: AheadBatches) {
    const inputs = fedInputs(parts.plan, parts);
    this.#parts = parts;
    this.#batches = batches;
    this.#fed = inputs.fed;
    this.#counted = inputs.counted;
    this.#rowsOf = inputs.rowsOf;
    this.#constants = inputs.constants;
    this.#capacity = inputs.capacity;
    const column = () => new Int32Array(parts.logits.most);
    [this.#started, this.#places, this.#values] = [column(), column(), column()];
  }

  /** Runs ahead of a plan that has states for them to go into. */
  static async create(parts: AheadParts): Promise<RunsAhead | undefined> {
    const { scope, program, values, logits, reach, depth } = parts;
    if (depth === 0) return undefined;
    const batches = await AheadBatches.create({ scope, program, values, logits, reach, depth });
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
    const pick = this.#parts.logits.pickOf(bindings, wish), repeats = wish?.repeats ?? 0;
    if (!this.#isNext(bindings, pick)) this.forget();
    this.#end = (this.#current?.first ?? 0) + this.#served + 1 + repeats;
    // Whole rows are too much to keep of several.
    const canFollow = pick.rows === 1 || pick.whole.length === 0;
    if (!this.#current && repeats > 0 && canFollow && this.#isOfAnswers(bindings, pick)) {
      this.#begin(bindings, pick);
    }
    const batch = this.#current;
    if (!batch) return false;
    const fetched = batch.isFetched ? undefined : this.#fetch(batch, bindings, pick);
    if (fetched) return fetched.then(() => this.#serve(batch));
    this.#serve(batch);
    return true;
  }

  /**
   * To be called when rows of a slot before one are others than runs have written: what was computed ahead for it is lost
   * if it is among them.
   */
  lose(slot: number, end: number): void {
    for (const { then, saysSlots } of this.#constants) {
      for (let row = 0; saysSlots && row < this.#rows; row++) {
        if (then[row] === slot && end > this.#started[row]!) {
          this.#hasLost = this.#isLost[row] = true;
        }
      }
    }
    if (this.#hasLost) this.#ready = undefined;
  }

  /** To be called when something went wrong. */
  forget(): void {
    this.#current = this.#next = this.#ready = undefined;
    this.#served = 0;
  }

  /** Whether the run that is asked for is the next one, or some rows of it: finds out which. */
  #isNext(bindings: DimEnv, pick: LogitsPick): boolean {
    const batch = this.#current;
    if (!batch || !this.#isOfAnswers(bindings, pick) || !isEnough(batch.pick, pick)) return false;
    const run = batch.first + this.#served;
    for (let row = 0, place = 0; row < pick.rows; row++) {
      // Most likely they come in the same order.
      let left = this.#rows;
      while (left > 0 && !this.#isAt(place, row, run)) {
        place = (place + 1) % this.#rows;
        left--;
      }
      if (left === 0) return false;
      this.#places[row] = place;
      place = (place + 1) % this.#rows;
    }
    if (!areConstant(this.#constants, bindings)) return false;
    this.#asked = pick.rows;
    this.#hasLost ||= pick.rows < this.#rows;
    if (this.#hasLost) this.#ready = undefined;
    return true;
  }

  /** Whether something is wanted of all rows of a run. */
  #isOfAnswers(bindings: DimEnv, { rows }: LogitsPick): boolean {
    return rows > 0 && this.#rowsOf(bindings) === rows;
  }

  /** Whether a row of the runs is asked for as that row. */
  #isAt(place: number, row: number, run: number): boolean {
    if (this.#isLost[place] || this.#fed[row] !== this.#values[place]) return false;
    if (this.#counted[row] !== this.#started[place]! + run) return false;
    for (const { data, then, width } of this.#constants) {
      for (let i = 0; i < width; i++) {
        if (data[row * width + i] !== then[place * width + i]) return false;
      }
    }
    return true;
  }

  #begin(bindings: DimEnv, pick: LogitsPick): void {
    this.#rows = this.#asked = pick.rows;
    this.#hasLost = false;
    this.#isLost.fill(false);
    for (let row = 0; row < pick.rows; row++) {
      this.#places[row] = row;
      this.#values[row] = this.#fed[row]!;
      this.#started[row] = this.#counted[row]!;
    }
    const first = this.#prepare(bindings, pick, 0);
    if (!first) return;
    noteConstants(this.#constants);
    this.#parts.values.writeInputs(bindings);
    this.#batches.encode(first, FIRST_RUNS);
    this.#current = this.#batches.submit(first);
  }

  /** A batch behind so many runs; none where no more may follow. */
  #prepare(bindings: DimEnv, pick: LogitsPick, first: number): Encoded | undefined {
    let start = 0;
    for (let row = 0; row < this.#rows; row++) start = Math.max(start, this.#started[row]!);
    const room = Math.min(this.#end, this.#capacity - start) - first;
    // Where few may follow, half of them are served while the GPU works on the others.
    const half = Math.ceil((this.#end - (this.#current?.first ?? 0) - this.#served) / 2);
    const most = Math.min(this.#parts.depth, room, half);
    if (most <= 0 || this.#hasLost) return undefined;
    const position = start + first + most - 1;
    return this.#batches.begin(bindings, { first, pick, most, position });
  }

  #fetch(batch: Batch, bindings: DimEnv, pick: LogitsPick): void | Promise<void> {
    const { first, size } = batch;
    // While the GPU works on this batch, the next one is encoded; most of it was already, a run at each `serve`.
    this.#ready ??= this.#prepare(bindings, pick, first + size);
    const upcoming = this.#ready;
    if (upcoming) {
      this.#batches.encode(upcoming, 2 * size);
      this.#batches.finish(upcoming);
    }
    this.#ready = undefined;
    return this.#batches.fetch(batch, () => {
      const next = this.#next = upcoming && this.#batches.submit(upcoming);
      if (!next) return;
      const first = next.first + next.size;
      // A batch that was begun does not grow; where few may follow yet, more may when it is fetched.
      if (this.#end - first >= next.size) this.#ready = this.#prepare(bindings, pick, first);
    });
  }

  #serve(batch: Batch): void {
    const run = this.#served++;
    this.#batches.serve(batch, { run, rows: this.#asked, places: this.#places });
    for (let row = 0; row < this.#rows; row++) {
      this.#values[row] = this.#batches.fed(batch, { run, row });
    }
    this.#count++;
    if (this.#ready) this.#batches.encode(this.#ready, this.#ready.size + 1);
    if (this.#served < batch.size) return;
    this.#current = this.#next;
    this.#next = undefined;
    this.#served = 0;
  }
}

/** Whether a batch that brings `given` has what is asked for. */
function isEnough(given: LogitsPick, asked: LogitsPick): boolean {
  if (given.kind === "none") return true;
  return asked.whole.length === 0 && ENTRIES[asked.kind] <= ENTRIES[given.kind];
}
