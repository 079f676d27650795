// A step of a language model: a table of rows. Each row has a token, the slot of the session that it belongs to, its
// position there, how much each adapter counts, and what is wanted of it. A token, a prompt's chunk, beams and many
// sessions are the same table. It is made once and filled anew for every step; executable.ts gives it to a graph.

import type { BestLogits } from "./backend.ts";

/** Most of a row's best logits that a device finds; where more are wanted, the whole row is there. */
export const MOST_BEST = 64;

/** Codes of `Step.wanted`; a number above 0 wants so many of the row's best logits. */
export const WANTED = {
  /** The row is computed for the rows behind it. */
  nothing: 0,
  /** All logits, and the hidden state where the graph gives it out. */
  logits: -1,
  /** The hidden state alone. */
  hidden: -2,
} as const;

/** Rows to compute at once; of each column the first `count` entries hold. */
export interface Step {
  /** Rows in use. */
  count: number;
  /** The rows are of sources, which an encoder-decoder reads before it writes. */
  isSource: boolean;
  /** Of a source that is sound, in place of its tokens: f32[bands, frames]. */
  features: Float32Array | undefined;
  /**
   * So many steps may follow, each with the best tokens of this one's rows, which all want something, fed back to their
   * slots: the device may compute them before they are asked for. Where a later step has these rows in another order, or
   * fewer of them, it is found there too; any other step is computed anew. Of several rows all must want their best.
   */
  feedback: number;
  /** Of a step of one row that wants its best: the tokens that may be that, by bit; undefined: any. */
  allowed: Uint32Array | undefined;
  /** Below 0: a row of a picture instead (picture_inputs.ts). */
  readonly tokens: Int32Array;
  readonly positions: Int32Array;
  /** By axis, what is added to a position where rotations go by place in a picture. */
  readonly offsets: readonly Int32Array[];
  /** Of encoders, and of sources, rows of one slot stand together: they are a text. */
  readonly slots: Int32Array;
  /** Whether a token is of the first or second text of a pair, for encoders that tell them apart. */
  readonly types: Int32Array;
  /** The slot whose source a row of an encoder-decoder looks at. */
  readonly sources: Int32Array;
  /** See {@linkcode WANTED}. */
  readonly wanted: Int32Array;
  /** By adapter, how much it counts in each row. */
  readonly scales: readonly Float32Array[];
  /** Of pictures: the numbers of each row's patch, as many a row as the graph takes. */
  readonly patches: Float32Array;
  /** Of pictures, and of rows that are wanted: learnt rows between it and the first patch. */
  leading: number;
}

/** What runs steps, one at a time. */
export interface StepLane {
  /** Of encoders of pictures: what {@linkcode Step.patches} is to be, from where they are read. */
  readonly patches?: Float32Array;
  /** Runs a step. What it gives is valid until the next one. `signal`: as of a run ({@linkcode Lane.run}). */
  run(step: Step, signal?: AbortSignal): void | Promise<void>;
  /** The best logits of a row of the last step, if it wanted those and the device could find them. */
  best(row: number): BestLogits | undefined;
  /** All logits of a row that wanted some, and of the wanted rows behind it: a view. */
  logits(row: number, count?: number): Float32Array;
  /** Vectors of the whole that a row stands for, and of the wanted rows behind it: a view; absent: it has none. */
  vectors?(row: number, count?: number): Float32Array;
  /** Hidden states of a row and of those behind it: a view. */
  hidden(row: number, count?: number): Float32Array;
  /** All logits of the last row of which a slot wanted the best, or of one so many before it, if they are still there. */
  leftLogits(slot: number, back?: number): Float32Array | undefined;
}

/** Axes of places in pictures: time, height, width. */
export const AXES = 3;

const NO_PATCHES = new Float32Array(0);

/** Makes a table of at most so many rows, for a model with so many adapters, or with the patches of an executable. */
export function createStep(
  rows: number,
  adapters = 0,
  { patches = NO_PATCHES }: { readonly patches?: Float32Array | undefined } = {},
): Step {
  const column = () => new Int32Array(rows);
  return {
    ...{ count: 0, isSource: false, features: undefined, feedback: 0, allowed: undefined },
    ...{ tokens: column(), positions: column(), slots: column(), types: column() },
    ...{ sources: column(), wanted: column() },
    offsets: Array.from({ length: AXES }, column),
    scales: Array.from({ length: adapters }, () => new Float32Array(rows)),
    ...{ patches, leading: 0 },
  };
}

/** Empties the table. */
export function clearStep(step: Step): void {
  step.count = 0;
  step.isSource = false;
  step.features = undefined;
  step.feedback = 0;
  step.allowed = undefined;
}

/** Consecutive tokens of one slot. */
export interface RowRun {
  readonly tokens: ArrayLike<number>;
  /** The range of `tokens` that is meant; default: all. */
  readonly from?: number;
  readonly to?: number;
  /** Position of the first of them; default 0. */
  readonly position?: number;
  /** By axis, of each entry of `tokens`; default: 0. */
  readonly offsets?: readonly Int32Array[] | undefined;
  readonly slot: number;
  /** Slot of their source; default: their own. */
  readonly source?: number;
  /** By adapter; default: 0. */
  readonly scales?: readonly number[];
  /** What is wanted of the last of them; default: nothing. */
  readonly wanted?: number;
  /** Of how many of the last it is wanted; default 1. */
  readonly wantedRows?: number;
}

/** Appends rows. */
export function addRows(step: Step, run: RowRun): void {
  const { tokens, from = 0, to = tokens.length, position = 0, slot, source = slot, scales } = run;
  const { wanted = WANTED.nothing, wantedRows = 1, offsets } = run;
  const start = step.count, end = start + to - from;
  for (let row = start; row < end; row++) {
    step.tokens[row] = tokens[from + row - start]!;
    step.positions[row] = position + row - start;
  }
  for (let axis = 0; axis < AXES; axis++) {
    const column = step.offsets[axis]!, given = offsets?.[axis];
    if (!given) column.fill(0, start, end);
    else for (let row = start; row < end; row++) column[row] = given[from + row - start]!;
  }
  step.slots.fill(slot, start, end);
  step.sources.fill(source, start, end);
  step.types.fill(0, start, end);
  step.wanted.fill(WANTED.nothing, start, end - wantedRows);
  step.wanted.fill(wanted, Math.max(start, end - wantedRows), end);
  step.scales.forEach((column, adapter) => column.fill(scales?.[adapter] ?? 0, start, end));
  step.count = end;
}
