// fold_batch_norm: a batch norm of constants behind a convolution is a factor and a shift of each of its
// outputs: they go into the convolution's weights and bias, computed when these are loaded.

import type { ByteSource, TensorInfo } from "../../formats/source.ts";
import { equal } from "../../graph/dim.ts";
import type { Node, Value } from "../../graph/graph.ts";
import { type MatchContext, matchContext, soleMaker } from "./match.ts";
import type { Pass } from "./pass.ts";
import { rewrite } from "./rewrite.ts";

/** Folds batch norms into the convolutions before them. */
export const foldBatchNorm: Pass = {
  name: "fold_batch_norm",
  run(graph) {
    const context = matchContext(graph);
    const found = new Map<Node, Node>();
    for (const node of graph.nodes) {
      const conv = match(node, context);
      if (conv) found.set(node, conv);
    }
    if (found.size === 0) return graph;
    return rewrite(graph, ({ node, op, weight, moved, copy }) => {
      const conv = found.get(node);
      if (!conv) return copy();
      const [x, kernel, bias] = conv.inputs as [Value, Value, Value?];
      const norm = normOf(node);
      const scaled = computed(`${node.name}.weight`, kernel, () => scaleRows(kernel, norm));
      const shifted = computed(`${node.name}.bias`, norm.beta, () => shift(bias, norm));
      const inputs = [moved(x), weight(scaled.name, scaled), weight(shifted.name, shifted)];
      return op("conv", inputs, conv.attributes, node.name);
    });
  },
};

interface Norm {
  readonly gamma: Value;
  readonly beta: Value;
  readonly mean: Value;
  readonly variance: Value;
  readonly epsilon: number;
}

function normOf({ inputs, attributes }: Node): Norm {
  const [, gamma, beta, mean, variance] = inputs as [Value, Value, Value, Value, Value];
  return { gamma, beta, mean, variance, epsilon: attributes.epsilon as number };
}

function match(node: Node, context: MatchContext): Node | undefined {
  if (node.op !== "batch_norm" || !node.inputs.slice(1).every((value) => value && isKnown(value))) {
    return undefined;
  }
  const conv = soleMaker(node.inputs[0]!, "conv", context);
  const [, kernel, bias, ...others] = conv?.inputs ?? [];
  if (!kernel || !isKnown(kernel) || (bias && !isKnown(bias)) || others.length > 0) {
    return undefined;
  }
  return equal(kernel.shape[0]!, node.inputs[1]!.shape[0]!) ? conv : undefined;
}

// Elements that are in memory, or in a file as float32.
function isKnown({ data, tensor, dtype }: Value): boolean {
  return dtype === "f32" && (data !== undefined || tensor?.format === "F32");
}

function elements({ name, data, tensor }: Value): Float32Array {
  if (data) return data as Float32Array;
  const { source, offset, byteLength } = tensor!;
  const bytes = new Uint8Array(byteLength);
  if (source.readInto(offset, bytes)) {
    throw new TypeError(`Cannot read ${name} of ${source.name}: it does not answer at once`);
  }
  return new Float32Array(bytes.buffer);
}

function factors({ gamma, variance, epsilon }: Norm): Float64Array {
  const spread = elements(variance);
  return Float64Array.from(elements(gamma), (g, i) => g / Math.sqrt(spread[i]! + epsilon));
}

function scaleRows(kernel: Value, norm: Norm): Float32Array {
  const values = elements(kernel), factor = factors(norm);
  const width = values.length / Math.max(1, factor.length);
  return Float32Array.from(values, (value, i) => value * factor[Math.floor(i / width)]!);
}

function shift(bias: Value | undefined, norm: Norm): Float32Array {
  const factor = factors(norm), mean = elements(norm.mean), before = bias && elements(bias);
  return Float32Array.from(
    elements(norm.beta),
    (beta, i) => beta + ((before?.[i] ?? 0) - mean[i]!) * factor[i]!,
  );
}

/** A tensor like another one, whose elements are computed when they are first read. */
function computed(name: string, { shape }: Value, make: () => Float32Array): TensorInfo {
  const sizes = shape as readonly number[];
  const byteLength = 4 * sizes.reduce((product, size) => product * size, 1);
  let bytes: Uint8Array | undefined;
  const source: ByteSource = {
    name: `computed ${name}`,
    size: byteLength,
    readInto(offset, target) {
      bytes ??= new Uint8Array(make().buffer);
      target.set(bytes.subarray(offset, offset + target.length));
      // Whoever reads the end has read the rest.
      if (offset + target.length >= byteLength) bytes = undefined;
    },
    close() {},
  };
  return { name, shape: sizes, format: "F32", source, offset: 0, byteLength };
}
