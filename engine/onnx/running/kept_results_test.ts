// Results that stay on the device (`keep`), and how often the host waits for one.

import { assert, assertEquals, assertRejects } from "@std/assert";
import { gpuTest } from "../../../tests/support/gpu.ts";
import { floats, longs, writeOnnx } from "../../../tests/support/write_onnx.ts";
import type { GraphTensor, KeptTensor } from "./graph_tensor.ts";
import type { LoadedGraph } from "./graph_types.ts";
import { loadGraph } from "./load_graph.ts";

const WIDTH = 8;

/** y = x · w, z = x + x, and rows of table by ids. */
const FIRST = writeOnnx({
  inputs: [["x", 1, ["N", WIDTH]]],
  outputs: [["y", 1, ["N", WIDTH]], ["z", 1, ["N", WIDTH]]],
  initializers: [{
    ...{ name: "w", type: 1, dims: [WIDTH, WIDTH] },
    raw: floats(...Array.from({ length: WIDTH * WIDTH }, (_, i) => Math.sin(i))),
  }],
  nodes: [
    { op: "MatMul", inputs: ["x", "w"], outputs: ["y"] },
    { op: "Add", inputs: ["x", "x"], outputs: ["z"] },
  ],
});

/** A determinant, which the host computes, between two parts of the GPU; `s` is read on both sides. */
const SECOND = writeOnnx({
  inputs: [["a", 1, ["N", WIDTH]], ["b", 1, ["N", WIDTH]]],
  outputs: [["out", 1, ["N", WIDTH]]],
  initializers: [
    { name: "shape", type: 7, dims: [3], raw: longs(-1, 2, 2) },
    { name: "one", type: 7, dims: [2], raw: longs(-1, 1) },
    {
      ...{ name: "w", type: 1, dims: [WIDTH, WIDTH] },
      raw: floats(...Array.from({ length: WIDTH * WIDTH }, (_, i) => Math.cos(i))),
    },
  ],
  nodes: [
    { op: "MatMul", inputs: ["a", "w"], outputs: ["p"] },
    { op: "Add", inputs: ["p", "b"], outputs: ["s"] },
    { op: "Reshape", inputs: ["s", "shape"], outputs: ["squares"] },
    { op: "Det", inputs: ["squares"], outputs: ["d"] },
    { op: "ReduceMax", inputs: ["d"], outputs: ["most"], attributes: { keepdims: { i: 0 } } },
    { op: "Mul", inputs: ["s", "most"], outputs: ["t"] },
    { op: "Relu", inputs: ["t"], outputs: ["out"] },
  ],
});

async function withGraphs(
  device: "gpu" | "wasm" | "reference",
  use: (first: LoadedGraph, second: LoadedGraph) => Promise<void>,
): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    const paths = ["first.onnx", "second.onnx"].map((name) => `${folder}/${name}`);
    for (const [i, bytes] of [FIRST, SECOND].entries()) await Deno.writeFile(paths[i]!, bytes);
    using first = await loadGraph(paths[0]!, { device });
    using second = await loadGraph(paths[1]!, { device });
    await use(first, second);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

function input(rows: number): GraphTensor {
  const data = Float32Array.from({ length: rows * WIDTH }, (_, i) => Math.sin(7 * i));
  return { data, dims: [rows, WIDTH] };
}

/** Mappings of buffers while something is done: each is a time that the host waits for the GPU. */
async function waits(action: () => Promise<void>): Promise<number> {
  const { mapAsync } = GPUBuffer.prototype;
  let count = 0;
  GPUBuffer.prototype.mapAsync = function (...given) {
    count++;
    return mapAsync.apply(this, given);
  };
  try {
    await action();
  } finally {
    GPUBuffer.prototype.mapAsync = mapAsync;
  }
  return count;
}

gpuTest(
  "results that stay on the GPU are taken by other graphs there, and the host waits less",
  () =>
    withGraphs("gpu", async (first, second) => {
      for (const rows of [3, 2]) {
        const x = input(rows);
        const { y, z } = await first.run({ x });
        const { out } = await second.run({ a: y!, b: z! });
        using kept = (await first.run({ x }, { outputs: ["y"], keep: ["y"] })).y as KeptTensor;
        assertEquals([kept.dims, kept.type], [[rows, WIDTH], "float32"]);
        const count = await waits(async () => {
          const results = await first.run({ x }, { keep: ["y", "z"] });
          using a = results.y as KeptTensor;
          using b = results.z as KeptTensor;
          const again = await second.run({ a, b });
          assertEquals(again.out, out);
        });
        // What the determinant is taken of, and the result.
        assertEquals(count, 2);
        assertEquals(await kept.read(), y);
        const mixed = await second.run({ a: kept, b: z! }, { keep: ["out"] });
        using end = mixed.out as KeptTensor;
        assertEquals(await end.read(), out);
        end.dispose();
        await assertRejects(() => end.read(), TypeError, "disposed");
      }
    }),
);

gpuTest(
  "a value of the GPU is read where another device takes it, and a result of any device may be kept",
  () =>
    withGraphs("gpu", async (first) => {
      const x = input(3);
      using y = (await first.run({ x }, { keep: ["y"] })).y as KeptTensor;
      for (const device of ["wasm", "reference"] as const) {
        await withGraphs(device, async (own, second) => {
          const { z } = await own.run({ x }, { keep: ["z"] });
          const { out } = await second.run({ a: y, b: z! });
          const expected = await second.run({
            a: await y.read(),
            b: await (z as KeptTensor).read(),
          });
          assertEquals(out, expected.out);
        });
      }
    }),
);

Deno.test("only a wanted result that goes nowhere else can be kept", () =>
  withGraphs("reference", async (first) => {
    const x = input(1);
    await assertRejects(() => first.run({ x }, { keep: ["w"] }), TypeError, 'Cannot keep "w"');
    await assertRejects(
      () => first.run({ x }, { outputs: ["y"], keep: ["z"] }),
      TypeError,
      "the results are y",
    );
    const into = { y: new Float32Array(WIDTH) };
    await assertRejects(() => first.run({ x }, { keep: ["y"], into }), TypeError, "into an array");
    const { y } = await first.run({ x }, { keep: ["y"] });
    assert((y as KeptTensor).dims.length === 2);
  }));
