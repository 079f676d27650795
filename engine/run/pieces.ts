// Runs in pieces: of a list of items as many at a time as take no longer than asked (pacer.ts), with a turn of the event
// loop between two pieces, in which timers, messages and signals are heard.

import type { DimEnv } from "../graph/dim/mod.ts";
import { pause } from "../pause.ts";
import { Pacer } from "./pacer.ts";

/** Milliseconds of a piece of a run that may be stopped, and of runs one behind the other without a turn. */
const HEARS_MS = 50;
/** When this thread last had a turn that is known of, and when its last piece ended. */
const thread = { turnAt: 0, endAt: 0 };

/** Whether so many milliseconds are over in which runs have followed each other without a turn. */
function isDue(ms: number): boolean {
  const now = performance.now();
  // Whoever does something else for so long has turns of his own.
  if (now - thread.endAt > HEARS_MS) thread.turnAt = now;
  return now - thread.turnAt >= ms;
}

/** What is run in pieces. */
export interface PiecedWork {
  /** Items in all. */
  readonly count: number;
  /** Runs some of them; they are run in order. */
  readonly run: (
    bindings: DimEnv,
    range: { readonly first: number; readonly count: number },
  ) => void;
}

/** Runs all items; a promise where one piece does not hold them. */
export type PiecedRun = (bindings: DimEnv, signal?: AbortSignal) => void | Promise<void>;

/**
 * Makes the function that runs work in pieces.
 *
 * @param maxMs Milliseconds of a piece, behind each of which there is a turn. Default: what suits runs that may be
 *   stopped, which are cut only where they take longer; until that is known, turns come by the clock.
 */
export function createPieces({ count: total, run }: PiecedWork, maxMs?: number): PiecedRun {
  const pacer = new Pacer(maxMs ?? HEARS_MS), whole = { first: 0, count: total };
  const isPaced = maxMs !== undefined, patience = isPaced ? 0 : HEARS_MS / 2;
  /** Sizes at which a run is one piece; those with smaller ones are, too. */
  let short: DimEnv | undefined;

  function runPiece(bindings: DimEnv, range: { readonly first: number; readonly count: number }) {
    const start = performance.now();
    run(bindings, range);
    thread.endAt = performance.now();
    return thread.endAt - start;
  }

  function next(bindings: DimEnv, first: number): number {
    const count = pacer.take(first), ms = runPiece(bindings, { first, count });
    pacer.took(first, { count, ms });
    return first + count;
  }

  async function hear(signal: AbortSignal | undefined): Promise<void> {
    await pause();
    thread.turnAt = performance.now();
    signal?.throwIfAborted();
  }

  async function runOn(bindings: DimEnv, from: number, signal: AbortSignal | undefined) {
    for (let first = from; first < total; first = next(bindings, first)) {
      if (isDue(patience)) await hear(signal);
    }
    noteShort(bindings);
  }

  function noteShort(bindings: DimEnv): void {
    if (!isPaced && pacer.take(0) === total) short = { ...bindings };
  }

  function start(bindings: DimEnv, signal: AbortSignal | undefined): void | Promise<void> {
    if (short && isWithin(bindings, short)) {
      if (runPiece(bindings, whole) > HEARS_MS) short = undefined;
      return;
    }
    pacer.begin(bindings, total);
    const first = next(bindings, 0);
    if (first < total) return runOn(bindings, first, signal);
    noteShort(bindings);
  }

  return (bindings, signal) => {
    if (isPaced || !isDue(patience)) return start(bindings, signal);
    return hear(signal).then(() => start(bindings, signal));
  };
}

function isWithin(bindings: DimEnv, most: DimEnv): boolean {
  for (const name in bindings) if (bindings[name]! > most[name]!) return false;
  return true;
}
