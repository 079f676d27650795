// recognize_attention: softmax(q·kᵀ·scale + mask)·v written as products, a softmax and what stands between
// becomes one attention, so that scores are never stored (spec TL-8; without them the arena of a
// diffusion net is a tenth). Scales may stand on q, on k or on the product; k may come transposed in any way;
// heads that were repeated for grouped queries are taken as they were before. A row that sees nothing gives
// zeros, which is what a safe softmax is for; a plain one would give NaN there.

import { type Dim, equal } from "../../graph/dim/mod.ts";
import type { Node, Value } from "../../graph/graph.ts";
import { ungrouped } from "./ungroup_heads.ts";
import {
  hasShape,
  isList,
  makerOf,
  type MatchContext,
  nameOf,
  sameShape,
  singleNumber,
  soleMaker,
} from "./match.ts";
import { softmaxOf } from "./match_softmax.ts";
import { defineReplacement, draftOf, type NodeDraft, type Pass } from "./pass.ts";
import type { Visit } from "./rewrite.ts";

/** Makes one op of attention that is written out. */
export const recognizeAttention: Pass = defineReplacement({
  name: "recognize_attention",
  reads: {
    binary: ["kind"],
    expand: ["shape"],
    matmul_nd: ["transpose_a", "transpose_b", "alpha"],
    reshape: ["shape"],
    softmax: ["axis"],
    transpose: ["perm"],
    unary: ["kind"],
    where: [],
  },
  suits: ({ hasKernel }) => hasKernel("attention"),
  match(node, seen, { takes }) {
    const attention = match(node, seen);
    return attention && takes(drafted(attention)) ? attention : undefined;
  },
  replace: build,
});

interface Attention {
  readonly q: Value;
  /** [B, heads, T, D], or what a transpose makes that of. */
  readonly k: { readonly value: Value; readonly perm?: readonly number[] };
  readonly v: Value;
  readonly mask?: Value;
  readonly scale: number;
  readonly heads: number;
  readonly kvHeads: number;
  /** What a row is that sees nothing. */
  readonly unseen: "zeros" | "nan";
}

function match(node: Node, context: MatchContext): Attention | undefined {
  const product = asProduct(node);
  if (!product || product.transposed || product.alpha !== 1 || product.a.dtype !== "f32") {
    return undefined;
  }
  const softmax = softmaxOf(product.a, context);
  if (!softmax || product.a.shape.length !== 4) return undefined;
  const scores = matchScores(softmax.inputs[0]!, context);
  if (!scores) return undefined;
  const v = ungrouped(product.b, context);
  const k = ungrouped(scores.k.value, context);
  // Only keys that are as they lie can be taken from before their repetition.
  const grouped = scores.k.perm === undefined && k.base !== scores.k.value &&
    v.base !== product.b && equal(k.base.shape[1]!, v.base.shape[1]!);
  const heads = scores.q.shape[1], kvHeads = (grouped ? k.base : product.b).shape[1];
  if (typeof heads !== "number" || typeof kvHeads !== "number") return undefined;
  if (!sameBatches(scores.q, product.b) || heads % kvHeads !== 0) return undefined;
  const keys = grouped ? { value: k.base } : scores.k;
  // Products repeat keys that are one for all items or heads; attention repeats heads alone, and values with them.
  const [batch, keyHeads] = (keys.perm ?? [0, 1]).map((axis) => keys.value.shape[axis]!);
  if (!equal(batch!, scores.q.shape[0]!) || !equal(keyHeads!, kvHeads)) return undefined;
  // A softmax that is not safe gives NaN for a row that sees nothing.
  const unseen = softmax.outputs[0] === product.a ? "nan" : "zeros";
  return { ...scores, k: keys, v: grouped ? v.base : product.b, heads, kvHeads, unseen };
}

function asProduct({ op, inputs, attributes }: Node) {
  const [a, b] = inputs;
  if (op !== "matmul_nd" || !a || !b || attributes.transpose_a) return undefined;
  const alpha = attributes.alpha as number;
  return { a, b, transposed: attributes.transpose_b as boolean, alpha };
}

