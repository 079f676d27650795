// Nodes whose meaning or signature changed with the operator set: each in an old and a new version. The
// expected numbers are what the specification of that version says, worked out by hand.

import { assertEquals, assertRejects } from "@std/assert";
import { type NodeCase, runNode } from "../../../tests/support/onnx_node.ts";
import type { Vector } from "../../../tests/support/run_op.ts";
import { getElement } from "../../ops/host_tensor.ts";

const f32 = (shape: readonly number[], values: readonly number[]): Vector => ["f32", shape, values];
const i64 = (...values: readonly number[]): Vector => ["i64", [values.length], values];
const scalar = (value: number): Vector => f32([], [value]);

const X = f32([2, 3], [1, 2, 3, 4, 5, 6]);
const IMAGE = f32([1, 2, 1, 2], [-1, 2, -3, 4]);

interface VersionCase extends NodeCase {
  readonly what: string;
  /** Shape and elements of each output. */
  readonly expected: readonly (readonly [readonly number[], readonly number[]])[];
}

const cases: readonly VersionCase[] = [
  {
    what: "aligns the second input at an axis",
    op: "Add",
    opset: 6,
    attributes: { broadcast: 1, axis: 0 },
    inputs: [X, f32([2], [10, 20])],
    expected: [[[2, 3], [11, 12, 13, 24, 25, 26]]],
  },
  {
    what: "broadcasts from the end",
    op: "Add",
    opset: 7,
    inputs: [X, f32([2, 1], [10, 20])],
    expected: [[[2, 3], [11, 12, 13, 24, 25, 26]]],
  },
  {
    what: "ignores which inputs were to be overwritten",
    op: "Neg",
    opset: 1,
    attributes: { consumed_inputs: [0] },
    inputs: [f32([2], [1, -2])],
    expected: [[[2], [-1, 2]]],
  },
  {
    what: "has its limits as attributes",
    op: "Clip",
    opset: 6,
    attributes: { min: { f: 2 }, max: { f: 4 } },
    inputs: [X],
    expected: [[[2, 3], [2, 2, 3, 4, 4, 4]]],
  },
  {
    what: "has its limits as inputs, each of which may be missing",
    op: "Clip",
    opset: 13,
    inputs: [X, undefined, scalar(4)],
    expected: [[[2, 3], [1, 2, 3, 4, 4, 4]]],
  },
  {
    what: "has one slope a channel",
    op: "PRelu",
    opset: 6,
    inputs: [IMAGE, f32([2], [10, 100])],
    expected: [[[1, 2, 1, 2], [-10, 2, -300, 4]]],
  },
  {
    what: "takes all dims from the axis on as one line",
    op: "Hardmax",
    opset: 11,
    inputs: [f32([1, 2, 2], [1, 4, 3, 2])],
    expected: [[[1, 2, 2], [0, 1, 0, 0]]],
  },
  {
    what: "takes the last dim as a line",
    op: "Hardmax",
    opset: 13,
    inputs: [f32([1, 2, 2], [1, 4, 3, 2])],
    expected: [[[1, 2, 2], [0, 1, 1, 0]]],
  },
  {
    what: "has axes as attribute",
    op: "Squeeze",
    opset: 11,
    attributes: { axes: [0] },
    inputs: [f32([1, 1, 2], [1, 2])],
    expected: [[[1, 2], [1, 2]]],
  },
  {
    what: "has axes as input",
    op: "Squeeze",
    opset: 13,
    inputs: [f32([1, 1, 2], [1, 2]), i64(-2)],
    expected: [[[1, 2], [1, 2]]],
  },
  {
    what: "counts axes in the result",
    op: "Unsqueeze",
    opset: 11,
    attributes: { axes: [0, -1] },
    inputs: [f32([2], [1, 2])],
    expected: [[[1, 2, 1], [1, 2]]],
  },
  {
    what: "takes the places of axes from an input that only a run knows",
    op: "Unsqueeze",
    opset: 13,
    inputs: [f32([2], [1, 2]), i64(1)],
    expected: [[[2, 1], [1, 2]]],
  },
  {
    what: "has axes as attribute",
    op: "ReduceSum",
    opset: 11,
    attributes: { axes: [1], keepdims: 0 },
    inputs: [X],
    expected: [[[2], [6, 15]]],
  },
  {
    what: "has axes as input",
    op: "ReduceSum",
    opset: 13,
    inputs: [X, i64(0)],
    constantsFrom: 1,
    expected: [[[1, 3], [5, 7, 9]]],
  },
  {
    what: "reduces everything without axes",
    op: "ReduceMax",
    opset: 18,
    attributes: { keepdims: 0 },
    inputs: [X],
    expected: [[[], [6]]],
  },
  {
    what: "takes single elements for lines if asked to",
    op: "ReduceSumSquare",
    opset: 18,
    attributes: { noop_with_empty_axes: 1 },
    inputs: [X],
    expected: [[[2, 3], [1, 4, 9, 16, 25, 36]]],
  },
  {
    what: "has sizes as attribute",
    op: "Split",
    opset: 2,
    attributes: { axis: 1, split: [1, 2] },
    inputs: [X],
    outputs: 2,
    expected: [[[2, 1], [1, 4]], [[2, 2], [2, 3, 5, 6]]],
  },
  {
    what: "makes the last part smaller",
    op: "Split",
    opset: 18,
    attributes: { axis: 1, num_outputs: 2 },
    inputs: [X],
    outputs: 2,
    expected: [[[2, 2], [1, 2, 4, 5]], [[2, 1], [3, 6]]],
  },
  {
    what: "has bounds as attributes and clamps them",
    op: "Slice",
    opset: 9,
    attributes: { axes: [1], starts: [-2], ends: [1000] },
    inputs: [X],
    expected: [[[2, 2], [2, 3, 5, 6]]],
  },
  {
    what: "goes backwards to before the beginning",
    op: "Slice",
    opset: 13,
    inputs: [
      X,
      i64(-1),
      ["i64", [1], [-(2n ** 63n)]],
      i64(1),
      i64(-2),
    ],
    constantsFrom: 1,
    expected: [[[2, 2], [3, 1, 6, 4]]],
  },
  {
    what: "goes to the end, which exporters write as the largest integer",
    op: "Slice",
    opset: 13,
    inputs: [X, i64(1), ["i64", [1], [2n ** 63n - 1n]], i64(1)],
    constantsFrom: 1,
    expected: [[[2, 2], [2, 3, 5, 6]]],
  },
  {
    what: "has margins and value as attributes",
    op: "Pad",
    opset: 2,
    attributes: { pads: [0, 1, 0, 0], value: { f: 9 } },
    inputs: [f32([1, 2], [1, 2])],
    expected: [[[1, 3], [9, 1, 2]]],
  },
  {
    what: "pads the axes it is given, and cuts by negative margins",
    op: "Pad",
    opset: 18,
    inputs: [X, i64(-1, 1), scalar(7), i64(1)],
    constantsFrom: 1,
    expected: [[[2, 3], [2, 3, 7, 5, 6, 7]]],
  },
  {
    what: "has k as attribute",
    op: "TopK",
    opset: 1,
    attributes: { k: 1 },
    inputs: [X],
    outputs: 2,
    expected: [[[2, 1], [3, 6]], [[2, 1], [2, 2]]],
  },
  {
    what: "takes k as input and the smallest if asked to",
    op: "TopK",
    opset: 11,
    attributes: { largest: 0, axis: 0 },
    inputs: [X, i64(1)],
    constantsFrom: 1,
    outputs: 2,
    expected: [[[1, 3], [1, 2, 3]], [[1, 3], [0, 0, 0]]],
  },
  {
    what: "has the new shape as attribute",
    op: "Reshape",
    opset: 1,
    attributes: { shape: [3, -1] },
    inputs: [X],
    expected: [[[3, 2], [1, 2, 3, 4, 5, 6]]],
  },
  {
    what: "repeats along one axis",
    op: "Tile",
    opset: 5,
    inputs: [f32([1, 2], [1, 2]), scalar(2), scalar(1)],
    constantsFrom: 1,
    expected: [[[1, 4], [1, 2, 1, 2]]],
  },
  {
    what: "gives its input and a mask of ones",
    op: "Dropout",
    opset: 10,
    inputs: [f32([2], [1, 2])],
    outputs: 2,
    expected: [[[2], [1, 2]], [[2], [1, 1]]],
  },
  {
    what: "gives the dims from start to end",
    op: "Shape",
    opset: 15,
    attributes: { start: -1 },
    inputs: [X],
    expected: [[[1], [3]]],
  },
];

for (const { what, expected, ...node } of cases) {
  Deno.test(`${node.op} of version ${node.opset} ${what}`, async () => {
    const outputs = await runNode(node);
    const got: unknown = outputs.map((output) => [
      output.shape,
      Array.from({ length: output.data.length }, (_, i) => getElement(output, i)),
    ]);
    assertEquals(got, expected);
  });
}

Deno.test("an attribute of a later version is refused by name", async () => {
  const node: NodeCase = {
    op: "ScatterElements",
    opset: 13,
    attributes: { reduction: "add" },
    inputs: [f32([2], [1, 2]), i64(0), f32([1], [5])],
  };
  await assertRejects(() => runNode(node), Error, '"reduction" does not exist in version 11');
});

Deno.test("an op that came later is refused with its version", async () => {
  const node: NodeCase = { op: "Gelu", opset: 19, inputs: [X] };
  await assertRejects(() => runNode(node), Error, "it came with version 20, not 19");
});
