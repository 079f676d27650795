// The kernels around products: cases of their ops, as many as a software adapter compiles in seconds, evenly chosen so
// that formats and sizes come in turn. `troodon doctor` runs all of them on the user's device.

import { assert, assertEquals } from "@std/assert";
import { gpuTest } from "../../../tests/support/gpu.ts";
import { testGpu } from "../../../tests/support/gpu_cases.ts";
import { createQuickRandom } from "../../ops/case_random.ts";
import type { OpCase } from "../../ops/op_case.ts";
import { ops } from "../../ops/mod.ts";
import { caseGraph } from "../case_graph.ts";
import { difference, runCase } from "../case_run.ts";
import { createGpuBackend } from "./backend.ts";
import { chooseKernel, kernelNames } from "../kernel_choice.ts";
import { GPU_KERNELS } from "./kernel_table.ts";
import { createReferenceBackend } from "../reference/reference_backend.ts";

/** Cases of each kernel by op; those that have tests of their own are left out. */
const COUNTS: Readonly<Record<string, readonly [count: number, left?: RegExp]>> = {
  quantize: [4],
  norm: [5, /_f32$/],
  glu: [5, /_f32$/],
  expert_matmul: [5],
  matmul: [4, /^gpu_matmul_(f32|q8)_/],
  attention: [12, /_halves$/],
};

/** So many cases, evenly chosen. */
function inTurn(cases: readonly OpCase[], count: number): OpCase[] {
  const length = Math.min(count, cases.length);
  return Array.from({ length }, (_, i) => cases[Math.floor(i * cases.length / length)]!);
}

for (const [name, [count, left]] of Object.entries(COUNTS)) {
  gpuTest(`kernels of ${name} give what the reference gives`, async () => {
    const op = ops.get(name)!;
    const gpu = await testGpu();
    const backend = createGpuBackend({ gpu });
    const cases = op.cases!(createQuickRandom(4)).map((opCase) => {
      const node = caseGraph(name, opCase).nodes.find((node) => node.name === name)!;
      return { opCase, context: { node, capabilities: gpu.capabilities } };
    });
    for (const kernel of kernelNames(GPU_KERNELS, name).filter((one) => !left?.test(one))) {
      const taken = cases.filter(({ context }) =>
        chooseKernel(GPU_KERNELS, context, { forceKernels: { [name]: kernel } })
      ).map(({ opCase }) => opCase);
      assert(taken.length > 0, `${kernel} has no case`);
      for (const opCase of inTurn(taken, count)) {
        const actual = await runCase(backend, { op, opCase, kernel });
        const expected = await runCase(createReferenceBackend(), { op, opCase });
        const tolerance = opCase.tolerance ?? op.tolerance ??
          { ofLargest: 1e-5, reason: "float32 sums" };
        assertEquals(
          difference(actual, expected, tolerance),
          undefined,
          `${kernel}, ${opCase.name}`,
        );
      }
    }
  });
}
