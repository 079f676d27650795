// A tiny graph around one case of an op: inputs `input0`, `input1`, …, the node, outputs `output0`, ….
// q8 values cannot enter or leave a graph, so a quantised input goes through quantize and a quantised
// output is multiplied by a diagonal matrix.

import { getFormat } from "../../quant/mod.ts";
import type { ByteSource } from "../byte_source.ts";
import type { TensorInfo } from "../formats/source.ts";
import { createGraphBuilder } from "../graph/builder.ts";
import type { Graph, Value } from "../graph/graph.ts";
import type { CaseInput, OpCase } from "../ops/op_case.ts";
import { getOp } from "../ops/mod.ts";
import { isQ8 } from "../ops/q8_rows.ts";

/** Builds the graph of a case. */
export function caseGraph(op: string, { name, inputs, attributes = {} }: OpCase): Graph {
  const builder = createGraphBuilder(`${op}: ${name}`, getOp);
  const values = inputs.map((input, i) => input && addInput(builder, input, i));
  for (const [i, value] of builder.op(op, values, attributes, op).entries()) {
    if (value.role === "state") continue;
    builder.output(`output${i}`, isQ8(value.dtype) ? readable(builder, value) : value);
  }
  return builder.build();
}

function addInput(
  builder: ReturnType<typeof createGraphBuilder>,
  input: CaseInput,
  index: number,
): Value {
  const name = `input${index}`;
  if (input.role === "weight") {
    const { format, shape, bytes } = input;
    return builder.weight(name, tensorInMemory(name, { format, shape, bytes }));
  }
  if (input.role === "state") return builder.state(name, input.shape, input.dtype);
  if (input.role === "constant") {
    return builder.constant(name, input.data, input.shape as readonly number[]);
  }
  const value = builder.input(name, input.shape, input.dtype);
  if (input.role === "input") return value;
  return builder.op("quantize", [value], {
    format: input.isLow ? "q8_low" : "q8",
  }, `${name}.q8`)[0]!;
}

function readable(builder: ReturnType<typeof createGraphBuilder>, value: Value): Value {
  const width = value.shape.at(-1) as number;
  const diagonal = new Float32Array(width * width);
  for (let i = 0; i < width; i++) diagonal[i * width + i] = 1;
  // Rows of low sums meet weights that are rounded.
  const rounded = value.dtype === "q8_low", format = getFormat(rounded ? "F32" : "Q8_0");
  const bytes = new Uint8Array(diagonal.length / format.blockSize * format.blockBytes);
  format.encode!(diagonal, bytes);
  const weight = builder.weight(
    "diagonal",
    tensorInMemory("diagonal", { format: format.name, shape: [width, width], bytes }),
  );
  return builder.op("matmul", [value, weight], { rounded }, "readable")[0]!;
}

/** A tensor whose bytes are in memory. */
export function tensorInMemory(
  name: string,
  { format, shape, bytes }: {
    readonly format: string;
    readonly shape: readonly number[];
    readonly bytes: Uint8Array;
  },
): TensorInfo {
  const source: ByteSource = {
    name: `memory of ${name}`,
    size: bytes.length,
    readInto(offset, target) {
      target.set(bytes.subarray(offset, offset + target.length));
    },
    close() {},
  };
  return { name, shape, format, source, offset: 0, byteLength: bytes.length };
}
