// The ops around products: their own cases, as many as a software adapter compiles in seconds, evenly chosen so
// that formats and sizes come in turn. `troodon doctor` runs all of them on the user's device.

import { assert, assertEquals } from "@std/assert";
import { gpuTest } from "../../../tests/support/gpu.ts";
import { testGpu } from "../../../tests/support/gpu_cases.ts";
import { UnsupportedError } from "../../errors.ts";
import { createCaseRandom } from "../../ops/case_random.ts";
import type { OpCase } from "../../ops/op_case.ts";
import { ops } from "../../ops/mod.ts";
import { difference, runCase } from "../case_run.ts";
import { createGpuBackend } from "./backend.ts";
import { kernelNames } from "../kernel_choice.ts";
import { createReferenceBackend } from "../reference/reference_backend.ts";

/** Cases by op. */
const COUNTS: Readonly<Record<string, number>> = {
  ...{ quantize_q8: 4, rms_norm_q8: 5, glu_q8: 5, expert_matmul: 5, expert_matmul_q8: 5 },
  ...{ matmul_add: 3, matmul_add_q8: 3, matmul_glu_q8: 5, attention_q8: 6 },
  ...{ norm_matmul_q8: 5, norm_matmul_glu_q8: 5, rope_attention: 7, rope_attention_q8: 5 },
};

/** First `count` cases, evenly chosen, then the others. */
function inTurn(cases: readonly OpCase[], count: number): OpCase[] {
  const step = cases.length / Math.min(count, cases.length);
  const first = Array.from(
    { length: Math.min(count, cases.length) },
    (_, i) => cases[Math.floor(i * step)]!,
  );
  return [...first, ...cases.filter((opCase) => !first.includes(opCase))];
}

for (const [name, count] of Object.entries(COUNTS)) {
  gpuTest(`kernels of ${name} give what the reference gives`, async () => {
    const op = ops.get(name)!;
    const backend = createGpuBackend({ gpu: await testGpu() });
    const cases = inTurn(op.cases!(createCaseRandom(4)), count);
    for (const kernel of kernelNames(op.name, "gpu")) {
      let passed = 0;
      for (const [i, opCase] of cases.entries()) {
        // A kernel that is for none of the first gets one of the others.
        if (i >= count && passed > 0) break;
        const actual = await runCase(backend, op, opCase, kernel).catch((error) => {
          if (error instanceof UnsupportedError) return undefined;
          throw error;
        });
        if (!actual) continue;
        const expected = await runCase(createReferenceBackend(), op, opCase);
        const tolerance = op.tolerance ?? { ofLargest: 1e-5, reason: "float32 sums" };
        assertEquals(
          difference(actual, expected, tolerance),
          undefined,
          `${kernel}, ${opCase.name}`,
        );
        passed++;
      }
      assert(passed > 0, `${kernel} has no case`);
    }
  });
}
