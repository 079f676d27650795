// Runs inputs one after the other in a thread of its own, because only from outside can an endless loop
// be noticed and ended. The number of the input at work lies in shared memory.

import { ResourceError } from "../../engine/errors.ts";
import type { DeviceName } from "../../engine/run/backend.ts";
import { mutate } from "./mutate.ts";
import { badTargets, targets } from "./targets.ts";

/** What the worker is told. */
export interface FuzzOrder {
  readonly target: string;
  readonly seed: number;
  readonly from: number;
  readonly to: number;
  /** Bytes by which what the thread holds may grow. */
  readonly memory: number;
  /** [0] = index of the input at work; [1] counts what is tried of it. */
  readonly progress: Int32Array<SharedArrayBuffer>;
  /** Of target `graphs`: where they run. */
  readonly device?: DeviceName | undefined;
  /** Of target `graphs`: folder for failing ones. */
  readonly out?: string | undefined;
}

/** What it says: `failure` for an input, `note` for what is no failure, or `done`. */
export type FuzzReply =
  | { readonly kind: "failure"; readonly index: number; readonly message: string }
  | { readonly kind: "note"; readonly message: string }
  | { readonly kind: "done" };

/** Runs inputs `from` to `to`; hands every failure to `report`. */
export async function runInputs(
  order: FuzzOrder,
  report: (reply: FuzzReply) => void,
): Promise<void> {
  const { target, seed, from, to, memory, progress } = order;
  if (target === "graphs") return await runGraphs(order, report);
  if (!Object.hasOwn({ ...targets, ...badTargets }, target)) return await runBeside(order, report);
  const { seeds, words, run } = (targets[target] ?? badTargets[target])!;
  const good = seeds();
  for (const input of good) await run(input); // A seed that fails makes every count worthless.
  const before = heldBytes();
  for (let index = from; index < to; index++) {
    Atomics.store(progress, 0, index);
    try {
      await run(mutate(good, words, seed, index));
    } catch (error) {
      const message = error instanceof Error ? error.stack ?? error.message : String(error);
      report({ kind: "failure", index, message });
    }
    const grown = heldBytes() - before;
    if (grown > memory) {
      const message = `what it holds grew by ${(grown / 1e6).toFixed(0)} MB`;
      report({ kind: "failure", index, message });
      break;
    }
  }
  report({ kind: "done" });
}

/** What this thread's JavaScript has taken; in tests other threads of the process take some, too. */
function heldBytes(): number {
  const { heapTotal, external } = Deno.memoryUsage();
  return heapTotal + external;
}

/** Inputs that are made, and judged by what Python says. */
async function runBeside(
  { target, seed, from, to, progress }: FuzzOrder,
  report: (reply: FuzzReply) => void,
): Promise<void> {
  const { besideInput, besideTargets, checkNeeds } = await import("./beside/targets.ts");
  const { endReferences } = await import("./beside/python.ts");
  let index = from;
  try {
    checkNeeds(target);
    for (; index < to; index++) {
      Atomics.store(progress, 0, index);
      try {
        await besideTargets[target]!.compare(besideInput(target, seed, index));
      } catch (error) {
        // Without a reference there is nothing to go on with.
        if (error instanceof ResourceError) throw error;
        report({ kind: "failure", index, message: (error as Error).message });
      }
    }
  } catch (error) {
    report({ kind: "failure", index, message: (error as Error).message });
  } finally {
    await endReferences();
  }
  report({ kind: "done" });
}

/** Graphs are made, not mutated, and judged by what others compute. */
async function runGraphs(order: FuzzOrder, report: (reply: FuzzReply) => void): Promise<void> {
  // Devices are loaded for this target alone.
  const { fuzzGraphs, PEER_REMEDY } = await import("./graphs/fuzz_graphs.ts");
  const { peer, alone } = await fuzzGraphs({
    ...order,
    tick(index) {
      Atomics.store(order.progress, 0, index);
      Atomics.add(order.progress, 1, 1);
    },
    failed: (index, message) => report({ kind: "failure", index, message }),
  });
  const refused = [...alone].map(([reason, count]) => `${reason} (${count})`).join(", ");
  report({
    kind: "note",
    message: peer === undefined
      ? `not compared with onnxruntime, which is missing: ${PEER_REMEDY}`
      : `compared with onnxruntime ${peer}; it does not run: ${refused || "nothing"}`,
  });
  report({ kind: "done" });
}

const scope = globalThis as unknown as {
  onmessage: ((event: MessageEvent<FuzzOrder>) => void) | null;
  postMessage?(reply: FuzzReply): void;
};

if (typeof scope.postMessage === "function") {
  scope.onmessage = ({ data }) => runInputs(data, (reply) => scope.postMessage!(reply));
}
