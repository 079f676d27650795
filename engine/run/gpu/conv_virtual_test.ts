import { assert, assertEquals } from "@std/assert";
import type { ConvStorages } from "../../../gpu/storage_choice.ts";
import { STORAGE_KINDS } from "../../../gpu/virtual_tensor.ts";
import { gpuTest } from "../../../tests/support/gpu.ts";
import { gpuWith, testGpu } from "../../../tests/support/gpu_cases.ts";
import { createGraphBuilder } from "../../graph/builder.ts";
import { createCaseRandom } from "../../ops/case_random.ts";
import type { Graph } from "../../graph/graph.ts";
import type { OpCase } from "../../ops/op_case.ts";
import { getOp, ops } from "../../ops/mod.ts";
import { GPU_KERNELS } from "./kernel_table.ts";
import { caseGraph } from "../case_graph.ts";
import { difference, runCase } from "../case_run.ts";
import { createGpuBackend } from "./backend.ts";
import { countDispatches } from "./dispatches.ts";
import { plan } from "../../plan/planner.ts";
import { createReferenceBackend } from "../reference/reference_backend.ts";

const KERNEL = "gpu_conv_virtual_f32";
const ACTIVATIONS = ["planes", ...STORAGE_KINDS] as const;
const WEIGHTS = ["buffer", "texture_2d"] as const;
const TEXTURES: ConvStorages = {
  source: "texture_2d",
  weights: "texture_2d",
  target: "texture_2d_array",
};

/** A convolution whose weights and bias are known. */
function convCase(
  x: readonly number[],
  w: readonly number[],
  attributes: OpCase["attributes"] = {},
  bias = false,
): OpCase {
  const random = createCaseRandom(7);
  return {
    name: `[${x}] * [${w}]`,
    inputs: [
      random.input(x),
      { ...random.input(w), role: "constant" } as OpCase["inputs"][0],
      bias ? { ...random.input([w[0]!]), role: "constant" } as OpCase["inputs"][0] : undefined,
    ],
    attributes,
  };
}

const SMALL = convCase([2, 6, 5, 7], [5, 6, 3, 2], {
  ...{ pads: [1, 0, 1, 2], strides: [2, 1], activation: "sigmoid" },
}, true);

async function assertEqual(opCase: OpCase, conv: ConvStorages): Promise<void> {
  const backend = createGpuBackend({ gpu: await testGpu(), storages: { conv } });
  const actual = await runCase(backend, { op: ops.get("conv")!, opCase, kernel: KERNEL });
  const expected = await runCase(createReferenceBackend(), { op: ops.get("conv")!, opCase });
  const found = difference(actual, expected, { ofLargest: 1e-5, reason: "order of sums" });
  assertEquals(found, undefined, `${opCase.name} with ${JSON.stringify(conv)}`);
}

gpuTest("a convolution is the same wherever its tensors lie", async () => {
  // Reading and writing are apart in the text, so each storage is tried once on either side, with both kinds of weights.
  for (const [i, source] of ACTIVATIONS.entries()) {
    await assertEqual(SMALL, { source, weights: WEIGHTS[i % 2]!, target: "planes" });
  }
  for (const [i, target] of STORAGE_KINDS.entries()) {
    await assertEqual(SMALL, { source: target, weights: WEIGHTS[i % 2]!, target });
  }
});

gpuTest("windows, groups and dims of all kinds are convolved in textures", async () => {
  const cases = [
    convCase([1, 3, 9], [5, 3, 3], { pads: [1, 1] }),
    convCase([1, 16, 4, 5], [16, 8, 1, 1], { groups: 2 }),
    convCase([1, 8, 8, 8], [4, 8, 3, 3], { dilations: [2, 1], padding: "same_upper" }, true),
    convCase([2, 2, 4, 5, 6], [3, 2, 2, 3, 3], { pads: [0, 1, 1, 1, 1, 1], activation: "silu" }),
    convCase([1, 4, 1, 2, 3], [4, 4, 3, 1, 1], { pads: [1, 0, 0, 1, 0, 0] }),
  ];
  for (const opCase of cases) await assertEqual(opCase, TEXTURES);
});

