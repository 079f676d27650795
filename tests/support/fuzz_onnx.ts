// What must hold for any bytes given to loadGraph: they are refused with a typed error, or derive and run
// within bounds. Nothing outside the bytes is ever opened: there is no folder here to open anything from.

import { TroodonError } from "../../engine/errors.ts";
import type { OnnxModel, OnnxValueInfo } from "../../engine/onnx/file/model.ts";
import { readOnnx } from "../../engine/onnx/file/open_onnx.ts";
import { elementCount, hostArray } from "../../engine/ops/host_tensor.ts";
import type { HostValue } from "../../engine/onnx/derivation/tensor.ts";
import { memorySource } from "../../engine/io.ts";
import { openGraph } from "../../engine/onnx/running/open_graph.ts";
import { openDevice } from "../../engine/run/devices.ts";
import { createReferenceBackend } from "../../engine/run/reference/reference_backend.ts";
import { floats, longs, writeOnnx } from "./write_onnx.ts";

const MOST_BYTES = 2 ** 20;
const MOST_MS = 1000;

/**
 * Reads, derives and runs a model of any bytes.
 *
 * @throws {Error} If anything but a typed error comes, or a message of several lines.
 */
export async function fuzzOnnx(bytes: Uint8Array): Promise<void> {
  try {
    await runModel(readOnnx(memorySource("fuzz", bytes)));
  } catch (error) {
    const typed = error instanceof TroodonError || error instanceof RangeError ||
      error instanceof TypeError || (error as Error).name === "TimeoutError";
    // A TypeError of the language itself is a bug, not a refusal.
    const isBug = error instanceof TypeError &&
      /undefined|is not a function|null|not iterable|BigInt/.test(error.message);
    const isOverflow = error instanceof RangeError && /call stack/.test(error.message);
    if (!typed || isBug || isOverflow) throw error;
    if ((error as Error).message.includes("\n")) throw new Error(`Several lines: ${error}`);
  }
}

async function runModel(model: OnnxModel): Promise<void> {
  const graph = openGraph(model, {
    device: await openDevice("reference", {}),
    reference: createReferenceBackend(),
    maxBytes: MOST_BYTES,
    limits: {},
  });
  try {
    const given = graph.inputs.flatMap((input) => {
      const value = graph.hasDefault(input.name) ? undefined : someValue(input);
      return value ? [[input.name, value] as const] : [];
    });
    await graph.run(new Map(given), { signal: AbortSignal.timeout(MOST_MS) });
  } finally {
    graph.dispose();
  }
}

function someValue({ type }: OnnxValueInfo): HostValue | undefined {
  if (type?.kind !== "tensor" || type.dtype === "q8") return undefined;
  const shape = (type.shape ?? []).map((dim) => typeof dim === "number" ? dim : 2);
  const count = elementCount(shape);
  if (count > MOST_BYTES) return undefined;
  if (type.dtype === "string") return { dtype: "string", shape, data: Array(count).fill("a") };
  return { dtype: type.dtype, shape, data: hostArray(type.dtype, { count }) };
}

/** Models that between them use most of what the reader and the derivation know. */
export function onnxSeeds(): Uint8Array[] {
  return [shapeChain(), controlFlow(), convolution(), functions(), forest()];
}

function shapeChain(): Uint8Array {
  return writeOnnx({
    inputs: [["x", 1, ["N", 4]], ["mask", 1, [1, "sumN"]]],
    outputs: [["y", 1, ["N", 2, 2]], ["z", 1, ["N", "sumN"]]],
    initializers: [
      { name: "W", type: 1, dims: [4, 4], raw: floats(...Array(16).keys()) },
      { name: "zero", type: 7, dims: [], raw: longs(0) },
      { name: "rest", type: 7, dims: [2], raw: longs(2, -1) },
      { name: "axis", type: 7, dims: [1], raw: longs(0) },
      { name: "sum", type: 7, dims: [1], raw: longs(1) },
    ],
    nodes: [
      { op: "MatMul", inputs: ["x", "W"], outputs: ["xw"] },
      { op: "Shape", inputs: ["x"], outputs: ["shape"] },
      { op: "Gather", inputs: ["shape", "zero"], outputs: ["n"] },
      { op: "Unsqueeze", inputs: ["n", "axis"], outputs: ["n1"] },
      { op: "Concat", inputs: ["n1", "rest"], outputs: ["to"], attributes: { axis: { i: 0 } } },
      { op: "Reshape", inputs: ["xw", "to"], outputs: ["y"] },
      {
        op: "ReduceSum",
        inputs: ["x", "sum"],
        outputs: ["s"],
        attributes: { keepdims: { i: 1 } },
      },
      { op: "Add", inputs: ["s", "mask"], outputs: ["z"] },
    ],
  });
}

