// Checks of kernels in several workers at once.

import { mayReadModule } from "../../io.ts";
import type { KernelCheck } from "../../run/kernel_checks.ts";
import { checkShare, type KernelNews, type KernelShare } from "./kernel_worker.ts";

/** A card's driver compiles in as many threads as ask it; more than this gain little and take memory. */
const MOST_WORKERS = 8;

const WORKER = new URL("./kernel_worker.ts", import.meta.url);

/** Workers that pay: kernels of WASM are compiled already, and use all threads by themselves. */
export function workersFor(
  device: "wasm" | "gpu",
  threads = navigator.hardwareConcurrency,
): number {
  return device === "wasm" ? 1 : Math.max(1, Math.min(MOST_WORKERS, threads >> 1));
}

/** How kernels are checked by several workers. */
export interface WorkersOptions {
  readonly count: number;
  /** Ends the checks, also while every worker waits for its driver. */
  readonly stop?: AbortSignal | undefined;
  /** Hears what workers are about to check, by worker. */
  readonly onBegin?: (kernel: string, worker: number) => void;
  /** Code of a worker. */
  readonly url?: URL;
}

/**
 * Checks all kernels of a device; what comes first is told first.
 *
 * @throws {Error} What ended a worker's check.
 */
export async function* checkInWorkers(
  asked: Omit<KernelShare, "share">,
  { count, stop, onBegin, url = WORKER }: WorkersOptions,
): AsyncGenerator<KernelCheck> {
  if (count === 1 || !mayReadModule(url)) {
    const begins = (kernel: string) => onBegin?.(kernel, 0);
    for await (const check of checkShare({ ...asked, share: { index: 0, of: 1 } }, begins)) {
      yield check;
      if (stop?.aborted) return;
    }
    return;
  }
  const news: KernelNews[] = [];
  let wake = () => {};
  const tell = (one: KernelNews) => {
    news.push(one);
    wake();
  };
  const onStop = () => wake();
  stop?.addEventListener("abort", onStop);
  const workers = Array.from({ length: count }, (_, index) => {
    const worker = new Worker(url, { type: "module" });
    worker.onmessage = ({ data }: MessageEvent<KernelNews>) => {
      if (typeof data === "object" && "begins" in data) onBegin?.(data.begins, index);
      else tell(data);
    };
    worker.onerror = (event) => {
      event.preventDefault();
      tell({ error: event.message });
    };
    worker.postMessage({ ...asked, share: { index, of: count } } satisfies KernelShare);
    return worker;
  });
  try {
    for (let left = count; left > 0 && !stop?.aborted;) {
      if (news.length === 0) {
        const { promise, resolve } = Promise.withResolvers<void>();
        wake = resolve;
        await promise;
        continue;
      }
      const one = news.shift()!;
      if (one === "done") left--;
      else if ("error" in one) throw new Error(one.error);
      else if ("check" in one) yield one.check;
    }
  } finally {
    stop?.removeEventListener("abort", onStop);
    for (const worker of workers) worker.terminate();
  }
}
