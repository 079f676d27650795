// `troodon doctor` for a page: every kernel of a device against its scalar reference, on the visitor's own machine, as a text
// to copy into a report.

import { describeCapabilities } from "./machine_facts.ts";
import { checkKernels } from "../../run/kernel_checks.ts";
import { createGpuBackend } from "../../run/gpu/backend.ts";
import { createWasmBackend } from "../../run/wasm/backend.ts";

/**
 * How kernels are checked.
 * @category Browser
 */
export interface KernelReportOptions {
  /** Whose kernels. */
  readonly device: "wasm" | "gpu";
  /** Only these ops; default: all. */
  readonly ops?: readonly string[];
  /** Called after each case, with the share that is done. */
  readonly onProgress?: (done: number) => void;
}

/**
 * What was found.
 * @category Browser
 */
export interface KernelReport {
  /** Cases whose results are the reference's. */
  readonly passed: number;
  /** Cases whose results are not. */
  readonly failed: number;
  /** Cases that the device cannot take. */
  readonly skipped: number;
  /** Everything, for people. */
  readonly text: string;
}

/**
 * Checks. @throws {DeviceError} If there is no such device.
 *
 * @example
 * ```ts ignore
 * import { kernelReport } from "troodon/browser";
 *
 * const { failed, text } = await kernelReport({ device: "gpu", ops: ["matmul"] });
 * console.log(failed, text);
 * ```
 * @category Browser
 */
export async function kernelReport(
  { device, ops, onProgress }: KernelReportOptions,
): Promise<KernelReport> {
  const backend = device === "gpu" ? createGpuBackend({}) : createWasmBackend({});
  const counts = { passed: 0, failed: 0, skipped: 0 };
  const failures: string[] = [];
  const kernels = new Set<string>();
  for await (const check of checkKernels(backend, ops ? { ops } : {})) {
    counts[check.outcome]++;
    kernels.add(check.kernel);
    if (check.outcome === "failed") {
      failures.push(`${check.kernel}, ${check.case}: ${check.reason}`);
    }
    if (check.done !== undefined) onProgress?.(check.done);
  }
  const text = [
    ...await describeCapabilities(),
    `device ${device}: ${kernels.size} kernels, cases: ${counts.passed} passed, ` +
    `${counts.failed} failed, ${counts.skipped} skipped`,
    ...failures,
  ].join("\n");
  return { ...counts, text };
}
