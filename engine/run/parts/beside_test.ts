import { assert, assertEquals, assertRejects } from "@std/assert";
import type { Capabilities } from "../../../gpu/kernel.ts";
import { gpuTest } from "../../../tests/support/gpu.ts";
import { UnsupportedError } from "../../errors.ts";
import { createGraphBuilder } from "../../graph/builder.ts";
import { createCaseRandom } from "../../ops/case_random.ts";
import { symbol } from "../../graph/dim/mod.ts";
import type { Graph, Value } from "../../graph/graph.ts";
import { getOp } from "../../ops/mod.ts";
import { createGpuBackend } from "../gpu/backend.ts";
import { takenBy } from "../gpu/lowering.ts";
import { besideHost, partitionBeside } from "./beside.ts";
import { partsOf } from "./cut.ts";
import { plan } from "../../plan/planner.ts";
import { createReferenceBackend } from "../reference/reference_backend.ts";

/** Sums that the GPU computes, with a determinant of 64-bit floats between them, which it does not. */
function mixedGraph(): Graph {
  const builder = createGraphBuilder("mixed", getOp);
  const n = symbol("N", { min: 1, max: 4 });
  const x = builder.input("x", [n, 3, 3], "f32");
  const early = builder.op("binary", [x, x], { kind: "add" }, "early")[0]!;
  const wide = builder.op("cast", [early], { to: "f64" }, "wide")[0]!;
  const det = builder.op("det", [wide], {}, "det")[0]!;
  const narrow = builder.op("cast", [det], { to: "f32" }, "narrow")[0]!;
  const view = builder.op("reshape", [narrow], { shape: [n, 1, 1] }, "view")[0]!;
  builder.output("y", builder.op("binary", [early, view], { kind: "mul" }, "late")[0]!);
  builder.output("det", narrow);
  return builder.build();
}

Deno.test("a graph is cut into as few parts as its order allows, and views stay with their data", () => {
  const graph = mixedGraph();
  const partition = partitionBeside(graph, ({ op }) => op === "binary");
  const parts = partsOf(graph, { places: ["host", "device"], partition });
  assertEquals(parts.map(({ place, nodes }) => [place, nodes.map(({ name }) => name)]), [
    ["device", ["early"]],
    ["host", ["wide", "det", "narrow", "view"]],
    ["device", ["late"]],
  ]);
});

Deno.test("indices that the host alone reads are made there, but not from what the GPU computes", () => {
  const builder = createGraphBuilder("indices", getOp);
  const x = builder.input("x", [3], "f32"), ids = builder.input("ids", [2], "i64");
  const truth = builder.input("truth", [2], "bool");
  const sum = (a: Value, b: Value, name: string) =>
    builder.op("binary", [a, b], { kind: "add" }, name)[0]!;
  const made = sum(ids, ids, "made"),
    early = builder.op("binary", [x, x], { kind: "add" }, "early")[0]!;
  const equal = builder.op("binary", [truth, truth], { kind: "xor" }, "equal")[0]!;
  const counted = builder.op("cast", [equal], { to: "i64" }, "counted")[0]!;
  for (const [name, index] of [["first", made], ["second", sum(counted, ids, "mixed")]] as const) {
    builder.output(name, builder.op("gather", [early, index], { axis: 0 }, name)[0]!);
  }
  builder.output("equal", equal);
  builder.output("read", sum(ids, made, "result"));
  const graph = builder.build();
  const sidesOf = (graph: Graph) =>
    Object.fromEntries(
      [...partitionBeside(graph, takenBy({} as Capabilities))].map((
        [{ name }, side],
      ) => [name, side]),
    );
  const sides = sidesOf(graph);
  assertEquals(sides, {
    ...{ made: "device", early: "host", equal: "device", counted: "device" },
    ...{ mixed: "device", result: "device", first: "host", second: "host" },
  });
  const { result: _, ...alone } = sides;
  const cut = { ...graph, outputs: graph.outputs.slice(0, 3) };
  const withoutResult = { ...cut, nodes: graph.nodes.filter(({ name }) => name !== "result") };
  assertEquals(sidesOf(withoutResult), { ...alone, made: "host" });
});

gpuTest("what has no kernel on the GPU is computed beside it, at any size", async () => {
  const graph = mixedGraph();
  const made = plan(graph, { limits: { N: 4 } });
  const backend = besideHost(
    createGpuBackend(),
    () => Promise.resolve(createReferenceBackend()),
  );
  const options = { slots: 1, hostSteps: true };
  const parted = await backend.prepare(made, options);
  const reference = await createReferenceBackend().prepare(made, options);
  assert(parted.kernels!.includes("host:det"), parted.kernels!.join());
  assert(parted.kernels!.some((name) => name.startsWith("gpu_")), parted.kernels!.join());
  const random = createCaseRandom(5);
  for (const N of [4, 1, 3]) {
    const values = random.normal(9 * N);
    for (const executable of [parted, reference]) {
      executable.input("x").set(values as never);
      await executable.run({ N });
    }
    for (const [name, count] of [["y", 9 * N], ["det", N]] as const) {
      const actual = [...parted.output(name).subarray(0, count)].map(Number);
      const expected = [...reference.output(name).subarray(0, count)].map(Number);
      assert(
        actual.every((value, i) => Math.abs(value - expected[i]!) <= 1e-4 * (1 + Math.abs(value))),
        `${name} of ${N}: ${actual} for ${expected}`,
      );
    }
  }
  parted.dispose();
  await assertRejects(async () => await parted.run({ N: 1 }), TypeError, "disposed");
});

gpuTest("what is wholly on the GPU, views included, is one plan there", async () => {
  const builder = createGraphBuilder("whole", getOp);
  const x = builder.input("x", [2, 3], "f32");
  const view = builder.op("reshape", [x], { shape: [3, 2] }, "view")[0]!;
  builder.output("y", builder.op("binary", [view, view], { kind: "add" }, "sum")[0]!);
  const host = () => Promise.reject(new TypeError("nobody asks the host"));
  const prepared = await besideHost(createGpuBackend(), host).prepare(
    plan(builder.build(), { limits: {} }),
    { slots: 1, hostSteps: true },
  );
  assertEquals([prepared.hostNodes, "parts" in prepared], [[], false]);
  (prepared.input("x") as Float32Array).set([1, 2, 3, 4, 5, 6]);
  await prepared.run({});
  assertEquals([...prepared.output("y")].map(Number), [2, 4, 6, 8, 10, 12]);
  prepared.dispose();
});

gpuTest("without leave for steps of the host, a node without a kernel is an error", async () => {
  const backend = besideHost(
    createGpuBackend(),
    () => Promise.resolve(createReferenceBackend()),
  );
  const made = plan(mixedGraph(), { limits: { N: 4 } });
  await assertRejects(
    async () => await backend.prepare(made, { slots: 1 }),
    UnsupportedError,
    "no kernel",
  );
});
