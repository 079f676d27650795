// The one place where steps of a model are run. Sessions ask for rows; the queue joins the rows of all of them into
// steps (steps/step_shares.ts says who gets how many), and lets each take its results before the next step. A long run takes
// several steps, in which the others go on.
//
// A step begins a turn of the event loop after somebody asked for rows, or after the step before it. Whoever got a token
// samples, shows it and asks for the next row without waiting for events, so all answers whose readers keep up are in
// the next step without anybody counting them; who waits for something slower joins a later one, and nobody waits for
// him. The turn lets timers and signals through besides, which each generation needed for itself before. It costs a tenth
// of a millisecond, since a step has driven all that it needs out of the processor's caches: where the same queries have
// been in several steps, all of them ask again at once, and the loop has turned some milliseconds ago, the next step begins
// without a turn.
//
// What needs the executable for itself (encoders' texts, sources, saved sessions) runs between two steps, one task each
// time. Nothing here allocates buffers: the table of rows is made once.

import { pause, turnedAt } from "../pause.ts";
import type { Executable } from "../run/executable.ts";
import { addRows, clearStep, type Step } from "../run/step.ts";
import type { CacheHolder, CacheRoom } from "./cache_room.ts";
import { type Asking, shareStep, type StepRoom } from "./steps/step_shares.ts";
import { LaneChoice } from "./steps/lane_choice.ts";
import { gateOf, type StepGate } from "./steps/step_gate.ts";
import { StoppableSteps } from "./steps/stoppable_steps.ts";

/** Consecutive tokens of a slot that are to be computed, and who takes the results. */
export interface RowsWish {
  readonly slot: number;
  /** Slot of their source; default: their own. */
  readonly source?: number;
  readonly tokens: ArrayLike<number>;
  /** By axis, of each entry of `tokens` (`Step.offsets`). */
  readonly offsets?: readonly Int32Array[] | undefined;
  /** Where a step that begins at `from` may end, at `to` or before it; `from` if it must not begin without more rows. */
  readonly cut?: ((from: number, to: number) => number) | undefined;
  /** The range of `tokens` that is meant. */
  readonly from: number;
  readonly to: number;
  /** Position of the first entry of `tokens`. */
  readonly start: number;
  /** By adapter. */
  readonly scales: readonly number[];
  /** What is wanted of the last rows (`Step.wanted`), and of how many. */
  readonly wanted: number;
  readonly wantedRows: number;
  /** So many steps may follow with the best token fed back; 0: none may follow a step with these rows in it. */
  readonly feedback: number;
  /** So many of those are worth computing before they are asked for; default: all. */
  readonly worth?: number | undefined;
  /** Tokens that may be the best of the last row (`Step.allowed`), if it is alone in its step: then all steps are worth it. */
  readonly allowed?: Uint32Array | undefined;
  /** A level more doubles the share of a step that a long prompt gets. */
  readonly priority: number;
  /** Whose rows they are, if they can be computed again: `tokens` then are all of the slot's, from position 0 on. */
  readonly holder?: CacheHolder;
  /** Takes the wish back before the next step. */
  readonly signal: AbortSignal | undefined;
  /** Asked before each step and behind it; throws if the rows must not be computed any more. */
  check(): void;
  /** Called while a device computes a step of these rows that does not need this thread; what it throws ends the wish. */
  meanwhile?: (() => void) | undefined;
  /** Takes the results of a part of the rows, before the next step. */
  read(executable: Executable, part: RowsPart): void;
}

/** Rows of a wish that a step has computed. */
export interface RowsPart {
  /** The range of `tokens`. */
  readonly from: number;
  readonly to: number;
  /** The step's row that has the first of them. */
  readonly row: number;
}

/** A step of somebody who needs it for himself. */
export interface StepJob<T> {
  /** Fills the empty table. */
  write(step: Step): void;
  /** Takes the results, before anyone else may run. */
  read(executable: Executable): T;
  /** Stops waiting for others' steps, and the step itself as a run ({@linkcode Lane.run}). */
  readonly signal?: AbortSignal | undefined;
}

/** What a queue is made of. */
export interface StepQueueParts {
  readonly executable: Executable;
  /** Room for rows. */
  readonly caches: CacheRoom;
  /** The table of rows. */
  readonly step: Step;
  /** Rows that a step may have, and rows of it of which something may be wanted. */
  readonly batch: number;
  readonly logitRows: number;
  /** Where a device may be replaced: what all queues pass. */
  readonly gate?: StepGate | undefined;
}

