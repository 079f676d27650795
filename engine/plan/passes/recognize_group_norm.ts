// recognize_group_norm: a norm of groups of channels as exporters write it, by instances of a view (spec TL-8):
//   reshape(x, [N, groups, …]) → instance norm by ones and zeros → reshape back → · weight → + bias
// becomes one group_norm, so that a function behind it can go into its kernel (fuse_activation.ts).

import { equal, product } from "../../graph/dim/mod.ts";
import type { HostData, Node, Value } from "../../graph/graph.ts";
import { makerOf, type MatchContext, nameOf, sameShape, soleMaker, WHOLE } from "./match.ts";
import { defineReplacement, type Pass } from "./pass.ts";

/** Makes one op of a norm of groups that is written out. */
export const recognizeGroupNorm: Pass = defineReplacement({
  name: "recognize_group_norm",
  reads: { binary: ["kind"], group_norm: WHOLE, reshape: WHOLE },
  suits: ({ hasKernel }) => hasKernel("group_norm"),
  match: (node, context) => biased(node, context) ?? weighted(node, context),
  replace({ node, op, moved }, { x, groups, epsilon, weight, bias }: GroupNorm) {
    const vector = (value: Value, name: string) =>
      op("reshape", [moved(value)], { shape: [x.shape[1]!] }, `${node.name}.${name}`)[0]!;
    const inputs = [moved(x), vector(weight, "weight"), ...bias ? [vector(bias, "bias")] : []];
    return op("group_norm", inputs, { groups, epsilon }, node.name);
  },
});

interface GroupNorm {
  readonly x: Value;
  readonly groups: number;
  readonly epsilon: number;
  readonly weight: Value;
  readonly bias?: Value;
}

/** norm · weight + bias. */
function biased(node: Node, context: MatchContext): GroupNorm | undefined {
  if (nameOf(node) !== "add") return undefined;
  const [a, b] = node.inputs as [Value, Value];
  for (const [scaled, bias] of [[a, b], [b, a]] as const) {
    const scale = soleMaker(scaled, { name: "mul", context });
    const norm = scale && weighted(scale, context);
    if (norm && isOfChannels(bias, norm.x)) return { ...norm, bias };
  }
  return undefined;
}

/** norm · weight. */
function weighted(node: Node, context: MatchContext): GroupNorm | undefined {
  if (nameOf(node) !== "mul") return undefined;
  const [a, b] = node.inputs as [Value, Value];
  for (const [value, weight] of [[a, b], [b, a]] as const) {
    const norm = plain(value, context);
    if (norm && isOfChannels(weight, norm.x)) return { ...norm, weight };
  }
  return undefined;
}

/** Instances of a view whose second dim is groups of channels, viewed as x again. */
function plain(
  value: Value,
  context: MatchContext,
): Pick<GroupNorm, "x" | "groups" | "epsilon"> | undefined {
  const back = soleMaker(value, { name: "reshape", context });
  const norm = back && soleMaker(back.inputs[0]!, { name: "group_norm", context });
  const view = norm && makerOf(norm.inputs[0]!, "reshape", context);
  if (!view || norm.attributes.activation !== "none") return undefined;
  const x = view.inputs[0]!, { shape } = norm.inputs[0]!, [items, channels] = x.shape;
  const [, groups] = shape;
  const fits = x.dtype === "f32" && x.shape.length >= 3 && sameShape(x, value) &&
    equal(items!, shape[0]!) && typeof groups === "number" && typeof channels === "number" &&
    channels % groups === 0 && [0, groups].includes(norm.attributes.groups as number) &&
    isAll(norm.inputs[1], 1) && isAll(norm.inputs[2], 0);
  return fits
    ? { x, groups: groups as number, epsilon: norm.attributes.epsilon as number }
    : undefined;
}

/** Whether a vector changes nothing; an absent one does not. */
function isAll(value: Value | undefined, number: number): boolean {
  if (!value) return true;
  return (value.data as Exclude<HostData, BigInt64Array | BigUint64Array> | undefined)
    ?.every((element: number) => element === number) ?? false;
}

/** One number for each channel of x, wherever ones stand around it. */
function isOfChannels({ shape, dtype }: Value, x: Value): boolean {
  const channels = shape.at(1 - x.shape.length);
  return dtype === "f32" && shape.length <= x.shape.length && channels !== undefined &&
    equal(channels, x.shape[1]!) && equal(product(shape), channels);
}
