// Lets contenders take turns: starts their processes, measures each in every round, the order changing with the round, and
// ends them.

import type { Runner } from "../support/runner.ts";
import type { Contender, Samples } from "./case.ts";

/** A peer whose turn took longer takes part in so many rounds only. */
const SLOW = { ms: 60_000, rounds: 2 };
/** The same of one that is far behind anyway; a first turn as long as `longMs` is no warming up any more, and counts. */
export const FAR = { ms: 4_000, rounds: 1, longMs: 15_000 };

type Changes = Parameters<Contender["start"]>[0];
/** Takes the value of one turn. */
export type Measure = (runner: Runner, contender: Contender) => Promise<number>;

interface Running {
  readonly contender: Contender;
  readonly runner: Runner;
  readonly values: number[];
  /** Rounds that are left to it. */
  left: number;
}

/** Values of every contender in every round, the order changing with the round. */
export async function alternate(
  contenders: readonly Contender[],
  { rounds, ...changes }: Changes & { readonly rounds: number },
  measure: Measure,
): Promise<Samples> {
  let running: Running[] = [];
  try {
    for (const contender of contenders) {
      const runner = await attempt(contender, () => contender.start(changes));
      if (runner) running.push({ contender, runner, values: [], left: rounds });
    }
    for (let round = -1; round < rounds; round++) {
      for (const one of round % 2 ? running.toReversed() : running) {
        const { contender, runner, values } = one;
        if (one.left === 0) continue;
        const start = performance.now();
        const value = await attempt(contender, () => measure(runner, contender));
        const ms = performance.now() - start;
        const isWarm = round >= 0 || (contender.peer?.isFarBehind && ms > FAR.longMs);
        const limit = contender.peer?.isFarBehind ? FAR : SLOW;
        if (contender.peer && ms > limit.ms) {
          one.left = Math.max(0, Math.min(one.left, limit.rounds - values.length));
        }
        if (value === undefined) {
          running = running.filter((other) => other !== one);
          runner.close().catch(() => {}); // Its process may have ended by itself.
        } else if (isWarm) {
          values.push(value);
          one.left--;
        }
      }
    }
  } finally {
    for (const { runner } of running) await runner.close();
  }
  return new Map(running.map(({ contender, values }) => [contender, values]));
}

/** A peer that fails is named and takes no further part in the case; this engine must not fail. */
export async function attempt<T>(
  { name, peer }: Contender,
  work: () => Promise<T>,
): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    if (!peer) throw error;
    console.error(`failed: ${name}, ${(error as Error).message}`);
    return undefined;
  }
}
