// How patterns of passes are written: those of exporters as nodes of an ONNX file, which go through the importer,
// those of language models as the blocks build them.

import { readOnnx } from "../../engine/onnx/file/open_onnx.ts";
import { createGraphBuilder, type GraphBuilder } from "../../engine/graph/builder.ts";
import { createCaseRandom } from "../../engine/ops/case_random.ts";
import { symbol } from "../../engine/graph/dim/mod.ts";
import type { Attributes, Graph, Value } from "../../engine/graph/graph.ts";
import { getOp } from "../../engine/ops/mod.ts";
import { memorySource } from "../../engine/io.ts";
import { planGraph } from "../../engine/onnx/running/plan_graph.ts";
import { tensorInMemory } from "../../engine/run/case_graph.ts";
import { openDevice } from "../../engine/run/devices.ts";
import { formatBytes, getFormat } from "../../quant/mod.ts";
import { type Attribute, floats, longs, type NodeParts, writeOnnx } from "./write_onnx.ts";

/** A pattern of one pass. */
export interface Pattern {
  readonly name: string;
  /** The graph as the pass meets it. */
  graph(): Graph;
  /** The same as nodes of a file, where it comes from one. */
  readonly file?: OnnxPattern;
  /** Largest part of the largest result by which the pass may change one, where it rounds; default 1e-4. */
  readonly tolerance?: number;
}

/** `[results, op, inputs, attributes]`, names apart by spaces; the domain stands before the op's last point. */
export type OnnxLine = readonly [
  results: string,
  op: string,
  inputs: string,
  attributes?: Readonly<Record<string, Attribute>>,
];

/** An ONNX graph; its last result is its output. */
export interface OnnxPattern {
  readonly nodes: readonly OnnxLine[];
  readonly inputs: Readonly<Record<string, readonly number[]>>;
  /** Sizes of random float32 constants, or the numbers themselves: float32, whole ones where `n` stands. */
  readonly constants?: Readonly<Record<string, readonly number[] | number | Whole>>;
}

interface Whole {
  readonly n: readonly number[];
}

const REFERENCE = await openDevice("reference", {});
const OPSETS = { "": 24, "com.microsoft": 1 };

/** The engine graph of an ONNX graph, before any pass. */
export function derive({ nodes, inputs, constants = {} }: OnnxPattern): Graph {
  const parts = nodes.map(([results, op, given, attributes = {}]): NodeParts => {
    const cut = op.lastIndexOf(".");
    return {
      op: op.slice(cut + 1),
      ...cut > 0 && { domain: op.slice(0, cut) },
      inputs: given.split(" ").map((name) => name === "_" ? "" : name),
      outputs: results.split(" "),
      attributes,
    };
  });
  const initializers = Object.entries(constants).map(([name, value], i) => {
    if (typeof value === "number") return { name, type: 1, dims: [], raw: floats(value) };
    if ("n" in value) return { name, type: 7, dims: [value.n.length], raw: longs(...value.n) };
    const numbers = createCaseRandom(i + 1).normal(countOf(value)).map((x) => Math.abs(x) + 0.25);
    return { name, type: 1, dims: value, raw: new Uint8Array(numbers.buffer) };
  });
  const file = writeOnnx({
    nodes: parts,
    inputs: Object.entries(inputs).map(([name, dims]) => [name, 1, dims] as const),
    outputs: [[parts.at(-1)!.outputs[0]!, 1, []]],
    initializers,
  }, { opsets: OPSETS });
  let derived: Graph | undefined;
  planGraph(readOnnx(memorySource("pattern.onnx", file)), {
    bind: {},
    device: REFERENCE,
    onPass: (_, graph) => derived ??= graph,
  });
  return derived!;
}

/** A pattern of an exporter. */
export function onnx(name: string, file: OnnxPattern): Pattern {
  return { name, file, graph: () => derive(file) };
}

/** A pattern in ops of the engine; what `write` gives are its results. */
export function built(
  name: string,
  write: (w: Writer) => Value | readonly Value[],
  tolerance?: number,
): Pattern {
  return {
    name,
    ...tolerance !== undefined && { tolerance },
    graph() {
      const builder = createGraphBuilder(name, getOp);
      const results = write(writer(builder));
      [results].flat().forEach((value, i) => builder.output(`y${i}`, value as Value));
      return builder.build();
    },
  };
}

function writer(builder: GraphBuilder) {
  let count = 0;
  const all = (
    kind: string,
    inputs: readonly (Value | undefined)[],
    attributes: Attributes = {},
  ) => builder.op(kind, inputs, attributes, `${kind}.${count++}`);
  return {
    all,
    op: (...given: Parameters<typeof all>) => all(...given)[0]!,
    input: (
      shape: readonly (number | string)[],
      dtype: "f32" | "f16" | "i32" = "f32",
      name = "x",
    ) =>
      builder.input(
        name,
        shape.map((size) => typeof size === "string" ? symbol(size, { max: 3 }) : size),
        dtype,
      ),
    state: (name: string, shape: readonly number[]) => builder.state(name, shape, "f16"),
    constant: (...shape: number[]) =>
      builder.constant(`c.${count}`, createCaseRandom(++count).normal(countOf(shape)), shape),
    number: (value: number) => builder.constant(`n.${count++}`, Float32Array.of(value), []),
    weight(format: string, ...shape: number[]) {
      const record = getFormat(format), size = countOf(shape);
      const bytes = new Uint8Array(formatBytes(record, size));
      record.encode!(createCaseRandom(++count).normal(size, shape.at(-1)! ** -0.5), bytes);
      return builder.weight(`w.${count}`, tensorInMemory(`w.${count}`, { format, shape, bytes }));
    },
  };
}

/** What patterns are written with. */
export type Writer = ReturnType<typeof writer>;

function countOf(shape: readonly number[]): number {
  return shape.reduce((product, size) => product * size, 1);
}
