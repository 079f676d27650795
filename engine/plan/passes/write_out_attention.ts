// write_out_attention: what recognize_attention does, the other way round, where a device has no kernel for the whole,
// because scores are results too or heads are too wide:
//   attention(q, k, v, mask)  →  softmax(q·kᵀ·scale + mask)·v
// so that products and softmax run where everything around them does. Left out: counts of valid keys, sinks, windows,
// keys beside a cache or packed with queries, and causal rows of sizes that are not known.

import { type Dim, equal, mul } from "../../graph/dim/mod.ts";
import type { Node, Value } from "../../graph/graph.ts";
import { type Layout, layoutsOf } from "../../ops/attention_rows.ts";
import { defineReplacement, type Pass } from "./pass.ts";
import type { Visit } from "./rewrite.ts";

/** Largest constant that says which keys causal rows see. */
const MOST_SEEN = 2 ** 24;

const PARTS = ["matmul_nd", "softmax", "binary", "where", "reduce", "transpose"];

/** Writes attention out where there are kernels for its parts only. */
export const writeOutAttention: Pass = defineReplacement({
  name: "write_out_attention",
  reads: {
    attention: [
      ...["q_heads", "kv_heads", "scale", "softcap", "causal", "offset", "from_end", "scores"],
      "unseen",
    ],
  },
  suits: ({ hasKernel }) => PARTS.every((op) => hasKernel(op)),
  match: (node, _, { takes }) =>
    node.op === "attention" && !takes(node) && isPlain(node) ? node : undefined,
  replace: writeOut,
});

function isPlain(node: Node): boolean {
  const { inputs: [q, k, v, mask, ...others], attributes } = node;
  if (attributes.q_heads === 0 || !k || !v || others.some((value) => value)) return false;
  if (![q!, k, v].every(({ dtype }) => dtype === "f32")) return false;
  const { q: { rows }, k: { rows: keys } } = layoutsOf(node.inputs, node.attributes);
  if (attributes.causal) {
    const isKnown = [rows, keys, attributes.offset].every((size) => typeof size === "number");
    if (!isKnown || (rows as number) * (keys as number) > MOST_SEEN) return false;
  }
  return !mask || ["f32", "bool"].includes(mask.dtype) && equal(mask.shape.at(-1) ?? 1, keys);
}

/** Adds nodes behind each other, named after the one that they stand for. */
type Make = (op: string, inputs: readonly Value[], attributes?: Node["attributes"]) => Value;

function writeOut(visit: Visit): readonly Value[] {
  const { node, inputs: [q, k, v, mask] } = visit;
  const { attributes } = node,
    { q: rows, k: keys, v: values } = layoutsOf(node.inputs, node.attributes);
  let count = 0;
  const make: Make = (op, inputs, given = {}) =>
    visit.op(op, inputs, given, `${node.name}.${op}.${count++}`)[0]!;
  const number = (value: number) =>
    visit.constant(`${node.name}.${value}`, Float32Array.of(value), [], "f32");
  const { batch, heads: all } = rows, groups = all / keys.heads;
  // The heads that read one of k stand below each other, so that no key is repeated.
  const queries = make("reshape", [planes(make, q!, rows)], {
    shape: [batch, keys.heads, mul(rows.rows, groups), rows.width],
  });
  const flat = make("matmul_nd", [queries, planes(make, k!, keys)], {
    ...{ transpose_b: true, alpha: attributes.scale as number },
  });
  const products = make("reshape", [flat], { shape: [batch, all, rows.rows, keys.rows] });
  const cap = attributes.softcap as number;
  const capped = cap > 0
    ? make("binary", [
      make("unary", [make("binary", [products, number(1 / cap)], { kind: "mul" })], {
        kind: "tanh",
      }),
      number(cap),
    ], { kind: "mul" })
    : products;
  const added = mask?.dtype === "f32" ? make("binary", [capped, mask], { kind: "add" }) : capped;
  const hide = (seen: Value, scores: Value) => make("where", [seen, scores, number(-Infinity)]);
  const causal = causalRows(node);
  const chosen = mask?.dtype === "bool" ? hide(mask, added) : added;
  const masked = causal
    ? hide(visit.constant(`${node.name}.seen`, causal.seen, causal.shape, "bool"), chosen)
    : chosen;
  const soft = make("softmax", [masked], { axis: -1 });
  // A row that sees nothing gives zeros, where softmax gives NaN.
  const largest = () => make("reduce", [masked], { kind: "max", axes: [-1], keep: true });
  const weights = attributes.unseen === "zeros" && (mask || causal?.hasBlindRow)
    ? make("where", [
      make("binary", [largest(), number(-Infinity)], { kind: "equal" }),
      ...[number(0), soft],
    ])
    : soft;
  const grouped = make("reshape", [weights], {
    shape: [batch, keys.heads, mul(rows.rows, groups), keys.rows],
  });
  const y = make("reshape", [make("matmul_nd", [grouped, planes(make, v!, values)])], {
    shape: [batch, all, rows.rows, values.width],
  });
  const results: Readonly<Record<string, Value>> = { products, capped, masked, weights };
  const seen = results[attributes.scores as string];
  const out = rows.joined ? joined(make, y, [batch, rows.rows, mul(values.width, all)]) : y;
  return seen ? [out, seen] : [out];
}

/** [batch, heads, rows, width], whatever the layout is. */
function planes(
  make: Make,
  value: Value,
  { batch, heads: count, rows, width, joined }: Layout<Dim>,
): Value {
  if (!joined) return value;
  const split = make("reshape", [value], { shape: [batch, rows, count, width] });
  return make("transpose", [split], { perm: [0, 2, 1, 3] });
}

function joined(make: Make, value: Value, shape: readonly Dim[]): Value {
  return make("reshape", [make("transpose", [value], { perm: [0, 2, 1, 3] })], { shape });
}

/** Which keys a causal row sees; undefined if it is not causal. */
function causalRows(node: Node) {
  const { attributes } = node;
  if (!attributes.causal) return undefined;
  const { q: { rows }, k: { rows: keys } } = layoutsOf(node.inputs, node.attributes) as {
    q: Layout<number>;
    k: Layout<number>;
  };
  const first = attributes.from_end ? Math.max(0, keys - rows) : attributes.offset as number;
  const seen = Uint8Array.from(
    { length: rows * keys },
    (_, i) => Number(i % keys <= Math.floor(i / keys) + first),
  );
  return { seen, shape: [rows, keys], hasBlindRow: first < 0 };
}
