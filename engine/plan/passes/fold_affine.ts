// fold_affine: factors and sums of constants around a convolution go into its weights and bias, computed
// when these are loaded (learned scales of PP-LCNet, biases that exporters write as a sum).
//   conv(x, W, b) · s + t  →  conv(x, W·s, b·s + t), s and t numbers or one a filter
//   conv(x·s + t, W, b)    →  conv(x, W·s, b + W·t), where the window is one place: at a border, zeros
//                             that pad x are not zeros that pad x·s + t

import { equal } from "../../graph/dim/mod.ts";
import type { Node, Value } from "../../graph/graph.ts";
import {
  areFactors,
  computedTensor,
  finiteFactors,
  floatElements,
  isKnownFloat,
} from "./computed_weights.ts";
import { filtersOf } from "./conv_weights.ts";
import { type MatchContext, nameOf, sameShape, WHOLE } from "./match.ts";
import { definePass, type Pass } from "./pass.ts";

/** Folds what follows a convolution. */
export const foldAffineAfter: Pass = foldingPass("fold_affine_after");

/**
 * Folds what comes before a convolution; after `fuse_activation`, because the last factor of an activation
 * that is written out looks the same.
 */
export const foldAffineBefore: Pass = foldingPass("fold_affine_before");

function foldingPass(name: "fold_affine_after" | "fold_affine_before"): Pass {
  return definePass({
    name,
    reads: {
      ...{ binary: ["kind"], conv: WHOLE },
      ...name === "fold_affine_after" && { conv_transpose: WHOLE },
    },
    run(context) {
      const found = new Map<Node, Folded>();
      for (const node of context.nodes) {
        if (!isKnownConv(node)) continue;
        const folded = name === "fold_affine_before"
          ? stepsBefore(node, context)
          : stepsAfter(node, context);
        if (folded && folded.before.length + folded.after.length > 0 && isTame(folded)) {
          found.set(folded.last, folded);
        }
      }
      if (found.size === 0) return undefined;
      return context.rewrite(({ node, op, weight, moved, copy }) => {
        const folded = found.get(node);
        if (!folded) return copy();
        const { conv, source } = folded;
        const shape = conv.inputs[1]!.shape as readonly number[];
        // Not the names of what another pass made here.
        const kernel = computedTensor(
          `${conv.name}.${name}.weight`,
          { shape, make: () => foldKernel(folded) },
        );
        const bias = computedTensor(
          `${conv.name}.${name}.bias`,
          { shape: [conv.outputs[0]!.shape[1] as number], make: () => foldBias(folded) },
        );
        const inputs = [moved(source), weight(kernel.name, kernel), weight(bias.name, bias)];
        return op(conv.op, inputs, conv.attributes, conv.name);
      });
    },
  });
}

/** A factor, or a number that is added: one for all channels or one for each. */
interface Step {
  readonly kind: "mul" | "add" | "div";
  readonly value: Value;
}

interface Folded {
  readonly conv: Node;
  readonly source: Value;
  /** From the source to the convolution. */
  readonly before: readonly Step[];
  /** From the convolution on. */
  readonly after: readonly Step[];
  /** The node in whose place the convolution comes. */
  readonly last: Node;
}

function isKnownConv({ op, inputs: [, kernel, bias, branch] }: Node): boolean {
  return !branch && (op === "conv" || op === "conv_transpose") && isKnownFloat(kernel!) &&
    (!bias || isKnownFloat(bias));
}

function stepsAfter(conv: Node, { uses, readers }: MatchContext): Folded | undefined {
  if (conv.attributes.activation !== "none") return undefined;
  const after: Step[] = [];
  let last = conv;
  for (;;) {
    const value = last.outputs[0]!;
    const reader = uses.get(value) === 1 ? readers.get(value)?.[0] : undefined;
    const step = reader && stepOf(reader);
    if (!step || step.x !== value) break;
    after.push(step);
    last = reader!;
  }
  return { conv, source: conv.inputs[0]!, before: [], after, last };
}

function stepsBefore(conv: Node, { made, uses }: MatchContext): Folded | undefined {
  const { op, inputs: [x, kernel], attributes } = conv;
  const isPoint = op === "conv" && kernel!.shape.slice(2).every((size) => size === 1) &&
    attributes.padding === "explicit" &&
    (attributes.pads as readonly number[]).every((pad) => pad === 0);
  if (!isPoint) return undefined;
  const before: Step[] = [];
  let source = x!;
  while (uses.get(source) === 1) {
    const node = made.get(source);
    const step = node && stepOf(node);
    if (!step) break;
    before.unshift(step);
    source = step.x;
  }
  return { conv, source, before, after: [], last: conv };
}

