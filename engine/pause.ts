// Lets timers, I/O and other generations run between two steps. A step keeps the thread for
// milliseconds and awaiting a settled promise does not let events through, so an AbortSignal that fires
// from a timer or a closed connection would never be seen. setImmediate costs 11 µs a turn in Deno, a zero
// timeout 2 ms.
// A loop of immediates never leaves the runtime idle, and then it asks for signals of the system and for
// sockets only every 61st turn: steps of half a second made Ctrl-C wait for half a minute. So now and then a turn
// waits for another thread, a fifth of a millisecond: whatever that does, the runtime has nothing else to do. What cannot
// wait so long, as a worker's messages, is asked for at each turn by who was given to `atEachTurn`.

import type { Steps } from "../quant/steps.ts";

type Immediate = (callback: () => void) => unknown;

// Milliseconds of turns without a wait.
const LONGEST = 200;
const turns: {
  at: number;
  idleAt: number;
  idle: Promise<void> | undefined;
  poll: (() => void) | undefined;
} = { at: 0, idleAt: 0, idle: undefined, poll: undefined };
// Long enough to digest that the runtime falls idle before.
const DIGESTED = new Uint8Array(1 << 16);

/** Resolves after pending events have been served. */
export async function pause(): Promise<void> {
  const immediate = (globalThis as { setImmediate?: Immediate }).setImmediate;
  if (immediate && (turns.idle || performance.now() - turns.idleAt >= LONGEST)) {
    await (turns.idle ??= fallIdle());
  }
  await new Promise<void>((resolve) =>
    immediate ? void immediate(resolve) : void setTimeout(resolve, 0)
  );
  turns.poll?.();
  turns.at = performance.now();
}

/** When somebody's `pause` last let events through, by `performance.now()`. */
export function turnedAt(): number {
  return turns.at;
}

/** All wait for it: while some went on, nothing would be idle, and whoever waited alone would be left behind. */
async function fallIdle(): Promise<void> {
  await crypto.subtle.digest("SHA-1", DIGESTED);
  turns.idleAt = performance.now();
  turns.idle = undefined;
}

/** Has a function called in each turn of this thread's `pause`, before who waits goes on; it must not throw. */
export function atEachTurn(poll: (() => void) | undefined): void {
  turns.poll = poll;
}

// Milliseconds of steps between two turns.
const LONGEST_RUN = 20;

/** Whether what was thrown says that a signal has fired. */
export function isReasonOf(signal: AbortSignal, error: unknown): boolean {
  return signal.aborted && error === signal.reason;
}

/**
 * What a loop of short steps calls in front of each of them: it lets events through when it is time, and then there is a
 * promise. Throws, or rejects with, the signal's reason.
 */
export function createTurns(signal?: AbortSignal): () => Promise<void> | undefined {
  let turnAt = performance.now();
  async function turn(): Promise<void> {
    await pause();
    signal?.throwIfAborted();
    turnAt = performance.now();
  }
  return () => {
    signal?.throwIfAborted();
    return performance.now() - turnAt < LONGEST_RUN ? undefined : turn();
  };
}

/**
 * Runs work in steps, and lets events through between them.
 *
 * @param signal Stops between two steps, with its reason.
 */
export async function runSteps<T>(steps: Steps<T>, signal?: AbortSignal): Promise<T> {
  const turns = createTurns(signal);
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
    const turn = turns();
    if (turn) await turn;
  }
}
