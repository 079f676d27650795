// fuse_attention_input: queries, keys and values come out of one product, and one op norms, rotates and stores them
// (spec LF-6, MD-10), where the device has a kernel for that:
//   attention(rope(q), append(K, rope(k)), append(V, v)) with q, k, v = matmul(x, …), viewed as heads
//     → attention(matmul(x, [Q; K; V]), …) with a style of rotation
// Queries and keys may be normalised head by head before they are rotated. Weights of different formats cannot be
// joined: then the three products stay, and attention takes their results apart.

import { add, type Dim, equal } from "../../graph/dim/mod.ts";
import type { Attributes, Node, Value } from "../../graph/graph.ts";
import { attentionInputs, attentionList } from "../../ops/attention_inputs.ts";
import { canJoin, joinInputs } from "./joined_weights.ts";
import { type MatchContext, sameShape, WHOLE } from "./match.ts";
import { definePass, type NodeDraft, type Pass } from "./pass.ts";

/** What stands before an attention. */
interface AttentionInput {
  /** The products of queries, keys and values. */
  readonly products: readonly Node[];
  readonly table: Value;
  readonly style: string;
  readonly appends: readonly [keys: Node, values: Node];
  readonly norms: readonly (Node | undefined)[];
}

/** Joins what stands before attentions. */
export const fuseAttentionInput: Pass = definePass({
  name: "fuse_attention_input",
  reads: {
    attention: WHOLE,
    kv_append: [],
    matmul: [],
    reshape: ["shape"],
    norm: ["epsilon", "base"],
    rope: ["style"],
  },
  suits: ({ hasKernel, fusesNeighbours }) => fusesNeighbours !== false && hasKernel("attention"),
  run(context, { takes }) {
    const matcher = createMatcher(context);
    const matches = new Map(context.nodes.flatMap((node) => {
      const match = node.op === "attention" ? matcher(node) : undefined;
      return match && takes(drafted(node, match)) ? [[node, match]] : [];
    }));
    if (matches.size === 0) return undefined;
    // Appends change states, so they would outlive their readers: they are left out.
    const replaced = new Set([...matches.values()].flatMap(({ appends }) => appends));
    return context.rewrite(({ node, inputs, op, weight, moved, copy }) => {
      /** One product for all, of the same input. */
      function joined(products: readonly Node[], name: string): Value {
        const [first] = products as readonly [Node];
        const all = joinInputs(products, 1)!, bias = joinInputs(products, 2);
        const x = moved(first.inputs[0]!);
        const inputs = [x, weight(all.name, all), bias && weight(bias.name, bias)];
        return op(first.op, inputs, {}, name)[0]!;
      }

      if (replaced.has(node)) return [inputs[0]!];
      const match = matches.get(node);
      if (!match) return copy();
      const draft = drafted(node, match), isJoined = canJoin([...match.products]);
      const q = isJoined ? joined(match.products, `${node.name}.qkv`) : moved(draft.inputs[0]!);
      const others = draft.inputs.slice(1).map((value) => value && moved(value));
      return op(node.op, [q, ...others], draft.attributes, node.name).slice(0, 1);
    });
  },
});

/** The attention that an attention and what stands before it become; a joined product is not there yet. */
function drafted(
  node: Node,
  { products, table, style, appends: [keys, values], norms }: AttentionInput,
): NodeDraft {
  const [q, new_k, new_v] = products.map(({ outputs }) => outputs[0]!) as [Value, Value, Value];
  const columns = [q, new_k, new_v].reduce<Dim>((sum, { shape }) => add(sum, shape[1]!), 0);
  const [query_norm, key_norm] = norms.map((norm) => norm?.inputs[1]);
  const inputs = attentionList({
    ...attentionInputs(node.inputs),
    ...canJoin([...products])
      ? { q: { ...q, shape: [q.shape[0]!, columns] } }
      : { q, new_k, new_v },
    ...{ k: keys.inputs[0], v: values.inputs[0], table, query_norm, key_norm },
  });
  const attributes = { ...node.attributes, ...attributesOf(norms), style };
  return { op: node.op, inputs, outputs: node.outputs, attributes };
}

function attributesOf(norms: readonly (Node | undefined)[]): Attributes {
  const norm = norms.find((candidate) => candidate !== undefined);
  return norm ? { epsilon: norm.attributes.epsilon!, base: norm.attributes.base! } : {};
}

function createMatcher(
  { made, readers, outputs }: MatchContext,
): (attention: Node) => AttentionInput | undefined {
  /** The node of an op that makes a value which nothing else reads. */
  function sole(value: Value | undefined, op: string): Node | undefined {
    const node = value && made.get(value);
    const alone = value && readers.get(value)!.length === 1 && !outputs.has(value);
    return alone && node?.op === op ? node : undefined;
  }

  /** The product behind a view of its columns as heads. */
  function productOf(heads: Value | undefined): Node | undefined {
    const [rows] = sole(heads, "reshape")?.inputs ?? [];
    const isView = rows?.shape.length === 2 && equal(rows.shape[0]!, heads!.shape[0]!);
    return isView ? sole(rows, "matmul") : undefined;
  }

  function rotated(value: Value | undefined) {
    const rope = sole(value, "rope");
    const norm = sole(rope?.inputs[0], "norm");
    const product = productOf(norm ? norm.inputs[0] : rope?.inputs[0]);
    return rope && product ? { rope, norm, product } : undefined;
  }

  return (attention) => {
    const { q, k, v, positions, slots, starts, ends, bias } = attentionInputs(attention.inputs);
    if (!positions || !slots || starts || ends || bias) return undefined;
    const query = rotated(q);
    const keys = sole(k, "kv_append"), values = sole(v, "kv_append");
    const key = rotated(keys?.inputs[1]);
    const value = productOf(values?.inputs[1]);
    if (!query || !keys || !key || !values || !value) return undefined;
    const [cacheOfKeys] = keys.inputs, [cacheOfValues] = values.inputs;
    const alike = [
      query.rope.inputs[1] === key.rope.inputs[1],
      query.rope.attributes.style === key.rope.attributes.style,
      sameShape(cacheOfKeys!, cacheOfValues!),
      [keys, values].every(({ inputs }) => inputs[2] === positions && inputs[3] === slots),
      (cacheOfKeys!.shape[2] as number) % 2 === 0, // float16 is written in pairs
      haveEqualAttributes(query.norm, key.norm),
      [query.norm, key.norm].every((norm) =>
        !norm || norm.inputs[1]?.role === "weight" && !norm.inputs[2]
      ),
    ].every((isAlike) => isAlike);
    if (!alike) return undefined;
    return {
      products: [query.product, key.product, value],
      table: query.rope.inputs[1]!,
      style: query.rope.attributes.style as string,
      appends: [keys, values],
      norms: [query.norm, key.norm],
    };
  };
}

function haveEqualAttributes(a: Node | undefined, b: Node | undefined): boolean {
  if (!a || !b) return true;
  return ["epsilon", "base"].every((name) => a.attributes[name] === b.attributes[name]);
}
