// The ops around products: their own cases, as many as a software adapter compiles in seconds, evenly chosen so
// that formats and sizes come in turn. `troodon doctor` runs all of them on the user's device.

import { assertEquals } from "@std/assert";
import { gpuTest } from "../../tests/support/gpu.ts";
import { testGpu } from "../../tests/support/gpu_cases.ts";
import { UnsupportedError } from "../errors.ts";
import { createCaseRandom } from "../graph/case_random.ts";
import type { OpCase } from "../graph/op_case.ts";
import { ops } from "../graph/ops/mod.ts";
import { difference, runCase } from "./case_run.ts";
import { createGpuBackend } from "./gpu_backend.ts";
import { kernelNames } from "./kernel_checks.ts";
import { createReferenceBackend } from "./reference_backend.ts";

/** Cases by op. */
const COUNTS: Readonly<Record<string, number>> = {
  ...{ quantize_q8: 4, rms_norm_q8: 5, glu_q8: 5, expert_matmul: 5, expert_matmul_q8: 5 },
  ...{ matmul_add: 3, matmul_add_q8: 3, matmul_glu_q8: 5, attention_q8: 6 },
  ...{ norm_matmul_q8: 5, norm_matmul_glu_q8: 5, rope_attention: 7, rope_attention_q8: 5 },
};

function chosen(cases: readonly OpCase[], count: number): OpCase[] {
  const step = cases.length / Math.min(count, cases.length);
  return Array.from(
    { length: Math.min(count, cases.length) },
    (_, i) => cases[Math.floor(i * step)]!,
  );
}

for (const [name, count] of Object.entries(COUNTS)) {
  gpuTest(`kernels of ${name} give what the reference gives`, async () => {
    const op = ops.get(name)!;
    const backend = createGpuBackend({ gpu: await testGpu() });
    const passed = new Set<string>();
    for (const opCase of chosen(op.cases!(createCaseRandom(4)), count)) {
      const expected = await runCase(createReferenceBackend(), op, opCase);
      for (const kernel of kernelNames(op, "gpu")) {
        const actual = await runCase(backend, op, opCase, kernel).catch((error) => {
          if (error instanceof UnsupportedError) return undefined;
          throw error;
        });
        if (!actual) continue;
        const tolerance = op.tolerance ?? { ofLargest: 1e-5, reason: "float32 sums" };
        assertEquals(
          difference(actual, expected, tolerance),
          undefined,
          `${kernel}, ${opCase.name}`,
        );
        passed.add(kernel);
      }
    }
    assertEquals([...passed].sort(), [...kernelNames(op, "gpu")].sort());
  });
}
