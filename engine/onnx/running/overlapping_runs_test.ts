// Runs of one graph that are asked for while another one is under way.

import { assertEquals } from "@std/assert";
import { gpuTest } from "../../../tests/support/gpu.ts";
import { floats, writeOnnx } from "../../../tests/support/write_onnx.ts";
import type { GraphTensor } from "./graph_tensor.ts";
import { loadGraph } from "./load_graph.ts";

const WIDTH = 8;

/** y = softmax(x · 2) · 3. */
const GRAPH = writeOnnx({
  inputs: [["x", 1, ["N", WIDTH]]],
  outputs: [["y", 1, ["N", WIDTH]]],
  initializers: [
    {
      ...{ name: "w", type: 1, dims: [WIDTH, WIDTH] },
      raw: floats(
        ...Array.from({ length: WIDTH * WIDTH }, (_, i) => i % (WIDTH + 1) === 0 ? 2 : 0),
      ),
    },
    { name: "three", type: 1, dims: [1], raw: floats(3) },
  ],
  nodes: [
    { op: "MatMul", inputs: ["x", "w"], outputs: ["p"] },
    { op: "Softmax", inputs: ["p"], outputs: ["s"], attributes: { axis: { i: -1 } } },
    { op: "Mul", inputs: ["s", "three"], outputs: ["y"] },
  ],
});

/** Rows whose place `hot` holds ln 2 / 2 and the others 0: of 9 parts it gets two. */
function rows(count: number, hot: number): { x: GraphTensor; y: number[] } {
  const data = new Float32Array(count * WIDTH), y = Array(count * WIDTH).fill(1 / 3);
  for (let row = 0; row < count; row++) {
    data[row * WIDTH + hot] = Math.LN2 / 2;
    y[row * WIDTH + hot] = 2 / 3;
  }
  return { x: { data, dims: [count, WIDTH] }, y };
}

async function check(device: "gpu" | "wasm" | "reference"): Promise<void> {
  const path = await Deno.makeTempFile({ suffix: ".onnx" });
  try {
    await Deno.writeFile(path, GRAPH);
    using graph = await loadGraph(path, { device });
    const cases = [rows(1, 0), rows(5, 3), rows(2, 7), rows(5, 1), rows(3, 2)];
    const controller = new AbortController();
    const runs = cases.map(({ x }, i) =>
      graph.run({ x }, i === 2 ? { signal: controller.signal } : {})
    );
    const wrong = graph.run({ x: { data: new Float32Array(3), dims: [1, 3] } });
    const last = graph.run({ x: cases[0]!.x });
    controller.abort(new Error("enough"));
    const ends = await Promise.allSettled([...runs, wrong, last]);
    const found = ends.map((end) =>
      end.status === "rejected"
        ? end.reason.name
        : Array.from((end.value.y as GraphTensor).data as Float32Array, (n) => +n.toFixed(5))
    );
    const expected = cases.map(({ y }) => y.map((n) => +n.toFixed(5)));
    assertEquals(found, [...expected.with(2, "Error" as never), "RangeError", expected[0]]);
  } finally {
    await Deno.remove(path);
  }
}

for (const device of ["wasm", "reference"] as const) {
  Deno.test(`runs of a graph on ${device} that overlap get their own results`, () => check(device));
}
gpuTest("runs of a graph on gpu that overlap get their own results", () => check("gpu"));
