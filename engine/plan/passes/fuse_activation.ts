// fuse_activation: a function of single elements behind a convolution or a norm of groups of channels is applied by
// that kernel while its results are in registers (spec MD-9). Functions that exporters write out are recognised:
//   max(x, 0) → relu     min(max(x, 0), 6) → relu6     x · sigmoid(x) → silu
//   x · min(max(x + 3, 0), 6) / 6 → hard_swish, the division before or after the product

import { EPILOGUE_NAMES } from "../../../functions/unary.ts";
import type { Node, Value } from "../../graph/graph.ts";
import { isNumber, type MatchContext, nameOf, sameShape, WHOLE } from "./match.ts";
import { definePass, type Pass } from "./pass.ts";

/** Ops with an attribute `activation`. */
const ACTIVATING: ReadonlySet<string> = new Set(["conv", "conv_transpose", "group_norm"]);

/** Moves activations into what makes their input. */
export const fuseActivation: Pass = definePass({
  name: "fuse_activation",
  reads: {
    binary: ["kind"],
    conv: WHOLE,
    conv_transpose: WHOLE,
    group_norm: WHOLE,
    unary: ["kind"],
  },
  run(context, { hasKernel }) {
    const found = new Map<Node, { readonly maker: Node; readonly activation: string }>();
    const follow = follower(context);
    for (const maker of context.nodes) {
      if (!ACTIVATING.has(maker.op) || !hasKernel(maker.op)) continue;
      if (maker.attributes.activation !== "none") continue;
      if (maker.outputs[0]!.dtype !== "f32") continue;
      const match = follow(maker.outputs[0]!);
      if (match && sameShape(match.last.outputs[0]!, maker.outputs[0]!)) {
        found.set(match.last, { maker, activation: match.activation });
      }
    }
    if (found.size === 0) return undefined;
    return context.rewrite(({ node, op, moved, copy }) => {
      const fused = found.get(node);
      if (!fused) return copy();
      const { op: making, inputs, attributes, name } = fused.maker;
      const values = inputs.map((value) => value && moved(value));
      return op(making, values, { ...attributes, activation: fused.activation }, name);
    });
  },
});

interface Found {
  readonly activation: string;
  /** The node whose result is the function's. */
  readonly last: Node;
}

function follower({ uses, readers }: MatchContext): (x: Value) => Found | undefined {
  /** The nodes that read a value, if nothing else does and there are `count` of them. */
  const only = (value: Value, count: number): readonly Node[] => {
    const nodes = readers.get(value) ?? [];
    return nodes.length === count && uses.get(value) === count ? nodes : [];
  };
  const next = (value: Value) => only(value, 1)[0];

  return (x) => {
    const [first, ...others] = only(x, readers.get(x)?.length ?? 0);
    if (!first) return undefined;
    if (others.length === 0) {
      const plain = EPILOGUE_NAMES.find((known) => known === nameOf(first));
      if (plain) return { activation: plain, last: first };
      if (!isWith(first, "max", 0)) return undefined;
      const upper = next(first.outputs[0]!);
      if (upper && isWith(upper, "min", 6)) return { activation: "relu6", last: upper };
      return { activation: "relu", last: first };
    }
    if (others.length !== 1) return undefined;
    for (const [inner, product] of [[first, others[0]!], [others[0]!, first]] as const) {
      if (nameOf(product) !== "mul") continue;
      const factor = product.inputs.find((value) => value !== x);
      if (!factor || factor === x) continue;
      const silu = inner.outputs[0] === factor && nameOf(inner) === "sigmoid";
      if (silu && only(factor, 1).length === 1) return { activation: "silu", last: product };
      const last = hardSwish(inner, { product, factor, next });
      if (last) return { activation: "hard_swish", last };
    }
    return undefined;
  };
}

function hardSwish(
  inner: Node,
  { product, factor, next }: {
    readonly product: Node;
    readonly factor: Value;
    readonly next: (value: Value) => Node | undefined;
  },
): Node | undefined {
  if (!isWith(inner, "add", 3)) return undefined;
  const lower = next(inner.outputs[0]!);
  const upper = lower && isWith(lower, "max", 0) ? next(lower.outputs[0]!) : undefined;
  if (!upper || !isWith(upper, "min", 6)) return undefined;
  const clipped = next(upper.outputs[0]!);
  if (clipped === product && upper.outputs[0] === factor) {
    const sixth = next(product.outputs[0]!);
    return sixth && isSixth(sixth) ? sixth : undefined;
  }
  const divided = clipped && isSixth(clipped) && clipped.outputs[0] === factor;
  return divided && next(factor) === product ? product : undefined;
}

/** Whether a node joins its input with this number: the second operand, or either of a sum or product. */
function isWith(node: Node, name: string, number: number): boolean {
  return nameOf(node) === name && node.inputs.some((value) => isNumber(value, number));
}

function isSixth(node: Node): boolean {
  return nameOf(node) === "div"
    ? isNumber(node.inputs[1], 6)
    : isWith(node, "mul", Math.fround(1 / 6));
}
