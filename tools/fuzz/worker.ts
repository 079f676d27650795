// Runs inputs one after the other in a thread of its own, because only from outside can an endless loop
// be noticed and ended. The number of the input at work lies in shared memory.

import { mutate } from "./mutate.ts";
import { badTargets, targets } from "./targets.ts";

/** What the worker is told. */
export interface FuzzOrder {
  readonly target: string;
  readonly seed: number;
  readonly from: number;
  readonly to: number;
  /** Bytes by which the process may grow. */
  readonly memory: number;
  /** [0] = index of the input at work. */
  readonly progress: Int32Array<SharedArrayBuffer>;
}

/** What it says: `failure` for an input, or `done`. */
export type FuzzReply =
  | { readonly kind: "failure"; readonly index: number; readonly message: string }
  | { readonly kind: "done" };

/** Runs inputs `from` to `to`; hands every failure to `report`. */
export async function runInputs(
  { target, seed, from, to, memory, progress }: FuzzOrder,
  report: (reply: FuzzReply) => void,
): Promise<void> {
  const { seeds, words, run } = (targets[target] ?? badTargets[target])!;
  const good = seeds();
  for (const input of good) await run(input); // A seed that fails makes every count worthless.
  const before = Deno.memoryUsage().rss;
  for (let index = from; index < to; index++) {
    Atomics.store(progress, 0, index);
    try {
      await run(mutate(good, words, seed, index));
    } catch (error) {
      const message = error instanceof Error ? error.stack ?? error.message : String(error);
      report({ kind: "failure", index, message });
    }
    const grown = Deno.memoryUsage().rss - before;
    if (grown > memory) {
      const message = `the process grew by ${(grown / 1e6).toFixed(0)} MB`;
      report({ kind: "failure", index, message });
      break;
    }
  }
  report({ kind: "done" });
}

const scope = globalThis as unknown as {
  onmessage: ((event: MessageEvent<FuzzOrder>) => void) | null;
  postMessage?(reply: FuzzReply): void;
};

if (typeof scope.postMessage === "function") {
  scope.onmessage = ({ data }) => runInputs(data, (reply) => scope.postMessage!(reply));
}
