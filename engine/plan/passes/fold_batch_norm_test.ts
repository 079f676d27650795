import { assert, assertEquals } from "@std/assert";
import { createGraphBuilder } from "../../graph/builder.ts";
import { createCaseRandom } from "../../ops/case_random.ts";
import type { Graph, Value } from "../../graph/graph.ts";
import { getOp } from "../../ops/mod.ts";
import { verify } from "../../graph/verify.ts";
import { tensorInMemory } from "../../run/case_graph.ts";
import { plan } from "../planner.ts";
import { createReferenceBackend } from "../../run/reference/reference_backend.ts";
import { deadCode } from "./dead_code.ts";
import { foldBatchNorm } from "./fold_batch_norm.ts";
import type { PassContext } from "./pass.ts";

const CONTEXT: PassContext = {
  precision: "exact",
  takes: () => true,
  hasKernel: () => true,
};
// Attributes as an op's own cases have them, for a 3 by 3 window.
const WINDOW = getOp("conv").cases!(createCaseRandom(1))
  .find(({ inputs }) => inputs[1]?.shape.length === 4)!.attributes!;

function normed({ withBias, readTwice }: { withBias: boolean; readTwice: boolean }): Graph {
  const random = createCaseRandom(5);
  const builder = createGraphBuilder("norm", getOp);
  const sample = getOp("conv").cases!(createCaseRandom(1))
    .find(({ inputs }) => inputs[1]?.shape.length === 4)!;
  const [xCase, wCase] = sample.inputs;
  const x = builder.input("x", xCase!.shape, "f32");
  const shape = wCase!.shape as readonly number[];
  const count = shape.reduce((a, b) => a * b, 1), channels = shape[0]!;
  const bytes = new Uint8Array(random.normal(count).buffer);
  const kernel = builder.weight("w", tensorInMemory("w", { format: "F32", shape, bytes }));
  const vector = (name: string, of: (value: number) => number) =>
    builder.constant(name, random.normal(channels).map(of), [channels]);
  const bias = withBias ? [vector("bias", (v) => v)] : [];
  const [sums] = builder.op("conv", [x, kernel, ...bias], WINDOW, "conv") as [Value];
  const norm = [vector("g", (v) => v + 2), vector("b", (v) => v), vector("m", (v) => v)];
  const inputs = [sums, ...norm, vector("v", (v) => v * v + 0.1)];
  builder.output("y", builder.op("batch_norm", inputs, { epsilon: 1e-3 }, "norm")[0]!);
  if (readTwice) builder.output("sums", sums);
  return builder.build();
}

async function outputOf(graph: Graph): Promise<Float32Array> {
  const { limits } = { limits: {} };
  const executable = await createReferenceBackend().prepare(plan(graph, { limits }), { slots: 1 });
  const x = executable.input("x") as Float32Array;
  x.set(createCaseRandom(3).normal(x.length));
  await executable.run(limits);
  const result = (executable.output("y") as Float32Array).slice();
  executable.dispose();
  return result;
}

for (const withBias of [false, true]) {
  Deno.test(`a batch norm goes into a convolution ${withBias ? "with" : "without"} bias`, async () => {
    const before = normed({ withBias, readTwice: false });
    const after = deadCode.run(foldBatchNorm.run(before, CONTEXT), CONTEXT);
    verify(after, getOp);
    assertEquals(after.nodes.map(({ op }) => op), ["conv"]);
    const wanted = await outputOf(before), got = await outputOf(after);
    assert(wanted.some((value) => Math.abs(value) > 0.1));
    wanted.forEach((value, i) =>
      assert(Math.abs(value - got[i]!) < 1e-5 * (1 + Math.abs(value)), `${got[i]}, not ${value}`)
    );
  });
}

Deno.test("a convolution that something else reads keeps its batch norm", () => {
  const graph = normed({ withBias: false, readTwice: true });
  assertEquals(foldBatchNorm.run(graph, CONTEXT), graph);
});

Deno.test("a batch norm goes into a transposed convolution in groups", async () => {
  const random = createCaseRandom(6), builder = createGraphBuilder("norm", getOp);
  const x = builder.input("x", [1, 4, 3, 5], "f32");
  const constant = (name: string, shape: readonly number[], of = (value: number) => value) =>
    builder.constant(name, random.normal(shape.reduce((a, b) => a * b, 1)).map(of), shape);
  const window = { strides: [2, 2], groups: 2 };
  const [sums] = builder.op("conv_transpose", [x, constant("w", [4, 3, 2, 2])], window, "conv");
  const norm = ["g", "b", "m"].map((name) => constant(name, [6]));
  const variance = constant("v", [6], (v) => v * v + 0.1);
  const [y] = builder.op("batch_norm", [sums, ...norm, variance], { epsilon: 1e-3 }, "norm");
  builder.output("y", y!);
  const before = builder.build();
  const after = deadCode.run(foldBatchNorm.run(before, CONTEXT), CONTEXT);
  verify(after, getOp);
  assertEquals(after.nodes.map(({ op }) => op), ["conv_transpose"]);
  const wanted = await outputOf(before), got = await outputOf(after);
  wanted.forEach((value, i) =>
    assert(Math.abs(value - got[i]!) < 1e-5 * (1 + Math.abs(value)), `${got[i]}, not ${value}`)
  );
});