/** A wish that is not computed wholly yet. */
interface Waiting extends Asking {
  rows: number;
  wanted: number;
  readonly wish: RowsWish;
  /** Where in its tokens it is. */
  next: number;
  /** Row of the present step that has the next one. */
  row: number;
  /** A step that it was part of has failed: it runs without the others, which shows whose fault it was. */
  isAlone: boolean;
  /** What was thrown while a device computed the present step. */
  fault: { readonly error: unknown } | undefined;
  /** It gave up its rows, and waits until there is room for all of them. */
  isParked: boolean;
  resolve(): void;
  reject(reason: unknown): void;
}

/** Steps of the same queries after which no other is expected, and milliseconds that they then go on without a turn. */
const STEADY = { steps: 8, ms: 20 };
/** Promises in a row, at most, that lie between an answer's row and its wish for the next one. */
const PROMISES = 64;

/** Steps of a model, in order. */
export class StepQueue {
  /** Steps so far, and their rows. */
  readonly counts = { steps: 0, rows: 0 };
  readonly #executable: Executable;
  readonly #caches: CacheRoom;
  readonly #step: Step;
  readonly #room: StepRoom;
  readonly #stoppable: StoppableSteps;
  readonly #gate: StepGate | undefined;
  /** By priority, then in the order in which they came. */
  readonly #waiting: Waiting[] = [];
  readonly #tasks: (() => Promise<void>)[] = [];
  /** Who is in the step at hand. */
  readonly #taking: Waiting[] = [];
  #isAwake = false;
  /** Choices so far, the last one of each slot, and how many in a row were of the same slots. */
  #choices = 0;
  readonly #lastOf: number[] = [];
  #steady = 0;

  constructor({ executable, caches, step, batch, logitRows, gate }: StepQueueParts) {
    this.#executable = executable;
    this.#caches = caches;
    this.#step = step;
    this.#room = { rows: batch, wanted: logitRows };
    this.#stoppable = new StoppableSteps(this.#room);
    this.#gate = gate;
  }

