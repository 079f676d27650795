// What `troodon doctor` finds out about kernels.

import type { DeviceName } from "../run/backend.ts";

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
}
