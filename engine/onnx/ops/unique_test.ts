// Unique of NaN and zeros of both signs, as numpy.unique 2.4 gives them with and without an axis.

import { assertEquals } from "@std/assert";
import { runNode } from "../../../tests/support/onnx_node.ts";

Deno.test("NaN comes last, once among elements and each by itself among lines", async () => {
  const one = { op: "Unique", opset: 21, outputs: 4 };
  const values = [1, NaN, 2, 1, NaN, 0, -0, Infinity];
  const elements = await runNode({ ...one, inputs: [["f32", [8], values]] });
  assertEquals(elements.map(({ data }) => Array.from(data as Float32Array, Number)), [
    [0, 1, 2, Infinity, NaN],
    [5, 0, 2, 7, 1],
    [1, 4, 2, 1, 4, 0, 0, 3],
    [2, 2, 1, 1, 2],
  ]);
  const lines = await runNode({
    ...one,
    attributes: { axis: 0 },
    inputs: [["f32", [3, 2], [1, NaN, 1, NaN, 0, 1]]],
  });
  assertEquals(lines.map(({ data }) => Array.from(data as Float32Array, Number)), [
    [0, 1, 1, NaN, 1, NaN],
    [2, 0, 1],
    [1, 2, 0],
    [1, 1, 1],
  ]);
});
