// Kernels checked in several processes at once, and timed in one, which nobody waits for longer than he likes: compiling
// shaders is what takes the time on a GPU, a thread compiles one after the other, and a driver may hold whoever asks it, or
// bring him down. A thread that is cut off within a driver takes its process along; a process can be killed at any time.

import type { KernelCheck } from "../../run/kernel_checks.ts";
import type { KernelSpeed } from "../../run/gpu/kernel_speed.ts";
import { mayStartModules, type ModuleProcess, startModule } from "../machine.ts";
import {
  checkShare,
  type KernelNews,
  type KernelShare,
  type KernelTiming,
  timeThese,
} from "./kernel_share.ts";

/** A card's driver compiles for as many as ask it; more than this gain little and take memory. */
const MOST_PROCESSES = 8;

const MODULE = new URL("./kernel_process.ts", import.meta.url);

/** Processes that pay; none: kernels of WASM are compiled already, and use all threads by themselves. */
export function processesFor(
  device: "wasm" | "gpu",
  threads = navigator.hardwareConcurrency,
): number {
  return device === "wasm" ? 0 : Math.max(1, Math.min(MOST_PROCESSES, threads >> 1));
}

/** How processes work. */
export interface ProcessOptions {
  /** Ends the work, also while every process waits for its driver. */
  readonly stop?: AbortSignal | undefined;
  /** Hears what processes begin with, by process. */
  readonly onBegin?: ((kernel: string, process: number) => void) | undefined;
  /** What a process runs. */
  readonly url?: URL | undefined;
}

/**
 * Checks all kernels of a device, in this thread where there are to be no processes or Deno may start none; what comes first
 * is told first.
 *
 * A kernel at which a driver ends a process has failed, and what was left of that share is not checked.
 *
 * @throws {Error} What a process threw.
 */
export async function* checkInProcesses(
  asked: Omit<KernelShare, "share">,
  { count, ...options }: ProcessOptions & { readonly count: number },
): AsyncGenerator<KernelCheck> {
  const { stop, onBegin } = options;
  if (count === 0 || !mayStartModules()) {
    const begins = (kernel: string) => onBegin?.(kernel, 0);
    yield* until(stop, checkShare({ ...asked, share: { index: 0, of: 1 } }, begins));
    return;
  }
  const shares = Array.from({ length: count }, (_, index) => (
    { ...asked, share: { index, of: count } }
  ));
  for await (const news of newsOf(shares, options)) if ("check" in news) yield news.check;
}

/** Times kernels in a process. @throws {Error} What ended it. */
export async function* timeInProcess(
  asked: KernelTiming,
  options: ProcessOptions,
): AsyncGenerator<KernelSpeed> {
  const { stop, onBegin } = options;
  if (!mayStartModules()) {
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

/** What a process for each order tells. */
async function* newsOf(
  orders: readonly (KernelShare | KernelTiming)[],
  { stop, onBegin, url = MODULE }: ProcessOptions,
): AsyncGenerator<Exclude<KernelNews, string>> {
  const news: KernelNews[] = [];
  let wake = () => {};
  const tell = (one: KernelNews) => {
    news.push(one);
    wake();
  };
  const onStop = () => wake();
  stop?.addEventListener("abort", onStop);
  using processes = new DisposableStack();
  try {
    for (const [index, order] of orders.entries()) {
      const process = processes.use(startModule(url, JSON.stringify(order)));
      void listen(process, { tell, onBegin: (kernel) => onBegin?.(kernel, index) });
    }
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
  }
}

/** Hands over what a process tells, also at what it has ended before it was done; what it ends with afterwards is nobody's. */
async function listen(
  { lines }: ModuleProcess,
  { tell, onBegin }: {
    readonly tell: (news: KernelNews) => void;
    readonly onBegin: (kernel: string) => void;
  },
): Promise<void> {
  let at: string | undefined;
  for await (const line of lines) {
    const one = JSON.parse(line) as KernelNews;
    if (one === "done") return tell(one);
    if ("begins" in one) onBegin(at = one.begins);
    else tell(one);
  }
  if (at === undefined) {
    return tell({ error: "a process for checks ended before its first kernel" });
  }
  const reason = "the process that ran it ended there, by its driver or for want of memory";
  tell({ check: { op: "", kernel: at, case: "one of its cases", outcome: "failed", reason } });
  tell("done");
}
