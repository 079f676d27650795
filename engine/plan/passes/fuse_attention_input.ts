// fuse_attention_input: queries, keys and values come out of one product, and one op norms, rotates and stores them
// (spec LF-6, MD-10), where the device has a kernel for that:
//   attention(rope(q), append(K, rope(k)), append(V, v)) with q, k, v = matmul(x, …), viewed as heads
//     → q, K, V = rope_append(matmul(x, [Q; K; V]), …); attention(q, K, V)
//     → rope_attention(matmul(x, [Q; K; V]), …), where there is a kernel for that too
// Queries and keys may be normalised head by head before they are rotated. Weights of different formats cannot be
// joined: then the three products stay, and rope_append takes their results apart.

import { equal } from "../../graph/dim/mod.ts";
import type { Attributes, Node, Value } from "../../graph/graph.ts";
import { canJoin, joinInputs } from "./joined_weights.ts";
import { type MatchContext, sameShape, WHOLE } from "./match.ts";
import { definePass, type Pass } from "./pass.ts";

/** The form of an attention that norms, rotates and stores by itself. */
export const attendedForms: ReadonlyMap<string, string> = new Map([
  ["attention", "rope_attention"],
  ["attention_q8", "rope_attention_q8"],
]);

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
    attention_q8: WHOLE,
    kv_append: [],
    matmul: [],
    reshape: ["shape"],
    rms_norm: ["epsilon", "base"],
    rope: ["style"],
  },
  suits: ({ hasKernel }) => hasKernel("rope_append"),
  run(context, { hasKernel }) {
    const matcher = createMatcher(context);
    const matches = new Map(context.nodes.flatMap((node) => {
      const match = attendedForms.has(node.op) ? matcher(node) : undefined;
      return match ? [[node, match]] : [];
    }));
    // Appends change states, so they would outlive their readers: they are left out.
    const replaced = new Set([...matches.values()].flatMap(({ appends }) => appends));
    return context.rewrite(({ node, inputs, op, weight, moved, copy }) => {
      /** One product for all, of the same input. */
      function joined(products: readonly Node[], name: string): Value[] {
        const [first] = products as readonly [Node];
        const all = joinInputs(products, 1)!, bias = joinInputs(products, 2);
        const x = moved(first.inputs[0]!);
        const inputs = [x, weight(all.name, all), bias && weight(bias.name, bias)];
        return op(first.op, inputs, {}, name);
      }

      if (replaced.has(node)) return [inputs[0]!];
      const match = matches.get(node);
      if (!match) return copy();
      const { products, table, style, appends, norms } = match;
      const [qkv, ...apart] = canJoin([...products])
        ? joined(products, `${node.name}.qkv`)
        : products.map(({ outputs }) => moved(outputs[0]!));
      const [cacheOfKeys, , positions, slots] = appends[0].inputs;
      const rotary = [
        qkv,
        moved(table),
        moved(cacheOfKeys!),
        moved(appends[1].inputs[0]!),
        moved(positions!),
        moved(slots!),
        ...norms.map((norm) => norm && moved(norm.inputs[1]!)),
        ...apart,
      ];
      const rope = { style, ...attributesOf(norms) };
      const form = attendedForms.get(node.op)!;
      if (hasKernel(form)) {
        const keysAndValues = apart.length > 0 ? [] : [undefined, undefined];
        const attend = [...rotary, ...keysAndValues, ...inputs.slice(5)];
        return op(form, attend, { ...rope, ...node.attributes }, node.name).slice(0, 1);
      }
      const heads = op("rope_append", rotary, rope, `${node.name}.rope_append`);
      return op(node.op, [...heads, ...inputs.slice(3)], node.attributes, node.name);
    });
  },
});

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
    const norm = sole(rope?.inputs[0], "rms_norm");
    const product = productOf(norm ? norm.inputs[0] : rope?.inputs[0]);
    return rope && product ? { rope, norm, product } : undefined;
  }

  return (attention) => {
    const [q, k, v, positions, slots] = attention.inputs;
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
      [query.norm, key.norm].every((norm) => !norm || norm.inputs[1]?.role === "weight"),
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
