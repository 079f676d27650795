// `troodon doctor --report FILE`: what a card is and how it does, for those who have none like it. Adapter and limits as
// its driver gives them, what the engine makes of them, and of each kernel the verdict and how long its largest case takes.
// Nothing in it names a user, a path or a host.

import { type Gpu, openGpu } from "../../../gpu/gpu.ts";
import type { GpuProvider } from "../../../gpu/capabilities.ts";
import type { KernelSpeed } from "../../run/gpu/kernel_speed.ts";
import { runtimeVersion } from "../../io.ts";
import { type CheckedPart, type KernelHealth, verdictOf } from "./kernel_health.ts";
import { machineFacts, writeText } from "../machine.ts";

/** Of the form of reports. */
const VERSION = 1;
/** Timing takes no longer, whatever time there is. */
const MOST_TIMING = 12;

/** What doctor has found out. */
export interface CardFindings {
  readonly report: { readonly simd: unknown; readonly adapter: unknown };
  readonly kernels: readonly KernelHealth[];
  readonly checks: readonly CheckedPart[];
  readonly provider: GpuProvider | undefined;
  /** Who gives the GPU, as `--gpu` says it; undefined: the runtime. */
  readonly from: string | undefined;
  /** For timing. */
  readonly seconds: number;
  /** Tells the user. */
  readonly say: (what: string) => void;
  /** What the process runs that times; default: `kernel_process.ts`. */
  readonly url?: URL;
  /** Tells that the time is over; default: a timer. */
  readonly timer?: (ms: number) => AbortSignal;
  /** Milliseconds from line to line of how far timing is; default 5000. */
  readonly everyMs?: number;
}

/**
 * Writes the report, times the kernels, and writes it again with their times: what ends the process meanwhile leaves the
 * verdicts. @throws {SourceError} If the file cannot be written.
 */
export async function writeCardReport(file: string, findings: CardFindings): Promise<void> {
  const { report, kernels, checks, provider, from, say } = findings;
  const isGpu = checks.some(({ device }) => device === "gpu");
  const gpu = isGpu ? await openGpu(provider ? { provider } : {}) : undefined;
  const write = (speeds: ReadonlyMap<string, KernelSpeed>) =>
    writeText(
      file,
      JSON.stringify(
        {
          report: VERSION,
          ...{ runtime: runtimeVersion(), machine: machineFacts(), simd: report.simd },
          gpu: gpu && {
            provider: from === undefined ? "built-in" : from === "dawn" ? "dawn" : "dawn.node",
            adapter: report.adapter,
            capabilities: gpu.capabilities,
            limits: limitsOf(gpu.device.limits),
          },
          checks,
          kernels: kernels.map((health) => {
            const { kernel, op, passed, failed, skipped, reason } = health;
            const verdict = verdictOf(health);
            const counts = { passed, failed, skipped, reason };
            return { kernel, op, verdict, ...counts, ...speedOf(speeds.get(kernel)) };
          }),
        },
        undefined,
        2,
      ) + "\n",
    );
  const speeds = new Map<string, KernelSpeed>();
  await write(speeds);
  if (gpu) await timeAll(gpu, { ...findings, speeds });
  await write(speeds);
  gpu?.dispose();
  say(`${file}: ${kernels.length} kernels, ${speeds.size} of them timed`);
}

function speedOf(speed: KernelSpeed | undefined) {
  return speed && { microseconds: speed.microseconds, timedOn: speed.case };
}

/** Times what is right, until the time is over, also where a driver does not come back. */
async function timeAll(
  gpu: Gpu,
  findings: Omit<CardFindings, "report" | "checks" | "provider"> & {
    readonly speeds: Map<string, KernelSpeed>;
  },
): Promise<void> {
  const { kernels, from, seconds, say, speeds, url } = findings;
  const { timer = AbortSignal.timeout, everyMs = 5000 } = findings;
  if (!gpu.capabilities.timestamp) {
    return say("The adapter has no timestamps: kernels are not timed.");
  }
  const limit = Math.min(MOST_TIMING, seconds);
  say(`Timing the kernels: at most ${Math.round(limit)} s.`);
  const { timeInProcess } = await import("./kernel_processes.ts");
  const timed = kernels.filter((health) => verdictOf(health) === "ok").map(({ kernel }) => kernel);
  const stop = timer(1000 * limit);
  let at: string | undefined;
  const onBegin = (kernel: string) => void (at = kernel);
  const lines = setInterval(
    () => say(`${speeds.size} of ${timed.length} timed${at === undefined ? "" : `, now ${at}`}`),
    everyMs,
  );
  try {
    const all = timeInProcess({ gpu: from, timed }, { stop, onBegin, url });
    for await (const speed of all) speeds.set(speed.kernel, speed);
  } finally {
    clearInterval(lines);
  }
  if (stop.aborted && at !== undefined && !speeds.has(at)) say(`The time was over at ${at}.`);
}

/** The limits of a device; they are getters of its class, or its own. */
function limitsOf(limits: GPUSupportedLimits): Record<string, number> {
  const names = new Set<string>();
  for (
    let at: object | null = limits;
    at && at !== Object.prototype;
    at = Object.getPrototypeOf(at)
  ) {
    for (const name of Object.getOwnPropertyNames(at)) names.add(name);
  }
  const all = limits as unknown as Record<string, unknown>;
  return Object.fromEntries(
    [...names].sort().flatMap((name) => {
      const value = all[name];
      return typeof value === "number" ? [[name, value] as const] : [];
    }),
  );
}