gpuTest(
  "a convolution of other sizes or unknown weights is left to the kernel on buffers",
  async () => {
    const { capabilities } = await testGpu();
    const kernel = GPU_KERNELS.conv!.find(({ name }) => name === KERNEL)!;
    const takes = (opCase: OpCase, conv: ConvStorages | undefined = TEXTURES) => {
      const [node] = caseGraph("conv", opCase).nodes;
      return kernel.when({ node: node!, capabilities, storages: { ...conv && { conv } } });
    };
    const known = convCase([1, 6, 8, 8], [8, 6, 3, 3]);
    const [x, w] = known.inputs;
    assert(takes(known));
    assert(
      !kernel.when({
        ...{ capabilities, storages: {} },
        node: caseGraph("conv", known).nodes[0]!,
      }),
    );
    assert(!takes({ ...known, inputs: [x, { ...w!, role: "input" } as typeof w] }));
    assert(!takes(convCase([1, 6, 8, 8], [9, 2, 3, 3], { groups: 3 })));
  },
);

/** Prepares a case and tells what it was foretold to take, and takes. */
async function charged(opCase: OpCase, conv: ConvStorages | undefined, gpu = testGpu()) {
  return await chargedGraph(caseGraph("conv", opCase), conv, gpu);
}

async function chargedGraph(graph: Graph, conv: ConvStorages | undefined, gpu = testGpu()) {
  const made = plan(graph, { limits: {} });
  const storages = conv ? { conv } : {};
  const device = await gpu;
  const [foretold] = countDispatches(made, {
    ...{ capabilities: device.capabilities, bindings: {}, storages },
  });
  const executable = await createGpuBackend({ gpu: device, storages }).prepare(made, { slots: 0 });
  const { memory } = executable;
  await executable.run({});
  const { dispatches } = executable;
  executable.dispose();
  return { foretold: foretold!, memory, dispatches };
}

gpuTest("copies and bytes of textures are charged, before and after loading", async () => {
  const { liveBuffers } = await testGpu();
  const { foretold, memory, dispatches } = await charged(SMALL, TEXTURES);
  // Two slices of 5 × 7 places twice; weights of 2 × 6 taps with 2 slices each way; two of 3 × 8 places twice.
  const activations = 16 * 2 * (2 * 35 + 2 * 24), weights = 16 * 4 * 2 * 6 * 2;
  assertEquals(
    { copies: foretold.copies, count: foretold.count, bytes: foretold.textureBytes },
    { copies: 2, count: 3, bytes: activations + weights },
  );
  assertEquals([dispatches, memory.textures], [3, activations + weights]);
  assertEquals(memory.weights, weights);
  const plain = await charged(SMALL, { source: "planes", weights: "buffer", target: "planes" });
  assertEquals([plain.foretold.count, plain.foretold.copies, plain.memory.textures], [1, 0, 0]);
  assertEquals(plain.foretold.textureBytes, 0);
  assertEquals((await testGpu()).liveBuffers, liveBuffers);
});

gpuTest("nodes of one size share a texture of activations, and each has its weights", async () => {
  const builder = createGraphBuilder("two", getOp);
  let value = builder.input("x", [1, 4, 6, 6], "f32");
  for (const name of ["first", "second"]) {
    const w = builder.constant(name, createCaseRandom(3).normal(4 * 4 * 9), [4, 4, 3, 3]);
    value = builder.op("conv", [value, w], { pads: [1, 1, 1, 1] }, `${name} conv`)[0]!;
  }
  builder.output("y", value);
  const { memory, dispatches } = await chargedGraph(builder.build(), TEXTURES);
  const source = 16 * 36, weights = 16 * 4 * 9;
  assertEquals([dispatches, memory.textures], [6, 2 * source + 2 * weights]);
});

gpuTest("weights that lie in textures have no second place", async () => {
  const { memory } = await charged(SMALL, TEXTURES);
  const { memory: plain } = await charged(SMALL, undefined);
  const activations = memory.textures! - memory.weights;
  // 5 × 6 filters of 3 × 2 floats.
  assertEquals(plain.other - (memory.other - activations), 768);
});

gpuTest("what is over the limits of textures lies in buffers", async () => {
  const gpu = gpuWith({ maxTexture2d: 4, maxTexture3d: 4, maxTextureLayers: 1 });
  const { foretold, memory } = await charged(SMALL, TEXTURES, gpu);
  assertEquals([foretold.kernel, foretold.count, foretold.copies], [KERNEL, 1, 0]);
  assertEquals(memory.textures, 0);
});
