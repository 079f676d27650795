// Whether work grows with its input as it should, told without a clock: one input sixteen times as long beside
// sixteen short ones, in turns. Linear work takes as long either way, quadratic work sixteen times as long. Times are
// those that this thread had a processor (thread_time.ts), and a try that is good ends it, so that a busy machine
// cannot fail what is right.

import { assert } from "@std/assert";
import { threadMs } from "./thread_time.ts";

const TIMES = 16;
const TRIES = 5;
const LEAST_MS = 100;
const MOST_ROUNDS = 1024;
/** Caches make long inputs somewhat slower; the square root of what quadratic work gives. */
const MOST = 4;

function msOf(run: () => void): number {
  const start = threadMs();
  run();
  return threadMs() - start;
}

/**
 * Runs work on inputs of a size and of sixteen times that size.
 *
 * @param work Is to take some milliseconds at `size`. Where it keeps what it has seen, short inputs are to be the
 * parts of the long one that begin at `from`.
 */
export function assertLinear(
  what: string,
  size: number,
  work: (size: number, from: number) => void,
): void {
  const short = (rounds: number) =>
    msOf(() => {
      for (let i = 0; i < TIMES * rounds; i++) work(size, i % TIMES * size);
    });
  work(size, 0); // compiled
  // The system counts a thread's time in ticks of up to 10 ms: work of less is done more often.
  let rounds = 1, least = short(rounds);
  while (rounds < MOST_ROUNDS && least < LEAST_MS) least = short(rounds *= 2);
  let most = Infinity;
  for (let tries = 0; tries < TRIES && !(most < MOST * least); tries++) {
    if (tries > 0) least = Math.min(least, short(rounds));
    most = Math.min(
      most,
      msOf(() => {
        for (let i = 0; i < rounds; i++) work(TIMES * size, 0);
      }),
    );
  }
  assert(most < MOST * least, `${what}: ${TIMES} short ones ${least} ms, one long one ${most} ms`);
}
