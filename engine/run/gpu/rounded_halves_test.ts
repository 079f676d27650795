// Kernels on subgroup matrices that round to float16 what they multiply, because who prepares a plan lets them: emulated on
// whatever adapter there is.

import { assert, assertEquals } from "@std/assert";
import { gpuTest } from "../../../tests/support/gpu.ts";
import { differingRows } from "../../../tests/support/gpu_cases.ts";
import { matrixProvider } from "../../../tests/support/matrix_emulation.ts";
import { textOf } from "../../../tests/support/shader_snapshot.ts";
import { type Gpu, openGpu } from "../../../gpu/gpu.ts";
import {
  attentionHalves,
  attentionHalvesBytes,
  halvesQueries,
} from "../../../gpu/kernels/attention/halves.ts";
import { tensorRule } from "../../../gpu/kernels/attention/spans.ts";
import { attentionList } from "../../ops/attention_inputs.ts";
import { createCaseRandom } from "../../ops/case_random.ts";
import { matmulCase } from "../../ops/matmul_cases.ts";
import { ops } from "../../ops/mod.ts";
import type { CaseInput, OpCase } from "../../ops/op_case.ts";
import { plan } from "../../plan/planner.ts";
import { caseGraph } from "../case_graph.ts";
import { difference, runCase } from "../case_run.ts";
import { createReferenceBackend } from "../reference/reference_backend.ts";
import { createGpuBackend } from "./backend.ts";
import { capabilitiesFor } from "./kernel.ts";
import { selfTested } from "./self_tests.ts";

/** Roundings to 11 bits. */
const ROUNDED = { ofLargest: 2e-3, reason: "numbers are rounded to float16" };

/** A device with matrices whose plans may be rounded. */
async function roundingGpu(): Promise<Gpu> {
  const gpu = await openGpu({ provider: matrixProvider() });
  const capabilities = capabilitiesFor(gpu.capabilities, { roundsToHalves: true });
  assert(capabilities.roundsToHalves);
  return Object.create(gpu, { capabilities: { value: capabilities } });
}

/** Items, rows, keys, heads, channels of keys and of values. */
const ATTENTIONS = [
  [1, 270, 45, 4, 40, 24],
  [2, 130, 33, 4, 112, 96],
] as const;

gpuTest("attention by halves is the reference's, of loud heads too", async () => {
  const gpu = await roundingGpu(), backend = createGpuBackend({ gpu });
  const op = ops.get("attention")!, random = createCaseRandom(21);
  for (const [items, rows, keys, heads, width, valueWidth] of ATTENTIONS) {
    const louder = (input: CaseInput, by: number) => {
      const { data } = input as { readonly data: Float32Array };
      return { ...input, data: data.map((x) => by * x) } as CaseInput;
    };
    // Numbers that are no halves: some overflow, queries would all be zero.
    const opCase: OpCase = {
      name: "attention",
      inputs: attentionList<CaseInput>({
        q: louder(random.input([items, rows, heads * width]), 1e-9),
        k: louder(random.input([items, keys, heads * width]), 1e9),
        v: louder(random.input([items, keys, heads * valueWidth]), 1e6),
      }),
      attributes: { q_heads: heads, kv_heads: heads, scale: 2 * width ** -0.5 },
    };
    const expected = await runCase(createReferenceBackend(), { op, opCase });
    const actual = await runCase(backend, { op, opCase, kernel: "gpu_attention_halves" });
    assertEquals(difference(actual, expected, ROUNDED), undefined, `${width}`);
  }
  gpu.dispose();
});

gpuTest(
  "attention by halves of heads in planes, in groups and in one tensor is the reference's",
  async () => {
    const gpu = await roundingGpu(), op = ops.get("attention")!;
    const cases = op.cases!(createCaseRandom(22)).filter(({ name }) => / queries/.test(name));
    assertEquals(cases.length, 3);
    for (const opCase of cases) {
      const expected = await runCase(createReferenceBackend(), { op, opCase });
      const run = { op, opCase, kernel: "gpu_attention_halves" };
      const actual = await runCase(createGpuBackend({ gpu }), run);
      assertEquals(difference(actual, expected, ROUNDED), undefined, opCase.name);
    }
    gpu.dispose();
  },
);

