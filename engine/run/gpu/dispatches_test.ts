import { assert, assertEquals } from "@std/assert";
import { clipFile } from "../../../bench/vision/clip_file.ts";
import { SHAPES, syntheticLlama } from "../../../bench/gpu/synthetic.ts";
import { gpuTest } from "../../../tests/support/gpu.ts";
import { testGpu } from "../../../tests/support/gpu_cases.ts";
import { TOY, TOY_LIMITS, toyDecoder } from "../../../tests/support/toy_decoder.ts";
import { answersOf } from "../kernel_choice.ts";
import { GPU_KERNELS, LEAST_GPU } from "./kernel_table.ts";
import { openDevice } from "../devices.ts";
import { prepareModel } from "../../models/prepare.ts";
import { sectionOf } from "../../models/section.ts";
import { createGpuBackend } from "./backend.ts";
import { countDispatches, dispatchesByLayer } from "./dispatches.ts";
import { optimize } from "../../plan/passes.ts";
import { plan } from "../../plan/planner.ts";

/** The toy, of Llama's blocks, in 4 bit as the GPU runs it. */
function toyPlan() {
  const graph = optimize(toyDecoder("f16", "Q4_0"), {
    context: {
      precision: "fast",
      ...answersOf(GPU_KERNELS, LEAST_GPU),
    },
  });
  return plan(graph, { limits: TOY_LIMITS });
}

gpuTest("a Llama layer keeps to its budget of dispatches in decode", async () => {
  const { capabilities } = await testGpu();
  for (const [name, most] of [["smollm2", 5], ["1b", 5]] as const) {
    const shape = SHAPES.find((candidate) => candidate.name === name)!;
    const options = { contextLength: 2048, batch: 8 };
    const device = await openDevice("gpu", {});
    const prepared = await prepareModel(syntheticLlama(shape), { options, kernels: device });
    // A long context takes one more, because keys are split.
    for (const [position, more] of [[0, 0], [2047, 1]] as const) {
      const counts = countDispatches(prepared.plan, {
        ...{ capabilities, bindings: { M: 1, L: 1 }, position },
      });
      const layers = dispatchesByLayer(counts).filter(({ layer }) => layer !== "");
      assertEquals(layers.length, shape.layers);
      for (const { layer, nodes } of layers) {
        // The rows that are wanted are picked once, of what the last but one gives.
        const own = nodes.filter(({ kernel }) => kernel !== "gpu_select_rows_f32");
        const count = own.reduce((sum, { count }) => sum + count, 0);
        assertEquals(nodes.length - own.length, layer.endsWith(`.${shape.layers - 2}`) ? 1 : 0);
        assert(count > 0 && count <= most + more, nodes.map(({ node }) => node).join());
      }
    }
  }
});

gpuTest(
  "layers of encoders keep to their budget: few rows are centred by products, many by those before",
  async () => {
    const { capabilities } = await testGpu();
    const device = await openDevice("gpu", {}), file = clipFile();
    for (const [section, rows, most] of [[undefined, 11, 5], ["vision_config", 50, 10]] as const) {
      const { plan: { graph, limits }, plan } = await prepareModel(
        section ? sectionOf(file, { section }) : file,
        { options: { precision: "exact" }, kernels: device, outputs: { rows: false } },
      );
      const bindings = Object.fromEntries(Object.keys(limits).map((name) => [name, 1]));
      const counts = countDispatches(plan, { capabilities, bindings: { ...bindings, M: rows } });
      for (const { layer, count, nodes } of dispatchesByLayer(counts)) {
        if (layer === "") continue;
        // Rows that are wanted are picked in the last one, those of pictures are normed before the first.
        const picked = nodes.filter(({ kernel }) => kernel === "gpu_select_rows_f32").length;
        assert(count - picked <= most, `${count} ${nodes.map(({ kernel }) => kernel).join()}`);
      }
      assertEquals(
        graph.nodes.some(({ op, attributes }) => op === "matmul" && attributes.centred === true),
        section === undefined,
      );
    }
  },
);

gpuTest("dispatches that are foretold are those of a step", async () => {
  const made = toyPlan();
  const gpu = await testGpu();
  const executable = await createGpuBackend({ gpu }).prepare(made, { slots: 1 });
  executable.openSlot();
  for (const M of [1, 5]) {
    (executable.input("positions") as Int32Array).fill(TOY.capacity - 1);
    await executable.run({ M, L: 1 });
    const counts = countDispatches(made, {
      capabilities: gpu.capabilities,
      bindings: { M, L: 1 },
      position: TOY.capacity - 1,
    });
    assertEquals(counts.reduce((sum, { count }) => sum + count, 0), executable.dispatches);
  }
  executable.dispose();
});

Deno.test("layers are told by the first number of a path", () => {
  const names = ["embed", "layers.0.q", "layers.0.experts.3.up", "decoder.layers.12.norm", "head"];
  const counts = names.map((node, i) => ({
    ...{ node, kernel: "k", count: i },
    ...{ copies: 0, textureBytes: 0 },
  }));
  assertEquals(dispatchesByLayer(counts).map(({ layer, count }) => [layer, count]), [
    ["", 4],
    ["layers.0", 3],
    ["decoder.layers.12", 3],
  ]);
});