  /**
   * Computes rows in steps that others take part in. Rejects with what `check` or `read` throws, with the signal's
   * reason, and with what a step of these rows throws when it is run without the others'.
   */
  compute(wish: RowsWish): Promise<void> {
    const { from, to, wantedRows: wanted, priority, holder } = wish;
    if (holder) holder.isBusy = true;
    return new Promise((resolve, reject) => {
      const behind = this.#waiting.findIndex((other) => other.priority < priority);
      this.#waiting.splice(behind < 0 ? this.#waiting.length : behind, 0, {
        ...{ wish, priority, resolve, reject, wanted },
        ...{ rows: to - from, next: from, row: 0, waited: 0, taken: 0 },
        ...{ isAlone: false, isParked: false, fault: undefined },
      });
      this.#wake();
    });
  }

  /** Runs a step for one alone. */
  run<T>({ write, read, signal }: StepJob<T>): Promise<T> {
    const runOnce = async () => {
      clearStep(this.#step);
      write(this.#step);
      await this.#executable.run(this.#step, signal);
      this.#count();
      return read(this.#executable);
    };
    return this.between(async () => {
      for (;;) {
        try {
          return await runOnce();
        } catch (error) {
          if (!await this.#gate?.repair(error)) throw error;
        }
      }
    }, signal);
  }

  /** Runs what needs the executable for itself. Rejects with the signal's reason if that fires before. */
  between<T>(task: () => T | Promise<T>, signal?: AbortSignal): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#tasks.push(async () => {
        try {
          signal?.throwIfAborted();
          resolve(await task());
        } catch (error) {
          reject(error);
        }
      });
      this.#wake();
    });
  }

  #wake(): void {
    if (this.#isAwake) return;
    this.#isAwake = true;
    void this.#turn();
  }

  async #turn(): Promise<void> {
    // Where a run lets events through by itself, what is run alone joins nobody and need not wait for them before.
    const isReady = this.#tasks.length > 0 && this.#executable.pauses;
    if (!isReady && !await this.#haveAllAsked()) await pause();
    if (this.#gate) await this.#gate.enter();
    await this.#tasks.shift()?.();
    this.#choose();
    if (this.#taking.length > 0) await this.#runStep();
    this.#gate?.leave();
    this.#isAwake = false;
    if (this.#tasks.length + this.#waiting.length > 0) this.#wake();
    else this.#caches.changed();
  }

  /** Whether everybody who is expected in the next step has asked for it, without a turn of the event loop. */
  async #haveAllAsked(): Promise<boolean> {
    const { length } = this.#taking;
    if (this.#steady < STEADY.steps || performance.now() - turnedAt() >= STEADY.ms) return false;
    for (let i = 0; i < PROMISES && this.#waiting.length < length; i++) await undefined;
    return this.#waiting.length === length && this.#tasks.length === 0;
  }

  /** Says who is in the next step. */
  #choose(): void {
    const taking = this.#taking, { length } = taking;
    for (let i = this.#waiting.length - 1; i >= 0; i--) this.#dropIfOver(this.#waiting[i]!);
    const asking = this.#asking();
    // Among several, whoever stops waits for a step of all, and short steps would be everybody's loss. Steps that a device
    // queues do not hold up this thread.
    const mayStop = asking.length === 1 && asking[0]!.wish.signal !== undefined &&
      !this.#executable.queues;
    shareStep(asking, mayStop ? this.#stoppable.room : this.#room);
    if (asking !== this.#waiting) {
      for (const one of this.#waiting) if (!asking.includes(one)) one.waited++;
    }
    taking.length = 0;
    for (const one of asking) if (one.taken > 0 && cutRows(one)) taking.push(one);
    for (let i = 0; i < taking.length;) {
      if (this.#reserve(taking[i]!)) i++;
      else taking.splice(i, 1);
    }
    // Whoever came behind may have taken the room of one who came before.
    for (let i = taking.length - 1; i >= 0; i--) {
      const { wish: { holder }, next, taken } = taking[i]!;
      if (holder && holder.reserved < next + taken) taking.splice(i, 1);
    }
    this.#choices++;
    let isSteady = taking.length === length;
    for (const { wish: { slot } } of taking) {
      isSteady &&= this.#lastOf[slot] === this.#choices - 1;
      this.#lastOf[slot] = this.#choices;
    }
    this.#steady = isSteady ? this.#steady + 1 : 0;
  }

  /** Who may be in the next step. */
  #asking(): readonly Waiting[] {
    const alone = this.#waiting.find(({ isAlone }) => isAlone);
    if (alone) return [alone];
    if (this.#executable.isOfOneSlot) {
      return this.#waiting.toSorted((a, b) => b.waited - a.waited).slice(0, 1);
    }
    for (const one of this.#waiting) this.#takeUp(one);
    return this.#waiting.some(({ isParked }) => isParked)
      ? this.#waiting.filter(({ isParked }) => !isParked)
      : this.#waiting;
  }

  /** Who has lost rows begins again, when there is room. */
  #takeUp(one: Waiting): void {
    const { holder, to, wantedRows } = one.wish;
    if (hasLostRows(one)) one.isParked = true;
    if (!one.isParked || !this.#caches.hasRoom(to, holder)) return;
    holder!.takeBack();
    one.isParked = false;
    one.next = holder!.cached;
    one.rows = to - one.next;
    one.wanted = Math.min(wantedRows, one.rows);
  }

  #reserve(one: Waiting): boolean {
    const { slot, start, holder } = one.wish;
    try {
      const length = start + one.next + one.taken;
      // Whoever came before may have taken its rows, and left room for some.
      if (!hasLostRows(one) && this.#caches.reserve({ slot, length, holder })) return true;
      one.isParked = true;
      return false;
    } catch (error) {
      this.#end(one);
      one.reject(error);
      return false;
    }
  }

  #dropIfOver(one: Waiting): void {
    try {
      one.wish.signal?.throwIfAborted();
      one.wish.check();
    } catch (error) {
      this.#end(one);
      one.reject(error);
    }
  }

  async #runStep(): Promise<void> {
    try {
      writeStep(this.#step, this.#taking);
      this.#markInStep(true);
      const start = performance.now();
      const done = this.#executable.run(this.#step);
      // One that computes aside leaves the thread free.
      if (!done) this.#stoppable.ran(this.#step.count, performance.now() - start);
      if (done) {
        this.#taking.forEach(workMeanwhile);
        await done;
      }
    } catch (error) {
      this.#markInStep(false);
      if (!await this.#gate?.repair(error)) this.#fail(error);
      return;
    }
    this.#markInStep(false);
    this.#count();
    for (const one of this.#taking) this.#read(one);
  }

  /** Other queues (of other lanes) leave such rows alone. */
  #markInStep(isInStep: boolean): void {
    for (const { wish: { holder } } of this.#taking) if (holder) holder.isInStep = isInStep;
  }

  #count(): void {
    this.#gate?.succeeded();
    this.counts.steps++;
    this.counts.rows += this.#step.count;
  }

  #read(one: Waiting): void {
    const { wish, row, next, taken } = one;
    one.isAlone = false;
    one.next += taken;
    one.rows -= taken;
    one.wanted = Math.min(one.wanted, one.rows);
    if (one.rows === 0) this.#end(one);
    try {
      if (one.fault) throw one.fault.error;
      wish.check(); // its slot may be another's since the step has begun
      wish.read(this.#executable, { row, from: next, to: next + taken });
      if (one.rows === 0) one.resolve();
    } catch (error) {
      this.#end(one);
      one.reject(error);
    }
  }

  #fail(error: unknown): void {
    const [first] = this.#taking;
    if (this.#taking.length > 1) { for (const one of this.#taking) one.isAlone = true; }
    else {
      this.#end(first!);
      first!.reject(error);
    }
  }

  #end(one: Waiting): void {
    remove(this.#waiting, one);
    const { holder } = one.wish;
    if (holder) holder.isBusy = false;
  }
}

// The step is under way: nothing that is thrown here may hide that.
function workMeanwhile(one: Waiting): void {
  try {
    one.wish.meanwhile?.();
  } catch (error) {
    one.fault = { error };
  }
}

function remove<T>(all: T[], one: T): void {
  const index = all.indexOf(one);
  if (index >= 0) all.splice(index, 1);
}

/** Whether rows before the next one were given up. */
function hasLostRows({ wish: { holder }, next }: Waiting): boolean {
  return holder !== undefined && holder.cached < next;
}

/** Takes fewer rows where a step must not end; false if that leaves none, and it is to have the next step alone. */
function cutRows(one: Waiting): boolean {
  const { wish: { cut }, next } = one;
  if (!cut) return true;
  one.taken = cut(next, next + one.taken) - next;
  one.isAlone = one.taken === 0;
  return one.taken > 0;
}

/** What sessions ask for steps. */
export type StepRunner = Pick<StepQueue, "compute" | "run" | "between" | "counts">;

/**
 * Makes the queue of an executable; where several steps may be under way at once, one for each (steps/lane_choice.ts): a run
 * of a slot's rows is in one of them, and who asks for rows waits for those before.
 */
export function createStepQueue(
  { executable, createStep, ...parts }: Omit<StepQueueParts, "step" | "gate"> & {
    readonly createStep: (executable: Executable) => StepQueueParts["step"];
  },
): StepRunner {
  const gate = gateOf(executable, parts.caches);
  const make = (own: Executable) =>
    new StepQueue({ ...parts, executable: own, step: createStep(own), gate });
  const lanes = executable.lanes?.map(make) ?? [];
  if (lanes.length < 2) return make(executable);
  const [first] = lanes as [StepQueue], { leastLanes: least = lanes.length } = executable;
  const choice = new LaneChoice({ least, most: lanes.length });
  const sum = (of: (counts: StepQueue["counts"]) => number) =>
    lanes.reduce((total, { counts }) => total + of(counts), 0);
  return {
    get counts() {
      return { steps: sum(({ steps }) => steps), rows: sum(({ rows }) => rows) };
    },
    compute: (wish) => lanes[choice.laneOf(wish.slot)]!.compute(wish),
    run: (job) => first.run(job),
    between: (task, signal) => first.between(task, signal),
  };
}

/** Fills the table with the rows that were chosen. */
function writeStep(step: Step, taking: readonly Waiting[]): void {
  clearStep(step);
  let goesAhead = true, worth = Infinity;
  for (const one of taking) {
    const { wish: { tokens, start, slot, source, wanted, feedback }, next, taken, rows } = one;
    const { scales, offsets } = one.wish;
    one.row = step.count;
    addRows(step, {
      ...{ tokens, from: next, to: next + taken, position: start + next, slot, scales, wanted },
      offsets,
      ...source !== undefined && { source },
      wantedRows: Math.max(0, one.wanted - (rows - taken)),
    });
    goesAhead &&= taken === rows && feedback > 0;
    step.feedback = Math.max(step.feedback, feedback);
    worth = Math.min(worth, one.wish.worth ?? Infinity);
  }
  // Rows that end before the others are not asked for any more, which costs a device nothing (run/gpu/ahead.ts). Where
  // one goes on otherwise, what is ahead is in vain for all.
  if (step.count === 1) step.allowed = taking[0]!.wish.allowed;
  step.feedback = !goesAhead ? 0 : step.allowed ? step.feedback : Math.min(step.feedback, worth);
}
