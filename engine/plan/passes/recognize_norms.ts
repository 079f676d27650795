// recognize_norms: layer norm and RMS norm written as means, squares, roots and quotients over the last dim
// become one op (spec TL-8). Exporters divide by the root or multiply by its reciprocal; weights and biases
// are vectors that are multiplied and added behind.

import { equal } from "../../graph/dim/mod.ts";
import type { Node, Value } from "../../graph/graph.ts";
import { makerOf, type MatchContext, nameOf, sameShape, singleNumber, soleMaker } from "./match.ts";
import { defineReplacement, type Pass } from "./pass.ts";

/** Makes one op of a norm that is written out. */
export const recognizeNorms: Pass = defineReplacement({
  name: "recognize_norms",
  reads: { binary: ["kind"], reduce: ["kind", "axes", "keep"], unary: ["kind"] },
  suits: ({ hasKernel }) => hasKernel("norm"),
  match: (node, seen) => biased(node, seen) ?? weighted(node, seen) ?? plain(node, seen),
  replace({ node, op, moved }, { x, weight, bias, centred, epsilon }: Norm) {
    const inputs = [moved(x), weight && moved(weight), ...bias ? [moved(bias)] : []];
    return op("norm", inputs, { centred, epsilon }, node.name);
  },
});

interface Norm {
  readonly centred: boolean;
  readonly x: Value;
  readonly epsilon: number;
  readonly weight?: Value;
  readonly bias?: Value;
}

/** norm · weight + bias. */
function biased(node: Node, context: MatchContext): Norm | undefined {
  if (nameOf(node) !== "add") return undefined;
  const [a, b] = node.inputs;
  for (const [scaled, bias] of [[a!, b!], [b!, a!]] as const) {
    const product = isVector(bias, scaled)
      ? soleMaker(scaled, { name: "mul", context })
      : undefined;
    const norm = product && weighted(product, context);
    if (norm?.centred) return { ...norm, bias };
  }
  return undefined;
}

/** norm · weight. */
function weighted(node: Node, context: MatchContext): Norm | undefined {
  if (nameOf(node) !== "mul") return undefined;
  const [a, b] = node.inputs;
  for (const [value, weight] of [[a!, b!], [b!, a!]] as const) {
    if (!isVector(weight, value) || context.uses.get(value) !== 1) continue;
    const maker = context.made.get(value);
    const norm = maker && plain(maker, context);
    if (norm) return { ...norm, weight };
  }
  return undefined;
}

// One number for each entry of the last dim.
function isVector({ shape, dtype }: Value, of: Value): boolean {
  return dtype === "f32" && shape.length === 1 && of.shape.length >= 1 &&
    equal(shape[0]!, of.shape.at(-1)!) && typeof shape[0] === "number" && shape[0] > 1;
}

/** centred / √(mean of squares + ε), or times its reciprocal. */
function plain(node: Node, context: MatchContext): Norm | undefined {
  const parts = quotient(node, context);
  if (!parts || !sameShape(parts.value, node.outputs[0]!) || parts.value.dtype !== "f32") {
    return undefined;
  }
  const { value, root } = parts;
  const epsilon = epsilonOf(root, value, context);
  if (epsilon === undefined) return undefined;
  const centred = makerOf(value, "sub", context), x = centred?.inputs[0];
  if (x && sameShape(x, value) && isMeanOf(centred!.inputs[1]!, x, context)) {
    return { centred: true, x, epsilon };
  }
  return { centred: false, x: value, epsilon };
}

function quotient(
  node: Node,
  context: MatchContext,
): { readonly value: Value; readonly root: Value } | undefined {
  const [a, b] = node.inputs, name = nameOf(node);
  if (name === "div") return { value: a!, root: b! };
  if (name !== "mul") return undefined;
  for (const [value, factor] of [[a!, b!], [b!, a!]] as const) {
    const inverse = makerOf(factor, "reciprocal", context);
    if (inverse) return { value, root: inverse.inputs[0]! };
    const [one, root] = makerOf(factor, "div", context)?.inputs ?? [];
    if (one && singleNumber(one) === 1) return { value, root: root! };
  }
  return undefined;
}

/** ε, if a value is √(mean of the squares of `of` + ε). */
function epsilonOf(root: Value, of: Value, context: MatchContext): number | undefined {
  const node = makerOf(root, "sqrt", context) ?? makerOf(root, "root", context);
  const sum = node && makerOf(node.inputs[0]!, "add", context);
  if (!sum) return undefined;
  for (const [mean, added] of [[0, 1], [1, 0]] as const) {
    const epsilon = singleNumber(sum.inputs[added]!);
    const squares = meanInput(sum.inputs[mean]!, context);
    if (Number.isFinite(epsilon) && squares && isSquareOf(squares, of, context)) return epsilon;
  }
  return undefined;
}

function isSquareOf(value: Value, of: Value, context: MatchContext): boolean {
  const [a, b] = makerOf(value, "mul", context)?.inputs ?? [];
  if (a) return a === of && b === of;
  const power = makerOf(value, "pow", context);
  return power?.inputs[0] === of && singleNumber(power.inputs[1]!) === 2;
}

function isMeanOf(value: Value, of: Value, context: MatchContext): boolean {
  return meanInput(value, context) === of;
}

/** What a value is the mean of, over the last dim, which is kept. */
function meanInput(value: Value, context: MatchContext): Value | undefined {
  const node = makerOf(value, "reduce", context);
  const { kind, axes, keep } = node?.attributes ?? {};
  const [axis, ...others] = (axes ?? []) as readonly number[];
  if (kind !== "mean" || !keep || others.length > 0) return undefined;
  const x = node!.inputs[0]!;
  return axis === -1 || axis === x.shape.length - 1 ? x : undefined;
}
