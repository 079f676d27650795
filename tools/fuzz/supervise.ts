// Runs fuzz inputs in a worker and watches it from outside: an endless loop, a thread that dies and
// memory without bound are found here, with the number of the input that did it.

import type { FuzzOrder, FuzzReply } from "./worker.ts";

const MOST_FAILURES = 10;

/** An input that failed, and how. */
export interface Failure {
  readonly index: number;
  readonly message: string;
}

/**
 * Runs [from, to) in a worker; resolves with its failures, a hang being the last one.
 *
 * @param seconds Longest time for one input, or one try of it.
 */
export function runWorker(
  order: FuzzOrder,
  seconds: number,
  { note = () => {} }: { note?(message: string): void } = {},
): Promise<Failure[]> {
  const worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
  const failures: Failure[] = [];
  return new Promise((resolve) => {
    let last = "";
    let since = performance.now();
    const finish = (): void => {
      clearInterval(watch);
      worker.terminate();
      resolve(failures);
    };
    const watch = setInterval(() => {
      const index = Atomics.load(order.progress, 0);
      const state = order.progress.join();
      if (state !== last) [last, since] = [state, performance.now()];
      else if (performance.now() - since > seconds * 1000 + 2000 * Number(index < order.from)) {
        failures.push({ index, message: `no end after ${seconds} s` });
        finish();
      }
    }, 100);
    worker.onmessage = ({ data }: MessageEvent<FuzzReply>) => {
      if (data.kind === "done") return finish();
      if (data.kind === "note") return note(data.message);
      failures.push(data);
      if (failures.length >= MOST_FAILURES) finish();
    };
    worker.onerror = (event) => {
      event.preventDefault();
      const index = Atomics.load(order.progress, 0);
      failures.push({ index, message: `the worker died: ${event.message}` });
      finish();
    };
    worker.postMessage(order);
  });
}
