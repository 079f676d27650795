// Runs cases of ops on the GPU of this machine, a software adapter where there is no other, beside the
// reference. Compiling is what takes time there: a case is prepared once and run with several numbers of rows.

import { createGpuBackend } from "../../engine/run/gpu/backend.ts";
import type { OpCase } from "../../engine/ops/op_case.ts";
import { ops } from "../../engine/ops/mod.ts";
import { caseGraph } from "../../engine/run/case_graph.ts";
import { difference, runCase } from "../../engine/run/case_run.ts";
import { plan } from "../../engine/plan/planner.ts";
import { createReferenceBackend } from "../../engine/run/reference/reference_backend.ts";
import { type Gpu, openGpu } from "../../gpu/gpu.ts";
import type { Capabilities } from "../../gpu/kernel.ts";

let opened: Promise<Gpu> | undefined;

/** The device that all tests of a file share. */
export function testGpu(): Promise<Gpu> {
  return opened ??= openGpu();
}

/** The same device, as if it could do less. */
export async function gpuWith(less: Partial<Capabilities>): Promise<Gpu> {
  const gpu = await testGpu();
  return Object.create(gpu, { capabilities: { value: { ...gpu.capabilities, ...less } } });
}

/** What a case is run with. */
export interface RowsRun {
  readonly kernel: string;
  /** Numbers of rows; the case has as many as the largest. */
  readonly rows: readonly number[];
  readonly gpu?: Gpu;
  readonly ofLargest?: number;
}

/**
 * Runs a case whose inputs have shapes [M, …] and whose outputs are [M, …], with the first so many rows.
 *
 * @returns What differs from the reference, a sentence each.
 */
export async function differingRows(
  op: string,
  opCase: OpCase,
  { kernel, rows, gpu, ofLargest = 1e-5 }: RowsRun,
): Promise<string[]> {
  const most = Math.max(...rows);
  const expected = await runCase(createReferenceBackend(), { op: ops.get(op)!, opCase });
  const made = plan(caseGraph(op, opCase), { limits: { M: most } });
  const executable = await createGpuBackend({ gpu: gpu ?? await testGpu() }).prepare(made, {
    slots: 1,
    forceKernels: { [op]: kernel },
  });
  try {
    executable.openSlot();
    opCase.inputs.forEach((input, i) => {
      if (input?.role !== "input" && input?.role !== "quantized") return;
      (executable.input(`input${i}`) as Uint8Array).set(input.data as Uint8Array);
    });
    const found: string[] = [];
    for (const count of rows) {
      await executable.run({ M: count });
      for (const [name, all] of expected) {
        const size = all.length / most * count;
        const actual = new Map([[name, (executable.output(name) as Float32Array).slice(0, size)]]);
        const wanted = new Map([[name, all.slice(0, size)]]);
        const reason = difference(actual, wanted, { ofLargest, reason: "" });
        if (reason !== undefined) found.push(`${kernel}, ${count} rows, ${name}: ${reason}`);
      }
    }
    return found;
  } finally {
    executable.dispose();
  }
}
