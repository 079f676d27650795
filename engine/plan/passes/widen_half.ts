// widen_half: activations of half precision become float32, because kernels compute in float32 and exist
// for nothing narrower; on the reference too, so that all devices round where the others do. Inputs are widened
// once where they come in and results rounded once where they leave; weights keep their format and are decoded as
// they are loaded. Numbers are closer to what the model means than with a rounding at every op, and no sum
// overflows at 65504. A cast that the file writes is a rounding that it means: that one is done.

import { createGraphBuilder, type GraphBuilder } from "../../graph/builder.ts";
import type { Attributes, DataType, Graph, Node, StateType, Value } from "../../graph/graph.ts";
import { numbersOf } from "../../ops/host_numbers.ts";
import type { HostTensor } from "../../ops/host_tensor.ts";
import { getOp } from "../../ops/mod.ts";
import type { Pass } from "./pass.ts";

/** Widens float16 and bfloat16. */
export const widenHalf: Pass = {
  name: "widen_half",
  reads: "everything",
  run(graph) {
    const values = graph.nodes.flatMap(({ inputs, outputs }) => [...inputs, ...outputs]);
    return values.some((value) => value && isHalf(value.dtype)) ? widened(graph) : graph;
  },
};

function isHalf(dtype: DataType): boolean {
  return dtype === "f16" || dtype === "bf16";
}

function widened(graph: Graph): Graph {
  const builder = createGraphBuilder(graph.name, getOp);
  const moved = new Map<Value, Value>();
  for (const value of graph.inputs) {
    const input = builder.input(value.name, value.shape, value.dtype);
    moved.set(value, isHalf(value.dtype) ? castTo(builder, input, "f32") : input);
  }
  const move = (value: Value): Value => {
    const known = moved.get(value) ?? moveGiven(builder, value);
    moved.set(value, known);
    return known;
  };
  for (const node of graph.nodes) {
    const inputs = node.inputs.map((value) => value && move(value));
    const outputs = moveNode(builder, node, inputs);
    node.outputs.forEach((value, i) => moved.set(value, outputs[i]!));
  }
  const taken = new Set<Value>();
  for (const value of graph.outputs) {
    const made = moved.get(value)!;
    // What was a cast may be given, or be an output already; a cast is always a value of its own.
    const isOwn = !isHalf(value.dtype) && made.role === "activation" && !taken.has(made);
    builder.output(value.name, isOwn ? made : castTo(builder, made, value.dtype));
    taken.add(made);
  }
  return builder.build();
}

function castTo(builder: GraphBuilder, value: Value, to: DataType): Value {
  return builder.op("cast", [value], { to }, `${value.name}.${to}`)[0]!;
}

/** A weight, constant or state. */
function moveGiven(builder: GraphBuilder, value: Value): Value {
  const { name, role, tensor, data, dtype } = value;
  const shape = value.shape as readonly number[];
  const wide = isHalf(dtype) ? "f32" : dtype;
  if (role === "state") return builder.state(name, shape, dtype as StateType);
  if (tensor) return builder.weight(name, tensor, wide);
  if (wide === dtype) return builder.constant(name, data as HostTensor["data"], shape, dtype);
  const stored: HostTensor = { dtype, shape, data: data as HostTensor["data"] };
  return builder.constant(name, Float32Array.from(numbersOf(stored)), shape, "f32");
}

function moveNode(
  builder: GraphBuilder,
  node: Node,
  inputs: readonly (Value | undefined)[],
): readonly Value[] {
  const { op, name, attributes } = node;
  if (op === "cast") return [moveCast(builder, node, inputs[0]!)];
  if (op === "bit_cast") return moveBits(builder, node, inputs[0]!);
  return builder.op(op, inputs, wideAttributes(attributes), name);
}

/** Types of whose numbers each is one of float16 and of bfloat16. */
const EXACT: ReadonlySet<DataType> = new Set([
  ...["bool", "i8", "u8", "i4", "u4", "i2", "u2"] as const,
  ...["f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f4e2m1"] as const,
]);

/** Types with numbers that are none of float32: through it they would be rounded twice. */
const WIDER: ReadonlySet<DataType> = new Set(["f64", "i32", "u32", "i64", "u64"]);

function moveCast(builder: GraphBuilder, node: Node, input: Value): Value {
  const { name, attributes } = node, from = node.inputs[0]!.dtype, to = node.outputs[0]!.dtype;
  const rounds = isHalf(to) && from !== to && attributes.rounds === true && !EXACT.has(from);
  if (rounds) {
    // Through float32, where that holds each of the numbers: kernels know it best.
    const isReady = input.dtype === "f32" || WIDER.has(from);
    const given = isReady ? input : castTo(builder, input, "f32");
    return castTo(builder, castTo(builder, given, to), "f32");
  }
  const wide = isHalf(to) ? "f32" : to;
  if (input.dtype === "f32" && wide === "f32") return input;
  return builder.op("cast", [input], { ...attributes, to: wide }, name)[0]!;
}

/** `dtype` and `to` say what a result is. */
function wideAttributes(attributes: Attributes): Attributes {
  const wide = Object.entries(attributes).map(([key, value]) =>
    (key === "dtype" || key === "to") && isHalf(value as DataType) ? [key, "f32"] : [key, value]
  );
  return Object.fromEntries(wide);
}

// Bits are those of the narrow type.
function moveBits(builder: GraphBuilder, node: Node, input: Value): readonly Value[] {
  const from = node.inputs[0]!.dtype, to = node.outputs[0]!.dtype;
  const narrow = isHalf(from) ? castTo(builder, input, from) : input;
  const bits = builder.op("bit_cast", [narrow], node.attributes, node.name);
  return isHalf(to) ? [castTo(builder, bits[0]!, "f32")] : bits;
}
