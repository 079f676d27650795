// Kernels checked in several workers at once, and timed in one, which nobody waits for longer than he likes.

import { mayReadModule } from "../../io.ts";
import type { KernelCheck } from "../../run/kernel_checks.ts";
import type { KernelSpeed } from "../../run/gpu/kernel_speed.ts";
import {
  checkShare,
  type KernelNews,
  type KernelShare,
  type KernelTiming,
  timeThese,
} from "./kernel_worker.ts";

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

/** How workers work. */
export interface WorkersOptions {
  /** Ends the work, also while every worker waits for its driver. */
  readonly stop?: AbortSignal | undefined;
  /** Hears what workers begin with, by worker. */
  readonly onBegin?: ((kernel: string, worker: number) => void) | undefined;
  /** Code of a worker. */
  readonly url?: URL | undefined;
  /** Milliseconds that workers have behind `stop` for what they are at; default 6000, longer than most compilations. */
  readonly graceMs?: number | undefined;
}

/**
 * Checks all kernels of a device; what comes first is told first.
 *
 * @throws {Error} What ended a worker's check.
 */
export async function* checkInWorkers(
  asked: Omit<KernelShare, "share">,
  { count, ...options }: WorkersOptions & { readonly count: number },
): AsyncGenerator<KernelCheck> {
  const { stop, onBegin, url = WORKER } = options;
  if (count === 1 || !mayReadModule(url)) {
    const begins = (kernel: string) => onBegin?.(kernel, 0);
    yield* until(stop, checkShare({ ...asked, share: { index: 0, of: 1 } }, begins));
    return;
  }
  const shares = Array.from({ length: count }, (_, index) => (
    { ...asked, share: { index, of: count } }
  ));
  for await (const news of newsOf(shares, options)) if ("check" in news) yield news.check;
}

/** Times kernels in a worker. @throws {Error} What ended it. */
export async function* timeInWorker(
  asked: KernelTiming,
  options: WorkersOptions,
): AsyncGenerator<KernelSpeed> {
  const { stop, onBegin, url = WORKER } = options;
  if (!mayReadModule(url)) {
    yield* until(stop, timeThese(asked, (kernel) => onBegin?.(kernel, 0)));
    return;
  }
  for await (const news of newsOf([asked], options)) if ("speed" in news) yield news.speed;
}

/** What comes before the end. */
async function* until<T>(stop: AbortSignal | undefined, all: AsyncIterable<T>): AsyncGenerator<T> {
  for await (const one of all) {
    yield one;
    if (stop?.aborted) return;
  }
}

/** What a worker for each order tells. */
async function* newsOf(
  orders: readonly (KernelShare | KernelTiming)[],
  { stop, onBegin, url = WORKER, graceMs = 6000 }: WorkersOptions,
): AsyncGenerator<Exclude<KernelNews, string>> {
  const news: KernelNews[] = [];
  const { promise: allDone, resolve: tellAllDone } = Promise.withResolvers<void>();
  let working = orders.length;
  let wake = () => {};
  const tell = (one: KernelNews) => {
    news.push(one);
    wake();
  };
  const onStop = () => wake();
  stop?.addEventListener("abort", onStop);
  const workers = orders.map((order, index) => {
    const worker = new Worker(url, { type: "module" });
    worker.onmessage = ({ data }: MessageEvent<KernelNews>) => {
      if (typeof data === "object" && "begins" in data) return void onBegin?.(data.begins, index);
      if (data === "done" && --working === 0) tellAllDone();
      tell(data);
    };
    worker.onerror = (event) => {
      event.preventDefault();
      tell({ error: event.message });
    };
    worker.postMessage(order);
    return worker;
  });
  try {
    for (let left = orders.length; left > 0 && !stop?.aborted;) {
      if (news.length === 0) {
        const { promise, resolve } = Promise.withResolvers<void>();
        wake = resolve;
        await promise;
        continue;
      }
      const one = news.shift()!;
      if (one === "done") left--;
      else if ("error" in one) throw new Error(one.error);
      else yield one;
    }
  } finally {
    stop?.removeEventListener("abort", onStop);
    if (stop?.aborted) await leave(workers, { allDone, graceMs });
    for (const worker of workers) worker.terminate();
  }
}

/** Lets workers end what they are at: a thread that is cut off within its driver may keep what others wait for. */
async function leave(
  workers: readonly Worker[],
  { allDone, graceMs }: { readonly allDone: Promise<void>; readonly graceMs: number },
): Promise<void> {
  for (const worker of workers) worker.postMessage("stop");
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, graceMs);
  await Promise.race([allDone, promise]);
  clearTimeout(timer);
}
