// ONNX graphs whose constants ask for results that cannot be: below 0, beyond 2^53, in parts without end. What is wrong
// is told by the node when the graph is loaded, and at once.

import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import { FormatError, type GraphTensor, loadGraph } from "../mod.ts";
import { type Attribute, floats, type Tensor, writeOnnx } from "./support/write_onnx.ts";
import { withFolder } from "./support/folder.ts";

interface Case {
  readonly op: string;
  /** Constants behind x, f32[2, 3]; only they, where `alone`. */
  readonly constants?: readonly Omit<Tensor, "name">[];
  readonly alone?: boolean;
  readonly attributes?: Readonly<Record<string, Attribute>>;
  readonly message: RegExp;
}

const longs = (...values: readonly (number | bigint)[]): Omit<Tensor, "name"> => ({
  ...{ type: 7, dims: [values.length] },
  raw: new Uint8Array(BigInt64Array.from(values, BigInt).buffer),
});
const scalar = (value: number | bigint) => ({ ...longs(value), dims: [] });
const NONE: Omit<Tensor, "name"> = { type: 1, dims: [0], raw: new Uint8Array(0) };
const scales = (...values: number[]) => ({
  type: 1,
  dims: [values.length],
  raw: floats(...values),
});
const FAR = 2n ** 62n;
const NO_SIZES = /is no list of sizes: they are few whole numbers within 2\^53/;

const CASES: readonly Case[] = [
  { op: "Pad", constants: [longs(-5, -5, -5, -5)], message: /the result would have a dim of -8/ },
  { op: "Tile", constants: [longs(-1, 2)], message: /a dim of -2/ },
  { op: "TopK", constants: [longs(-1)], message: /a dim of -1/ },
  { op: "Resize", constants: [NONE, scales(-1, 1)], message: /a dim of -2/ },
  { op: "ConstantOfShape", alone: true, constants: [longs(-1, 3)], message: /a dim of -1/ },
  { op: "ConstantOfShape", alone: true, constants: [longs(FAR, FAR)], message: NO_SIZES },
  { op: "Expand", constants: [longs(FAR, 2, 3)], message: NO_SIZES },
  { op: "Reshape", constants: [longs(FAR, -1)], message: NO_SIZES },
  { op: "Reshape", constants: [longs(...Array(5000).fill(1))], message: NO_SIZES },
  { op: "Range", alone: true, constants: [0, FAR, 1].map(scalar), message: NO_SIZES },
  { op: "Split", attributes: { num_outputs: { i: 0 } }, message: /0 parts for 1 outputs/ },
];

async function withGraph(
  { op, constants = [], alone = false, attributes = {} }: Omit<Case, "message">,
  use: (path: string) => Promise<unknown>,
): Promise<void> {
  const initializers = constants.map((tensor, i) => ({ ...tensor, name: `k${i}` }));
  const inputs = [...alone ? [] : ["x"], ...initializers.map(({ name }) => name)];
  const bytes = writeOnnx({
    inputs: [["x", 1, [2, 3]]],
    outputs: [["y", 1, ["a", "b"]]],
    nodes: [{ op, inputs, outputs: ["y"], attributes }],
    initializers,
  }, { opsets: { "": 18 } });
  await withFolder(async (folder) => {
    await Deno.writeFile(`${folder}/hostile.onnx`, bytes);
    await use(`${folder}/hostile.onnx`);
  });
}

for (const [index, { message, ...given }] of CASES.entries()) {
  Deno.test(`sizes that cannot be are refused by their node: ${index}, ${given.op}`, () =>
    withGraph(given, async (path) => {
      const error = await assertRejects(() => loadGraph(path, { device: "wasm" }), FormatError);
      assertMatch(error.message, message);
      assertMatch(error.message, new RegExp(`node ${given.op}`));
    }));
}

Deno.test("of a billion parts those are made that a node gives out", () =>
  withGraph({ op: "Split", attributes: { num_outputs: { i: 1e9 } } }, async (path) => {
    using graph = await loadGraph(path, { device: "wasm", threads: 1 });
    const { y } = await graph.run({ x: { dims: [2, 3], data: floatsOf(6) } });
    const { dims, data } = y as GraphTensor;
    assertEquals([dims, [...data]], [[1, 3], [0, 1, 2]]);
  }));

function floatsOf(count: number): Float32Array<ArrayBuffer> {
  return Float32Array.from({ length: count }, (_, i) => i);
}
