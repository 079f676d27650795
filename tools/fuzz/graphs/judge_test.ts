import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { readOnnx } from "../../../engine/onnx/file/open_onnx.ts";
import { memorySource } from "../../../engine/io.ts";
import type { Backend } from "../../../engine/run/backend.ts";
import { type Device, openDevice } from "../../../engine/run/devices.ts";
import { createReferenceBackend } from "../../../engine/run/reference/reference_backend.ts";
import { difference } from "./compare.ts";
import { describe, writeCase } from "./describe.ts";
import { judge } from "./judge.ts";
import { randomGraph } from "./random_graph.ts";
import { shrink } from "./shrink.ts";
import type { GraphCase } from "./writer.ts";

/** The reference in the place of wasm, but wherever a graph has one of these ops its results are off. */
async function wrongAt(op: string): Promise<Device> {
  const reference = createReferenceBackend();
  const backend: Backend = {
    ...reference,
    name: "wasm",
    async prepare(plan, options) {
      const executable = await reference.prepare(plan, options);
      const isWrong = plan.graph.nodes.some((node) => node.op === op);
      return {
        ...executable,
        output(name) {
          const data = executable.output(name);
          return isWrong ? (data as Float32Array).map((value) => value + 1) : data;
        },
      };
    },
  };
  return { ...await openDevice("wasm", {}), backend };
}

/** The first random graph that a device does wrong, and where. */
async function firstFailure(device: Device): Promise<GraphCase> {
  for (let index = 0; index < 200; index++) {
    const given = randomGraph(3, index);
    const verdict = await judge(given, { device, peer: undefined });
    if (verdict.kind === "failure") return given;
  }
  throw new Error("no graph of 200 is wrong");
}

Deno.test("a device that is wrong about one op is noticed, and the graph shrinks to that op", async () => {
  const device = await wrongAt("softmax");
  const given = await firstFailure(device);
  const small = await shrink(given, {
    async fails(candidate) {
      return (await judge(candidate, { device, peer: undefined })).kind === "failure";
    },
  });
  assertEquals(small.graph.nodes.map(({ op }) => op).filter((op) => op !== "Constant"), [
    small.graph.nodes.at(-1)!.op,
  ]);
  assertStringIncludes(describe(small), "Softmax(");
  assertEquals(small.runs.length, 1);
  const folder = await Deno.makeTempDir();
  try {
    const path = await writeCase(small, `${folder}/case`);
    const read = readOnnx(memorySource("case", await Deno.readFile(path)));
    assertEquals(read.graph.nodes.length, small.graph.nodes.length);
    const { runs } = JSON.parse(await Deno.readTextFile(`${folder}/case.json`));
    assertEquals(Object.keys(runs[0]), [...small.runs[0]!.keys()]);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("results differ by types, shapes, and more than rounding", () => {
  const tensor = (data: number[], shape = [data.length]) => [
    new Map([["y", { dtype: "f32" as const, shape, data: Float32Array.from(data) }]]),
  ];
  assertEquals(difference(tensor([1, 1000]), tensor([1.001, 1000.001])), undefined);
  assertEquals(difference(tensor([NaN, Infinity]), tensor([NaN, Infinity])), undefined);
  assertStringIncludes(difference(tensor([1, 2]), tensor([1, 2.01]))!, "run 0, y[1] is 2");
  assert(difference(tensor([1, Infinity]), tensor([1, 3])));
  assert(difference(tensor([0]), tensor([NaN])));
  assertStringIncludes(difference(tensor([1, 2], [1, 2]), tensor([1, 2]))!, "is [1,2], [2] wanted");
});