gpuTest("products by one half are near, gated ones too", async () => {
  const gpu = await roundingGpu(), random = createCaseRandom(23);
  const rows = [70], ofLargest = ROUNDED.ofLargest;
  const plain = matmulCase(random, { format: "F16", columns: 96, rows: 70, outputs: 35 });
  const run = { gpu, rows, ofLargest };
  const kernel = "gpu_matmul_f32_workgroup", glu = "gpu_matmul_glu_f32_workgroup";
  assertEquals(await differingRows("matmul", plain, { ...run, kernel }), []);
  // Roundings are seen, so that it is one half that was multiplied.
  const exact = { ...run, kernel, ofLargest: 1e-5 };
  assert((await differingRows("matmul", plain, exact)).length > 0);
  const { inputs: [x, weight], ...rest } = matmulCase(random, {
    ...{ format: "F16", columns: 64, rows: 70, outputs: 2 * 51 },
  });
  const attributes = { ...rest.attributes, gate: "gelu" };
  const gated = { ...rest, inputs: [x, weight], attributes };
  assertEquals(await differingRows("matmul", gated, { ...run, kernel: glu }), []);
  gpu.dispose();
});

gpuTest("convolutions by one half are near", async () => {
  const gpu = await roundingGpu(), op = ops.get("conv")!, random = createCaseRandom(24);
  const opCase: OpCase = {
    name: "convolution",
    inputs: [random.input([2, 20, 7, 9]), random.weight("F16", [70, 20, 3, 3])],
    attributes: { pads: [1, 1, 1, 1], activation: "silu" },
  };
  const expected = await runCase(createReferenceBackend(), { op, opCase });
  const run = { op, opCase, kernel: "gpu_conv_halves_f32" };
  const actual = await runCase(createGpuBackend({ gpu }), run);
  assertEquals(difference(actual, expected, ROUNDED), undefined);
  gpu.dispose();
});

gpuTest(
  "attention by halves is tried before it is used, and left out where it is wrong",
  async () => {
    const op = ops.get("attention")!;
    const opCase = op.cases!(createCaseRandom(25)).find(({ name }) => name === "many queries")!;
    for (const areWrong of [false, true]) {
      const provider = matrixProvider({ areWrong }), cacheDir = await Deno.makeTempDir();
      const backend = selfTested(createGpuBackend({ provider }), { provider, cacheDir });
      const executable = await backend.prepare(
        plan(caseGraph("attention", opCase), { limits: {} }),
        {
          ...{ slots: 1, roundsToHalves: true },
        },
      );
      assertEquals(executable.kernels, [`gpu_attention_${areWrong ? "queries" : "halves"}`]);
      executable.dispose();
      await Deno.remove(cacheDir, { recursive: true });
    }
  },
);

Deno.test("attention by halves declares as much workgroup memory as is counted for it", () => {
  const rule = tensorRule({
    ...{ heads: 2, kvHeads: 2, scale: 1, softcap: 0, window: 0, causal: false, fromEnd: false },
    ...{ countWords: 0, mask: "none", packed: false, spoilt: false },
    planes: { q: false, k: false, v: false },
  });
  for (const [width, subgroups, units] of [[40, 4, 2], [160, 2, 1]] as const) {
    const sizes = { width, valueWidth: width, subgroups, units };
    const heads = { heads: 2, kvHeads: 2, dtype: "f32" } as const;
    const text = textOf(attentionHalves({ ...heads, ...sizes, rule, scale: 1, subgroupSize: 32 }));
    const bytes = { "vec4<f16>": 8, f32: 4 } as const;
    const declared = [...text.matchAll(/var<workgroup> \w+: array<(vec4<f16>|f32), (\d+)>/g)]
      .reduce(
        (sum, [, type, count]) => sum + bytes[type as keyof typeof bytes] * Number(count),
        16,
      );
    assertEquals(attentionHalvesBytes(sizes), declared);
    assert(declared <= 49_152);
    assertEquals(halvesQueries(sizes), 16 * subgroups * units);
  }
});