/** A node as a step on its input `x` [N, C, …]. */
function stepOf(node: Node): Step & { x: Value } | undefined {
  const { inputs, outputs } = node, kind = nameOf(node);
  if (kind !== "mul" && kind !== "add" && kind !== "div") return undefined;
  const [a, b] = inputs as [Value, Value];
  for (const [x, value] of kind === "div" ? [[a, b]] as const : [[a, b], [b, a]] as const) {
    if (
      x.dtype === "f32" && isKnownFloat(value) && sameShape(x, outputs[0]!) &&
      isOfChannels(value, x)
    ) {
      return { kind, value, x };
    }
  }
  return undefined;
}

function isOfChannels({ shape }: Value, x: Value): boolean {
  const places = x.shape.length - 2;
  if (places < 1 || shape.length > x.shape.length) return false;
  // From the last dim on: places, then channels, then the batch.
  return shape.every((size, axis) => {
    const fromEnd = shape.length - 1 - axis;
    return size === 1 || (fromEnd === places && equal(size, x.shape[1]!));
  });
}

interface Affine {
  readonly scale: Float64Array;
  readonly shift: Float64Array;
}

function affineOf(steps: readonly Step[], channels: number): Affine {
  const scale = new Float64Array(channels).fill(1), shift = new Float64Array(channels);
  for (const { kind, value } of steps) {
    const numbers = floatElements(value);
    for (let c = 0; c < channels; c++) {
      const number = numbers.length === 1 ? numbers[0]! : numbers[c]!;
      if (kind === "add") shift[c]! += number;
      else {
        const factor = kind === "div" ? 1 / number : number;
        scale[c]! *= factor;
        shift[c]! *= factor;
      }
    }
  }
  return { scale, shift };
}

/** Whether the factors that are known before weights are loaded can go into these. */
function isTame({ conv, before, after }: Folded): boolean {
  const [channels, filters] = channelCounts(conv), kernel = conv.inputs[1]!;
  // (x · s + t) · ∞ is no sum of products.
  if (before.length > 0 && kernel.data && !floatElements(kernel).every(Number.isFinite)) {
    return false;
  }
  return [{ steps: before, count: channels }, { steps: after, count: filters }].every(
    ({ steps, count }) => {
      const known = steps.filter(({ kind, value }) => kind !== "add" && value.data);
      return areFactors(affineOf(known, count).scale);
    },
  );
}

/** The input channel that an element of a kernel meets, by the element's index. */
function channelsOf({ inputs: [, kernel], attributes }: Node): (at: number) => number {
  const [filters, inner, ...window] = kernel!.shape as number[];
  const perGroup = filters! / (attributes.groups as number);
  const places = window.reduce((product, size) => product * size, 1);
  return (at) => {
    const filter = Math.floor(at / (inner! * places));
    return Math.floor(filter / perGroup) * inner! + Math.floor(at / places) % inner!;
  };
}

/** Channels of input and output. */
function channelCounts({ inputs: [x], outputs: [y] }: Node): [number, number] {
  return [x!.shape[1] as number, y!.shape[1] as number];
}

function foldKernel({ conv, before, after }: Folded): Float32Array {
  const [channels, filters] = channelCounts(conv);
  const output = finiteFactors(affineOf(after, filters).scale, conv.name);
  const filterOf = filtersOf(conv);
  const scaled = floatElements(conv.inputs[1]!).map((value, at) => value * output[filterOf(at)]!);
  if (before.length === 0) return scaled;
  const input = finiteFactors(affineOf(before, channels).scale, conv.name);
  const channelOf = channelsOf(conv);
  return scaled.map((value, at) => value * input[channelOf(at)]!);
}

function foldBias({ conv, before, after }: Folded): Float32Array {
  const [channels, filters] = channelCounts(conv), output = affineOf(after, filters);
  const [, kernel, bias] = conv.inputs;
  const sums = Float64Array.from(bias ? floatElements(bias) : new Float32Array(filters));
  if (before.length > 0) {
    const input = affineOf(before, channels).shift;
    const channelOf = channelsOf(conv), filterOf = filtersOf(conv);
    floatElements(kernel!).forEach((value, at) => {
      sums[filterOf(at)]! += value * input[channelOf(at)]!;
    });
  }
  return Float32Array.from(sums, (sum, f) => sum * output.scale[f]! + output.shift[f]!);
}
