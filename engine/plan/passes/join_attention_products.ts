// join_attention_products: queries, keys and values come out of one product, which attention reads as it lies, so
// that nothing is split or copied (spec LF-6):
//   attention(x·Wq, x·Wk, x·Wv)  →  attention(x·[Wq; Wk; Wv])
// of heads in tensors, and of rows of a step that see rows of the same step.
// On the CPU of 8-bit rows alone: there a third of the chunks, each three times as wide, is worth up to an eighth of
// the products' time. Products of floats lose where rows are many, and taking the columns apart by slices loses with
// both (bench/results/kernels.md): they stay apart. Where each dispatch costs as much as a small product, all are joined.

import { type Dim, equal } from "../../graph/dim/mod.ts";
import type { Attributes, Node, Value } from "../../graph/graph.ts";
import { attentionInputs } from "../../ops/attention_inputs.ts";
import { floatElements, isKnownFloat } from "./computed_weights.ts";
import { isJoinable, joinInputs } from "./joined_weights.ts";
import { type MatchContext, WHOLE } from "./match.ts";
import { defineReplacement, draftOf, draftValue, type Pass, type PassContext } from "./pass.ts";

/** Joins what attentions read. */
export const joinAttentionProducts: Pass = defineReplacement({
  name: "join_attention_products",
  reads: { attention: WHOLE, reshape: ["shape"], matmul: ["rounded"] },
  suits: ({ hasKernel }) => hasKernel("attention"),
  match: productsOf,
  replace({ node, inputs, op, weight, constant, moved }, products: readonly Node[]) {
    const [first] = products as [Node];
    const all = joinInputs(products, 1)!;
    const x = moved(first.inputs[0]!), w = weight(all.name, all);
    const biases = products.flatMap(({ inputs: [, , bias] }) => bias ?? []);
    const added = biases.length === 0
      ? undefined
      : areJoinable(biases)
      ? joinInputs(products, 2)!
      : constant(`${node.name}.qkv.bias`, floatsOf(biases), [all.shape[0]!], "f32");
    const bias = added && ("joined" in added ? weight(added.name, added) : added);
    const [qkv] = op(first.op, [x, w, bias], first.attributes, `${node.name}.qkv`);
    const shape = packedShape(node, all.shape[0]!);
    const [packed] = op("reshape", [qkv], { shape }, `${node.name}.qkv.rows`);
    const rest = inputs.slice(3);
    return op(node.op, [packed, undefined, undefined, ...rest], attributesOf(node), node.name);
  },
});

/** Heads of queries, keys and values each. */
function headCounts({ inputs: [q, k], attributes: { q_heads, kv_heads } }: Node): number[] {
  const [queries, keys] = q_heads === 0 ? [q!.shape[1], k!.shape[1]] : [q_heads, kv_heads];
  return [queries, keys, keys] as number[];
}

/** What one tensor of all is for an attention. */
function packedShape(node: Node, columns: number): Dim[] {
  const [first, second, width] = node.inputs[0]!.shape as [Dim, Dim, Dim];
  const heads = headCounts(node).reduce((sum, count) => sum + count, 0);
  return node.attributes.q_heads === 0 ? [first, heads, width] : [first, second, columns];
}

function attributesOf(node: Node): Attributes {
  const { attributes } = node;
  return attributes.q_heads === 0 ? { ...attributes, kv_heads: headCounts(node)[1]! } : attributes;
}

/** Whether all are weights of one format. */
function areJoinable(vectors: readonly Value[]): boolean {
  return vectors.every((vector) => isJoinable(vector, vectors[0]));
}

/** The products of queries, keys and values that an attention reads. */
function productsOf(
  node: Node,
  seen: MatchContext,
  { takes, fusesNeighbours }: PassContext,
): readonly Node[] | undefined {
  if (node.op !== "attention" || node.attributes.style !== "none") return undefined;
  const { new_k, new_v, slots } = attentionInputs(node.inputs);
  if (node.attributes.scores !== "none" || new_k || new_v || slots) return undefined;
  const heads = node.inputs.slice(0, 3);
  if (!heads.every((value) => value?.shape.length === 3)) return undefined;
  const [q, k, v] = heads as [Value, Value, Value];
  // Rows of a step are all of one, and heads have a dim of their own.
  const isOneSequence = (node.attributes.q_heads === 0 ? [0, 2] : [0, 1]).every((axis) =>
    [k, v].every(({ shape }) => equal(shape[axis]!, q.shape[axis]!))
  );
  const rows = fusesNeighbours ? ["q8", "f32"] : ["q8", "q8_low"];
  const products = heads.flatMap((value) => productOf(value!, seen, rows) ?? []);
  if (!isOneSequence || products.length !== 3 || !fit(products, node)) return undefined;
  const columns = products.reduce((sum, { inputs }) => sum + (inputs[1]!.shape[0] as number), 0);
  const packed = draftValue({ dtype: q.dtype, shape: packedShape(node, columns) });
  const inputs = [packed, undefined, undefined, ...node.inputs.slice(3)];
  return takes(draftOf(node.op, { inputs, given: attributesOf(node) })) ? products : undefined;
}

/** The product behind views that nothing else reads. */
function productOf(
  value: Value,
  context: MatchContext,
  rows: readonly string[],
): Node | undefined {
  if (context.uses.get(value) !== 1) return undefined;
  const node = context.made.get(value);
  if (node?.op === "reshape") return productOf(node.inputs[0]!, context, rows);
  // Weights of such products are packed row by row: joined rows are what they were.
  return node?.op === "matmul" && rows.includes(node.inputs[0]!.dtype) && !node.inputs[3]
    ? node
    : undefined;
}

/** Whether products of one input can be one, whose rows are heads of one width. */
function fit(products: readonly Node[], node: Node): boolean {
  const [first] = products as [Node];
  const [x, weight] = first.inputs, counts = headCounts(node);
  const width = weight!.shape[0] as number / counts[0]!;
  const biases = products.flatMap(({ inputs: [, , bias] }) => bias ?? []);
  return (biases.length === 0 || biases.length === products.length) &&
    (biases.every(isKnownFloat) || areJoinable(biases)) &&
    products.every(({ inputs: [own, matrix], attributes: { rounded } }, i) =>
      rounded === first.attributes.rounded && own === x && isJoinable(matrix, weight) &&
      matrix!.shape[0] === width * counts[i]!
    );
}

function floatsOf(values: readonly Value[]): Float32Array {
  return Float32Array.from(values.flatMap((value) => [...floatElements(value)]));
}
