// Sizes that Resize and Upsample give, as onnxruntime 1.32.0 has them: a product of two float32 numbers, cut off.

import { assertEquals } from "@std/assert";
import { runNode } from "../../../tests/support/onnx_node.ts";
import { floats, writeOnnx } from "../../../tests/support/write_onnx.ts";
import { type GraphTensor, loadGraph } from "../../../mod.ts";

/** A scale and the sizes that it makes of 5, 10, 30, 35 and 90. */
const SIZES: readonly (readonly [scale: number, sizes: readonly number[]])[] = [
  [1.4, [7, 14, 42, 49, 126]],
  [0.7, [3, 7, 21, 24, 63]],
  [1 / 3, [1, 3, 10, 11, 30]],
  [0.1, [0, 1, 3, 3, 9]],
  [1.7, [8, 17, 51, 59, 153]],
  [2.25, [11, 22, 67, 78, 202]],
  [1.1, [5, 11, 33, 38, 99]],
];
const BEFORE = [5, 10, 30, 35, 90];

for (const [scale, sizes] of SIZES) {
  Deno.test(`${scale} times ${BEFORE} is ${sizes}, whether sizes are known or not`, async () => {
    const scales = new Float32Array([scale, 1]);
    const ops = [
      { op: "Upsample", opset: 9, before: [] },
      { op: "Resize", opset: 21, before: [undefined] },
    ];
    for (const { op, opset, before } of ops) {
      for (const [i, size] of BEFORE.entries()) {
        const [y] = await runNode({
          op,
          opset,
          inputs: [["f32", [size, 1], Array(size).fill(0)], ...before, ["f32", [2], [...scales]]],
          constantsFrom: 1,
        });
        assertEquals([op, y!.shape], [op, [sizes[i]!, 1]]);
      }
    }
    const file = writeOnnx({
      nodes: [{ op: "Resize", inputs: ["x", "", "scales"], outputs: ["y"] }],
      inputs: [["x", 1, ["N", 1]]],
      outputs: [["y", 1, ["M", 1]]],
      initializers: [{ name: "scales", type: 1, dims: [2], raw: floats(...scales) }],
    });
    const path = await Deno.makeTempFile({ suffix: ".onnx" });
    try {
      await Deno.writeFile(path, file);
      using graph = await loadGraph(path, { device: "reference" });
      for (const [i, size] of BEFORE.entries()) {
        const { y } = await graph.run({ x: { data: new Float32Array(size), dims: [size, 1] } });
        assertEquals((y as GraphTensor).dims, [sizes[i]!, 1]);
      }
    } finally {
      await Deno.remove(path);
    }
  });
}
