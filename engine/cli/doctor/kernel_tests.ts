// The checks of `troodon doctor`: every kernel of a device on every case of its op, within a time, telling where it is.
// A driver may compile a shader for longer than anybody waits. Hence several processes, lines that say what they are at, also
// while nothing comes back, and an end that waits for none of them.

import type { KernelCheck } from "../../run/kernel_checks.ts";
import { kernelNames } from "../../run/kernel_choice.ts";
import { type CheckedPart, type KernelHealth, verdictOf } from "./kernel_health.ts";
import type { Terminal } from "../terminal.ts";

/** What is checked, and for how long. */
export interface KernelTestOptions {
  readonly device: "wasm" | "gpu";
  /** After so many no more is checked. */
  readonly seconds: number;
  readonly threads?: number | undefined;
  readonly seed?: number | undefined;
  /** Who gives the GPU. */
  readonly from: string | undefined;
  /** Hears how far it is; undefined: nobody. */
  readonly terminal: Pick<Terminal, "err" | "progress"> | undefined;
  /** Ends the checks, as the time does. */
  readonly signal: AbortSignal;
  /** Tells that the time is over; default: a timer. */
  readonly timer?: (ms: number) => AbortSignal;
  /** Processes and what they run; default: as many as pay. */
  readonly processes?: { readonly count: number; readonly url: URL };
}

/** What was found. */
export interface TestedKernels {
  /** All kernels of the device in the order of ops; of some nothing was checked. */
  readonly kernels: readonly KernelHealth[];
  readonly part: CheckedPart;
}

/** Every kernel of a device on every case of its op. @throws What `signal` is aborted with. */
export async function testKernels(
  { device, seconds, threads, seed, from, terminal, signal, ...more }: KernelTestOptions,
): Promise<TestedKernels> {
  const { processes, timer = AbortSignal.timeout } = more;
  const { checkInProcesses, processesFor } = await import("./kernel_processes.ts");
  const start = performance.now();
  const time = seconds === Infinity ? [] : [timer(1000 * seconds)];
  const count = processes?.count ?? processesFor(device);
  const progress = terminal && createCheckProgress(terminal, { device, count, seconds });
  const found = new Map<string, KernelHealth>();
  let done = 1;
  try {
    const stop = AbortSignal.any([signal, ...time]);
    done = await checkAll(
      checkInProcesses({ device, gpu: from, threads, seed }, {
        ...{ ...processes, count, stop },
        ...progress && { onBegin: progress.begin },
      }),
      // A thread that computes without a break hears of no timer.
      {
        found,
        onCheck: progress?.show,
        isOver: () => stop.aborted || performance.now() - start > 1000 * seconds,
      },
    );
  } finally {
    progress?.end();
  }
  signal.throwIfAborted();
  const spent = Math.round((performance.now() - start) / 100) / 10;
  const none = { passed: 0, failed: 0, skipped: 0, reason: undefined };
  const kernels = (await allKernels(device)).map(([op, kernel]) => (
    { ...none, ...found.get(kernel), kernel, op }
  ));
  const left = kernels.filter((health) => verdictOf(health) === "not reached").length;
  return { kernels, part: { device, done, seconds: spent, left } };
}

/** Counts what comes, until it is over; gives how much of it all that was. */
async function checkAll(
  checks: AsyncIterable<KernelCheck>,
  { found, onCheck, isOver }: {
    readonly found: Map<string, KernelHealth>;
    readonly onCheck: ((done: number) => void) | undefined;
    readonly isOver: () => boolean;
  },
): Promise<number> {
  let last = 0, isCut = false;
  for await (const { op, kernel, outcome, reason, case: name, done } of checks) {
    // Behind the kernel at which a process ended, what was left to it is not checked.
    if (done === undefined) isCut = true;
    else last = Math.max(last, done);
    onCheck?.(last);
    let health = found.get(kernel);
    if (!health) {
      health = { kernel, op, passed: 0, failed: 0, skipped: 0, reason: undefined };
      found.set(kernel, health);
    }
    health[outcome]++;
    if (outcome === "failed") health.reason ??= `${name}: ${reason}`;
    if (isOver()) return last;
  }
  return isCut || isOver() ? last : 1;
}

/** Ops and kernels of a device, sorted. */
async function allKernels(device: "wasm" | "gpu"): Promise<[op: string, kernel: string][]> {
  const table = device === "gpu"
    ? (await import("../../run/gpu/kernel_table.ts")).GPU_KERNELS
    : (await import("../../run/wasm/kernel_table.ts")).WASM_KERNELS;
  return Object.keys(table).sort().flatMap((op) =>
    kernelNames(table, op).sort().map((kernel): [string, string] => [op, kernel])
  );
}

const REDRAW_MS = 200;
const LINE_MS = 5000;

/** Says how far the checks are and what they are at: drawn over on a screen, a line now and then elsewhere. */
function createCheckProgress(
  terminal: Pick<Terminal, "err" | "progress">,
  { device, count, seconds }: Pick<KernelTestOptions, "device" | "seconds"> & {
    readonly count: number;
  },
) {
  const limit = seconds === Infinity ? "a minute or a few" : `at most ${seconds} s`;
  const processes = count > 1 ? ` in ${count} processes` : "";
  terminal.err(`Testing every kernel of ${device}${processes}: ${limit}; --quick leaves it out.\n`);
  const isScreen = terminal.progress, every = isScreen ? REDRAW_MS : LINE_MS;
  const start = performance.now(), underWay = new Map<number, string>();
  let checks = 0, share = 0, last = start;
  const spent = () => Math.round((performance.now() - start) / 1000);
  const draw = () => {
    if (performance.now() - last < every) return;
    last = performance.now();
    const at = [...new Set(underWay.values())].join(", ");
    const text = `${device}: ${Math.floor(share * 100)} %, ${checks} checks in ${spent()} s` +
      (at === "" ? ", nothing begun yet" : `, testing ${at}`);
    terminal.err(isScreen ? `\r\x1b[K${text.slice(0, 120)}` : `${text}\n`);
  };
  // Processes that wait for their drivers tell nothing.
  const timer = setInterval(draw, every);
  return {
    begin: (kernel: string, process: number) => void underWay.set(process, kernel),
    show(done: number): void {
      checks++;
      share = done;
      draw();
    },
    end(): void {
      clearInterval(timer);
      if (isScreen) terminal.err("\r\x1b[K");
      terminal.err(`${device}: ${checks} checks in ${spent()} s\n`);
    },
  };
}
