// Kernels on subgroup matrices, which few cards have: emulated on whatever adapter there is.

import { assert, assertEquals, assertMatch } from "@std/assert";
import { gpuTest } from "../../../tests/support/gpu.ts";
import { differingRows } from "../../../tests/support/gpu_cases.ts";
import { matrixProvider } from "../../../tests/support/matrix_emulation.ts";
import { openGpu } from "../../../gpu/gpu.ts";
import { createCaseRandom } from "../../ops/case_random.ts";
import { matmulCase, quantized } from "../../ops/matmul_cases.ts";
import type { CaseInput, OpCase } from "../../ops/op_case.ts";
import { ops } from "../../ops/mod.ts";
import { difference, runCase } from "../case_run.ts";
import { createReferenceBackend } from "../reference/reference_backend.ts";
import { createGpuBackend } from "./backend.ts";
import { selfTested } from "./self_tests.ts";

const ROWS = 20, OF_LARGEST = 2e-3;

/** A product of more rows than teams take, by activations of such a size. */
function product(loudness: number): OpCase {
  const { inputs: [x, weight], ...rest } = matmulCase(createCaseRandom(16), {
    ...{ format: "Q4_0", columns: 96, rows: ROWS, outputs: 35 },
  });
  const data = (x as { readonly data: Float32Array }).data.map((value) => loudness * value);
  return quantized({ ...rest, inputs: [{ ...x, data } as CaseInput, weight] });
}

gpuTest("products on subgroup matrices are the reference's, of large activations too", async () => {
  const gpu = await openGpu({ provider: matrixProvider() });
  assert(gpu.capabilities.subgroupMatrix);
  const run = { gpu, kernel: "gpu_matmul_q8_workgroup", rows: [ROWS], ofLargest: OF_LARGEST };
  assertEquals(await differingRows("matmul", product(60_000), run), []);
  gpu.dispose();
});

gpuTest(
  "products of floats by halves on subgroup matrices are as near as those of floats",
  async () => {
    const gpu = await openGpu({ provider: matrixProvider() });
    const opCase = matmulCase(createCaseRandom(18), {
      ...{ format: "F16", columns: 96, rows: 40, outputs: 35 },
    });
    const run = { gpu, kernel: "gpu_matmul_f32_workgroup", rows: [40] };
    assertEquals(await differingRows("matmul", opCase, run), []);
    gpu.dispose();
  },
);

gpuTest("subgroup matrices that compute wrong are left out", async () => {
  const provider = matrixProvider({ areWrong: true }), cacheDir = await Deno.makeTempDir();
  const backend = selfTested(createGpuBackend({ provider }), { provider, cacheDir });
  const op = ops.get("matmul")!, opCase = product(1);
  const expected = await runCase(createReferenceBackend(), { op, opCase });
  const actual = await runCase(backend, { op, opCase });
  assertEquals(difference(actual, expected, { ofLargest: OF_LARGEST, reason: "" }), undefined);
  const found = await Deno.readTextFile(`${cacheDir}/self-tests.json`);
  assertMatch(found, /"gpu_matmul_q8_\w+ Q4_0": false/);
  assertMatch(found, /"gpu_matmul_q8_\w+ Q4_0 without subgroup_matrices": true/);
  await Deno.remove(cacheDir, { recursive: true });
});
