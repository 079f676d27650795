// Writes ONNX graphs of networks with random weights, node by node, as exporters of PyTorch write them: norms whole, GELU
// by its error function, heads by reshape and transpose. What a weight is does not matter for time; weights are small
// enough that deep networks stay finite.

import {
  floats,
  longs,
  type NodeParts,
  type Port,
  type Tensor,
  writeOnnx,
} from "../../tests/support/write_onnx.ts";

const FLOAT = 1, LONG = 7;
/** Random numbers are made once and repeated. */
const NOISE_LENGTH = 2 ** 20 - 3;

/** Sizes of attention. */
export interface AttentionSizes {
  readonly rows: number;
  readonly hidden: number;
  readonly heads: number;
}

/** A graph in the making; values are names. */
export interface RandomGraph {
  /** Adds a node of one result. */
  op(op: string, inputs: readonly string[], attributes?: NodeParts["attributes"]): string;
  /** Adds random numbers around 0 of about this size. */
  random(dims: readonly number[], size: number): string;
  /** Adds one number. */
  number(value: number): string;
  /** Adds whole numbers. */
  integers(...values: number[]): string;
  /** x W + b; x is [..., columns]. */
  linear(x: string, columns: number, rows: number): string;
  norm(x: string, width: number): string;
  gelu(x: string): string;
  /** [1, rows, hidden] → [1, heads, rows, hidden / heads]. */
  split(x: string, sizes: AttentionSizes): string;
  /** softmax(q kᵀ) v of heads, joined and projected. */
  attend(
    heads: { readonly q: string; readonly k: string; readonly v: string },
    sizes: AttentionSizes,
  ): string;
  /** The file. */
  write(
    inputs: readonly Port[],
    output: string,
    dims: readonly (number | string)[],
  ): Uint8Array<ArrayBuffer>;
}

/** Starts a graph. */
export function randomGraph(): RandomGraph {
  const nodes: NodeParts[] = [], initializers: Tensor[] = [];
  const noise = randomNumbers();
  let used = 0;
  const add = (type: number, dims: readonly number[], raw: Uint8Array): string => {
    const name = `w${initializers.length}`;
    initializers.push({ name, type, dims, raw });
    return name;
  };
  const graph: RandomGraph = {
    op(op, inputs, attributes = {}) {
      const name = `${op}${nodes.length}`;
      nodes.push({ op, inputs, outputs: [name], name, attributes });
      return name;
    },
    random(dims, size) {
      const values = new Float32Array(dims.reduce((a, b) => a * b, 1));
      for (let i = 0; i < values.length; i++) values[i] = size * noise[(used + i) % NOISE_LENGTH]!;
      used = (used + values.length) % NOISE_LENGTH;
      return add(FLOAT, dims, new Uint8Array(values.buffer));
    },
    number: (value) => add(FLOAT, [], floats(value)),
    integers: (...values) => add(LONG, [values.length], longs(...values)),
    linear(x, columns, rows) {
      const product = graph.op("MatMul", [x, graph.random([columns, rows], columns ** -0.5)]);
      return graph.op("Add", [product, graph.random([rows], 0.1)]);
    },
    norm: (x, width) =>
      graph.op("LayerNormalization", [x, graph.random([width], 1), graph.random([width], 0.1)], {
        axis: { i: -1 },
        epsilon: { f: 1e-5 },
      }),
    gelu(x) {
      const inner = graph.op("Erf", [graph.op("Div", [x, graph.number(Math.SQRT2)])]);
      const half = graph.op("Mul", [x, graph.op("Add", [inner, graph.number(1)])]);
      return graph.op("Mul", [half, graph.number(0.5)]);
    },
    split(x, { rows, hidden, heads }) {
      const shape = graph.integers(1, rows, heads, hidden / heads);
      return graph.op("Transpose", [graph.op("Reshape", [x, shape])], {
        perm: { ints: [0, 2, 1, 3] },
      });
    },
    attend({ q, k, v }, { rows, hidden, heads }) {
      const scaled = graph.op("Mul", [q, graph.number((hidden / heads) ** -0.5)]);
      const turned = graph.op("Transpose", [k], { perm: { ints: [0, 1, 3, 2] } });
      const shares = graph.op("Softmax", [graph.op("MatMul", [scaled, turned])], {
        axis: { i: -1 },
      });
      const mixed = graph.op("Transpose", [graph.op("MatMul", [shares, v])], {
        perm: { ints: [0, 2, 1, 3] },
      });
      const joined = graph.op("Reshape", [mixed, graph.integers(1, rows, hidden)]);
      return graph.linear(joined, hidden, hidden);
    },
    write: (inputs, output, dims) =>
      writeOnnx({ name: "random", nodes, inputs, initializers, outputs: [[output, FLOAT, dims]] }),
  };
  return graph;
}

/** Numbers from -√3 to √3, whose variance is 1; the same in every run. */
function randomNumbers(): Float32Array {
  let state = 1;
  return Float32Array.from({ length: NOISE_LENGTH }, () => {
    state = Math.imul(state, 1664525) + 1013904223 >>> 0;
    return (state / 2 ** 31 - 1) * Math.sqrt(3);
  });
}