function matchScores(value: Value, context: MatchContext) {
  const added = soleMaker(value, { name: "add", context });
  const choices = added
    ? [[added.inputs[0]!, added.inputs[1]!], [added.inputs[1]!, added.inputs[0]!]] as const
    : [[value, undefined] as const];
  for (const [scores, mask] of choices) {
    const { value: product, factor } = unscaled(scores, context);
    const node = soleMaker(product, { name: "matmul_nd", context });
    const parts = node && asProduct(node);
    if (!parts || product.shape.length !== 4) continue;
    // A mask that spreads the scores would change their shape.
    if (mask && !sameShape(product, value)) continue;
    const q = unscaled(parts.a, context), k = unscaled(parts.b, context);
    if (q.value.shape.length !== 4 || k.value.shape.length !== 4) continue;
    const scale = factor * q.factor * k.factor * parts.alpha;
    if (!Number.isFinite(scale)) continue;
    const key = parts.transposed ? { value: k.value } : untransposed(k.value, context);
    return { q: q.value, k: key, scale, ...mask && { mask } };
  }
  return undefined;
}

/** What is left when factors of one number are taken off. */
function unscaled(value: Value, { made, uses }: MatchContext): { value: Value; factor: number } {
  let factor = 1;
  for (let at = value;;) {
    const node = made.get(at);
    const part = node && uses.get(at) === 1 ? scalarFactor(node) : undefined;
    if (!part) return { value: at, factor };
    factor *= part.factor;
    at = part.value;
  }
}

function scalarFactor(node: Node) {
  const { inputs: [a, b], outputs } = node, name = nameOf(node), divides = name === "div";
  if (name !== "mul" && !divides) return undefined;
  const right = b && singleNumber(b), left = name === "mul" && a ? singleNumber(a) : undefined;
  const [value, number] = right !== undefined ? [a!, right] : [b!, left];
  if (number === undefined || !sameShape(value, outputs[0]!)) return undefined;
  return { value, factor: divides ? 1 / number : number };
}

// kᵀ as k: the two last dims changed places, perhaps together with others, perhaps in matrices without heads.
function untransposed(value: Value, context: MatchContext): Attention["k"] {
  const { made } = context;
  const matrices = turnedMatrices(value, context);
  if (matrices) return { value: matrices };
  const node = made.get(value);
  const perm = node?.op === "transpose" ? node.attributes.perm as readonly number[] : undefined;
  if (!node || !perm) return { value, perm: [0, 1, 3, 2] };
  const swapped = [perm[0]!, perm[1]!, perm[3]!, perm[2]!];
  const source = node.inputs[0]!;
  return swapped.every((axis, i) => axis === i)
    ? { value: source }
    : { value: source, perm: swapped };
}

// [B, H, D, T] ← [B · H, D, T] ← [B · H, T, D] ← [B, H, T, D]: what that came from.
function turnedMatrices(value: Value, context: MatchContext): Value | undefined {
  const outer = makerOf(value, "reshape", context);
  const turn = outer && makerOf(outer.inputs[0]!, "transpose", context);
  const inner = turn && makerOf(turn.inputs[0]!, "reshape", context);
  const source = inner?.inputs[0]!;
  if (!source || !isList(turn!.attributes.perm, [0, 2, 1])) return undefined;
  const [batch, heads, width, keys] = value.shape as [Dim, Dim, Dim, Dim];
  const isWhole = equal(turn!.outputs[0]!.shape[1]!, width) &&
    equal(turn!.outputs[0]!.shape[2]!, keys);
  return isWhole && hasShape(source, [batch, heads, keys, width]) ? source : undefined;
}

function sameBatches(q: Value, v: Value): boolean {
  return v.shape.length === 4 && equal(q.shape[0]!, v.shape[0]!);
}

/** The node that is made; keys that are still to be turned are not there yet. */
function drafted(attention: Attention): NodeDraft {
  const { q, k: { value, perm }, v, mask, scale, heads, kvHeads, unseen } = attention;
  const k = perm ? { ...value, shape: perm.map((axis) => value.shape[axis]!) } : value;
  const attributes = { q_heads: heads, kv_heads: kvHeads, scale, unseen };
  return draftOf("attention", { inputs: [q, k, v, mask], given: attributes });
}

function build({ node, op, moved }: Visit, attention: Attention): readonly Value[] {
  const { k: { value, perm } } = attention, source = moved(value);
  const k = perm ? op("transpose", [source], { perm }, `${node.name}.k`)[0]! : source;
  const draft = drafted(attention);
  const inputs = draft.inputs.map((input, i) => i === 1 ? k : input && moved(input));
  return op(draft.op, inputs, draft.attributes, node.name);
}