function controlFlow(): Uint8Array {
  return writeOnnx({
    inputs: [["x", 1, ["n"]], ["c", 9, []]],
    outputs: [["y", 1, ["n"]], ["last", 1, ["n"]], ["rows", 1, [3, "n"]]],
    initializers: [{ name: "trips", type: 7, dims: [], raw: longs(3) }],
    nodes: [
      {
        op: "If",
        inputs: ["c"],
        outputs: ["y"],
        attributes: {
          then_branch: { g: branch("Neg", "a") },
          else_branch: { g: branch("Relu", "b") },
        },
      },
      {
        op: "Loop",
        inputs: ["trips", "", "x"],
        outputs: ["last", "rows"],
        attributes: {
          body: {
            g: {
              inputs: [["i", 7, []], ["go", 9, []], ["v", 1, ["n"]]],
              outputs: [["go2", 9, []], ["v2", 1, ["n"]], ["row", 1, ["n"]]],
              nodes: [
                { op: "Identity", inputs: ["go"], outputs: ["go2"] },
                { op: "Add", inputs: ["v", "x"], outputs: ["v2"] },
                { op: "Identity", inputs: ["v2"], outputs: ["row"] },
              ],
            },
          },
        },
      },
    ],
  });
}

function branch(op: string, output: string) {
  const outputs = [[output, 1, ["n"]]] as const;
  return { inputs: [], outputs, nodes: [{ op, inputs: ["x"], outputs: [output] }] };
}

function convolution(): Uint8Array {
  return writeOnnx({
    inputs: [["x", 1, [1, 2, "H", 4]]],
    outputs: [["y", 1, [1, 3, "h", "w"]], ["i", 7, [1, 3, "h"]]],
    initializers: [
      { name: "W", type: 1, dims: [3, 2, 3, 3], raw: floats(...Array(54).keys()) },
    ],
    nodes: [
      {
        op: "Conv",
        inputs: ["x", "W"],
        outputs: ["c"],
        attributes: { pads: { ints: [1, 1, 1, 1] }, strides: { ints: [1, 1] } },
      },
      { op: "LeakyRelu", inputs: ["c"], outputs: ["y"], attributes: { alpha: { f: 0.1 } } },
      {
        op: "ArgMax",
        inputs: ["y"],
        outputs: ["i"],
        attributes: { axis: { i: -1 }, keepdims: { i: 0 } },
      },
    ],
  });
}

function functions(): Uint8Array {
  return writeOnnx({
    inputs: [["x", 1, [2]]],
    outputs: [["y", 1, [2]]],
    nodes: [
      {
        op: "Constant",
        inputs: [],
        outputs: ["k"],
        attributes: { value: { t: { type: 1, dims: [], floats: [2] } } },
      },
      { op: "Twice", domain: "test", inputs: ["x", "k"], outputs: ["y"] },
    ],
  }, {
    opsets: { "": 17, test: 1 },
    functions: [{
      name: "Twice",
      domain: "test",
      inputs: ["a", "b"],
      outputs: ["r"],
      opsets: { "": 17 },
      nodes: [
        { op: "Mul", inputs: ["a", "b"], outputs: ["t"] },
        { op: "Mul", inputs: ["t", "b"], outputs: ["r"] },
      ],
    }],
  });
}

/** A scaler, which a device computes, a tree of two leaves, and a map of its scores. */
function forest(): Uint8Array<ArrayBuffer> {
  const domain = "ai.onnx.ml", labels = { classlabels_strings: { strings: ["no", "yes"] } };
  return writeOnnx({
    name: "forest",
    inputs: [["x", 1, ["N", 2]]],
    outputs: [["label", 8, ["N"]]],
    nodes: [
      {
        ...{ op: "Scaler", name: "scale", domain, inputs: ["x"], outputs: ["s"] },
        attributes: { scale: { floats: [2] }, offset: { floats: [1] } },
      },
      {
        ...{ op: "TreeEnsembleClassifier", name: "trees", domain, inputs: ["s"] },
        outputs: ["label", "scores"],
        attributes: {
          ...labels,
          nodes_treeids: { ints: [0, 0, 0] },
          nodes_nodeids: { ints: [0, 1, 2] },
          nodes_featureids: { ints: [1, 0, 0] },
          nodes_modes: { strings: ["BRANCH_LEQ", "LEAF", "LEAF"] },
          nodes_values: { floats: [0, 0, 0] },
          nodes_truenodeids: { ints: [1, 0, 0] },
          nodes_falsenodeids: { ints: [2, 0, 0] },
          class_treeids: { ints: [0, 0] },
          class_nodeids: { ints: [1, 2] },
          class_ids: { ints: [0, 1] },
          class_weights: { floats: [1, 1] },
        },
      },
    ],
  }, { opsets: { "": 17, [domain]: 3 } });
}
