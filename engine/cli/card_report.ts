// `troodon doctor --report FILE`: what a card is and how it does, for those who have none like it. Adapter and limits as
// its driver gives them, what the engine makes of them, and of each kernel the verdict and how long its largest case takes.
// Nothing in it names a user, a path or a host.

import { type Gpu, openGpu } from "../../gpu/gpu.ts";
import type { GpuProvider } from "../../gpu/capabilities.ts";
import type { KernelSpeed } from "../run/gpu/kernel_speed.ts";
import { runtimeVersion } from "../io.ts";
import type { CheckedPart, KernelHealth } from "./kernel_health.ts";
import { machineFacts, writeText } from "./machine.ts";
import type { Terminal } from "./terminal.ts";

/** Of the form of reports. */
const VERSION = 1;
/** Kernels that are not timed by then are not. */
const TIMING_MS = 12_000;

/** What doctor has found out. */
export interface CardFindings {
  readonly report: { readonly simd: unknown; readonly adapter: unknown };
  readonly kernels: readonly KernelHealth[];
  readonly checks: readonly CheckedPart[];
  readonly provider: GpuProvider | undefined;
  /** Who gives the GPU, as `--gpu` says it; undefined: the runtime. */
  readonly from: string | undefined;
  readonly terminal: Pick<Terminal, "err">;
}

/** Times the kernels and writes the report. @throws {SourceError} If the file cannot be written. */
export async function writeCardReport(file: string, findings: CardFindings): Promise<void> {
  const { report, kernels, checks, provider, from, terminal } = findings;
  const isGpu = checks.some(({ device }) => device === "gpu");
  const gpu = isGpu ? await openGpu(provider ? { provider } : {}) : undefined;
  const speeds = gpu && await speedsOf(gpu, { kernels, terminal });
  const content = {
    report: VERSION,
    ...{ runtime: runtimeVersion(), machine: machineFacts(), simd: report.simd },
    gpu: gpu && {
      provider: from === undefined ? "built-in" : from === "dawn" ? "dawn" : "dawn.node",
      adapter: report.adapter,
      capabilities: gpu.capabilities,
      limits: limitsOf(gpu.device.limits),
    },
    checks,
    kernels: kernels.map(({ kernel, op, passed, failed, skipped, reason }) => ({
      ...{ kernel, op, verdict: failed > 0 ? "failed" : passed > 0 ? "ok" : "not here" },
      ...{ passed, failed, skipped, reason },
      ...speedOf(speeds?.get(kernel)),
    })),
  };
  gpu?.dispose();
  await writeText(file, JSON.stringify(content, undefined, 2) + "\n");
  terminal.err(`${file}: ${kernels.length} kernels, ${speeds?.size ?? 0} of them timed\n`);
}

function speedOf(speed: KernelSpeed | undefined) {
  return speed && { microseconds: speed.microseconds, timedOn: speed.case };
}

async function speedsOf(
  gpu: Gpu,
  { kernels, terminal }: Pick<CardFindings, "kernels" | "terminal">,
): Promise<Map<string, KernelSpeed>> {
  const speeds = new Map<string, KernelSpeed>();
  if (!gpu.capabilities.timestamp) {
    terminal.err("The adapter has no timestamps: kernels are not timed.\n");
    return speeds;
  }
  terminal.err("Timing the kernels.\n");
  const { createGpuBackend } = await import("../run/gpu/backend.ts");
  const { timeKernels } = await import("../run/gpu/kernel_speed.ts");
  const right = new Set(
    kernels.filter(({ passed, failed }) => passed > 0 && failed === 0).map(({ kernel }) => kernel),
  );
  const end = performance.now() + TIMING_MS;
  for await (const speed of timeKernels(createGpuBackend({ gpu }), (name) => right.has(name))) {
    speeds.set(speed.kernel, speed);
    if (performance.now() > end) break;
  }
  return speeds;
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
