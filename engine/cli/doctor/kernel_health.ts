// What `troodon doctor` finds out about kernels.

import type { DeviceName } from "../../run/backend.ts";

/** What doctor found about one kernel, over all its cases. */
export interface KernelHealth {
  readonly kernel: string;
  readonly op: string;
  passed: number;
  failed: number;
  skipped: number;
  /** First failure. */
  reason: string | undefined;
}

/** How much of a device's checks was done. */
export interface CheckedPart {
  readonly device: DeviceName;
  /** 1: all. */
  readonly done: number;
  readonly seconds: number;
  /** Kernels of which nothing was checked when the time was over. */
  readonly left: number;
}

/** What is to be said where not all was done. */
export function partLine({ device, done, seconds, left }: CheckedPart): string {
  const some = left === 0 ? "of every kernel some" : `nothing of ${left} kernels`;
  return `${Math.floor(100 * done)} % of the checks of ${device} in ${seconds} s, ${some}: ` +
    "--seconds N goes on for longer.";
}

/** What is to be said of a kernel: `not here` takes no case on this device, `not reached` was left when the time was over. */
export function verdictOf(
  { passed, failed, skipped }: Pick<KernelHealth, "passed" | "failed" | "skipped">,
): "failed" | "ok" | "not here" | "not reached" {
  if (failed > 0) return "failed";
  if (passed > 0) return "ok";
  return skipped > 0 ? "not here" : "not reached";
}
