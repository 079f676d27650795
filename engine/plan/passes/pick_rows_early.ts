// pick_rows_early: rows whose logits are wanted are picked as soon as no other row is needed any more. Behind the
// last attention every op works on rows by themselves, so one row goes on where a prompt has 128:
//   select_rows(add(x, matmul(y, W)), rows) → add(select_rows(x, rows), matmul(select_rows(y, rows), W))
// A prompt then does without most of its last layer; where no row is wanted (all pieces of a prompt but the last),
// without all of it behind the attention. An attention over caches takes the list of its rows, where the device has a kernel for
// that: the keys and values of all are stored, and those alone attend. Its queries are those of all, whose product is one with
// keys and values. Where each copy costs a dispatch in every step, rows are picked where one copy is enough: in front of the
// last attention's sum.

import { equal } from "../../graph/dim/mod.ts";
import type { Node, Value } from "../../graph/graph.ts";
import { attentionInputs, attentionList } from "../../ops/attention_inputs.ts";
import { getOp, ops } from "../../ops/mod.ts";
import { type MatchContext, WHOLE } from "./match.ts";
import { definePass, type NodeDraft, type Pass } from "./pass.ts";

/** Moves `select_rows` in front of products, where the device gains by it. */
export const pickRowsEarly: Pass = definePass({
  name: "pick_rows_early",
  reads: {
    ...Object.fromEntries(
      [...ops.values()].filter(({ byRows }) => byRows).map(({ name }) => [name, WHOLE] as const),
    ),
    select_rows: [],
    attention: WHOLE,
  },
  suits: ({ picksRowsEarly = false }) => picksRowsEarly !== false,
  run(context, { picksRowsEarly, takes }) {
    const { nodes, rewrite } = context;
    const first = nodes.find(isPick);
    if (!first) return undefined;
    const indices = first.inputs[1]!;
    const isPicking = (node: Node) =>
      node.op === "attention" && isOfCache(node) && takes(picking(node, indices, node.inputs));
    const once = picksRowsEarly === "once";
    const narrowed = narrowedValues(context, indices, { once, isPicking });
    const gains = nodes.some(({ op, outputs }) => op === "matmul" && narrowed.has(outputs[0]!));
    if (!gains) return undefined;
    const picked = new Map<Value, Value>();
    return rewrite(({ node, inputs, op, moved, copy }) => {
      const pick = (value: Value): Value => {
        const known = picked.get(value);
        if (known) return known;
        const [made] = op(
          "select_rows",
          [moved(value), moved(indices)],
          {},
          `${value.name}.picked`,
        );
        picked.set(value, made!);
        return made!;
      };
      const [source] = node.inputs;
      if (isPick(node) && node.inputs[1] === indices) {
        return [narrowed.has(source!) ? inputs[0]! : pick(source!)];
      }
      const [result] = node.outputs;
      if (!narrowed.has(result!)) return copy();
      if (node.op === "attention") {
        return op(
          node.op,
          picking(node, moved(indices), inputs).inputs,
          node.attributes,
          node.name,
        );
      }
      const own = node.inputs.map((value, i) =>
        value && !narrowed.has(value) && hasRowsOf(value, result!) ? pick(value) : inputs[i]
      );
      return op(node.op, own, node.attributes, node.name);
    });
  },
});

/** An attention with those rows of its step alone. */
function picking(
  { op, attributes, outputs: [result] }: Node,
  rows: Value,
  inputs: Node["inputs"],
): NodeDraft {
  const shape = [rows.shape[0]!, ...result!.shape.slice(1)];
  const given = attentionList({ ...attentionInputs(inputs), rows });
  return { op, inputs: given, outputs: [{ ...result!, shape }], attributes };
}

/** Whether its rows see a cache up to themselves. */
function isOfCache({ inputs }: Node): boolean {
  const { positions, slots, ends } = attentionInputs(inputs);
  return positions !== undefined && slots !== undefined && !ends;
}

function isPick({ op }: Node): boolean {
  return op === "select_rows";
}

/** The values of which nothing but the rows `indices` is ever read, and that can be made of those rows alone. */
function narrowedValues(
  { nodes, readers, outputs }: MatchContext,
  indices: Value,
  { once, isPicking }: {
    readonly once: boolean;
    readonly isPicking: (attention: Node) => boolean;
  },
): ReadonlySet<Value> {
  const narrowed = new Set<Value>();
  // What has to be copied, and how many values are narrowed where that was a single one.
  const copied = new Set<Value>();
  let least = 0;
  const readsRows = (reader: Node, value: Value) =>
    isPick(reader) && reader.inputs[1] === indices
      ? reader.inputs[0] === value
      : narrowed.has(reader.outputs[0]!);
  for (const node of nodes.toReversed()) {
    const [value] = node.outputs;
    if (outputs.has(value!)) continue;
    const known = readers.get(value!) ?? [];
    if (!known.length || !known.every((reader) => readsRows(reader, value!))) continue;
    if (!isByRows(node) && !isPicking(node)) continue;
    narrowed.add(value!);
    copied.delete(value!);
    for (const input of node.inputs) if (input && hasRowsOf(input, value!)) copied.add(input);
    if (copied.size === 1) least = narrowed.size;
  }
  return once ? new Set([...narrowed].slice(0, least)) : narrowed;
}

function isByRows({ op, inputs, outputs: [result] }: Node): boolean {
  if (!getOp(op).byRows || result!.shape.length !== 2 || typeof result!.shape[0] === "number") {
    return false;
  }
  return inputs.every((value) =>
    !value || value.role === "weight" || value.role === "constant" || hasRowsOf(value, result!)
  );
}

function hasRowsOf({ dtype, shape, role }: Value, result: Value): boolean {
  const isOfStep = role === "activation" || role === "input";
  return isOfStep && dtype === "f32" && shape.length === 2 && equal(shape[0]!, result.shape[0]!);
}
