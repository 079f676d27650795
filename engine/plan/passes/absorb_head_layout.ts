// absorb_head_layout: attention reads heads where the projections left them, side by side in a row, and writes
// its result so (spec TL-13). Exporters split a row into heads with a transpose and join them with another one:
//   transpose(x as [B, T, H, D], 0 2 1 3)  →  x as [B, T, H · D]
//   transpose(attention, 0 2 1 3)          →  a view of the attention
// The four transposes of a layer are gone; a reader that wants another order keeps one.

import type { Dim } from "../../graph/dim/mod.ts";
import type { Node, Value } from "../../graph/graph.ts";
import { isList, WHOLE } from "./match.ts";
import { definePass, type Pass } from "./pass.ts";
import type { Visit } from "./rewrite.ts";

const SWAP = [0, 2, 1, 3];
/** Inputs that hold heads, and what is made for them is called. */
const SIDES: ReadonlyMap<number, string> = new Map([
  [0, "q"],
  [1, "k"],
  [2, "v"],
  [6, "new_k"],
  [7, "new_v"],
]);

/** Takes transposes of heads into the attention between them. */
export const absorbHeadLayout: Pass = definePass({
  name: "absorb_head_layout",
  reads: { attention: WHOLE, transpose: ["perm"] },
  run({ nodes, made, readers, outputs, rewrite }) {
    /** By the input. */
    const splits = new Map<Node, Map<number, Value>>();
    for (const node of nodes) {
      if (node.op !== "attention" || !isOfTensors(node)) continue;
      const sources = new Map([...SIDES.keys()].flatMap((i) => {
        const source = splitSource(node.inputs[i], made);
        return source ? [[i, source]] : [];
      }));
      // The result lies as q does: where no transpose reads it, one would have to be added.
      const [result] = node.outputs as [Value];
      const isJoined = !outputs.has(result) && readers.get(result)?.some(isSwap);
      if (!isJoined) sources.delete(0);
      if (sources.size > 0) splits.set(node, sources);
    }
    if (splits.size === 0) return undefined;
    /** Results of attention that lie in rows, as [B, T, H, D], by what stands for them. */
    const inRows = new Map<Value, Value>();
    return rewrite((visit) => {
      const { node, inputs, copy } = visit;
      const sources = splits.get(node);
      if (sources) return attend(visit, sources, inRows);
      const rows = isSwap(node) ? inRows.get(inputs[0]!) : undefined;
      return rows ? [rows] : copy();
    });
  },
});

function isOfTensors({ attributes }: Node): boolean {
  return attributes.q_heads !== 0 && attributes.scores === "none";
}

/** The same for one sequence whose rows are the outermost dim (ChatGLM's caches). */
function isSwapOfOne({ op, attributes, inputs: [x] }: Node): boolean {
  return op === "transpose" && isList(attributes.perm, [1, 2, 0, 3]) &&
    x!.shape[1] === 1;
}

function isSwap({ op, attributes }: Node): boolean {
  return op === "transpose" && isList(attributes.perm, SWAP);
}

/** [B, T, H, D], or [T, 1, H, D], of a value that is [B, H, T, D] of it. */
function splitSource(value: Value | undefined, made: ReadonlyMap<Value, Node>): Value | undefined {
  const node = value && made.get(value);
  if (!node || !isSwap(node) && !isSwapOfOne(node)) return undefined;
  const [, , heads, width] = node.inputs[0]!.shape;
  return typeof heads === "number" && typeof width === "number" ? node.inputs[0]! : undefined;
}

function attend(
  { node, inputs, op, moved }: Visit,
  sources: ReadonlyMap<number, Value>,
  inRows: Map<Value, Value>,
): readonly Value[] {
  const joined = inputs.map((input, i) => {
    const source = sources.get(i);
    if (!source) return input;
    const [batch, heads, rows, width] = node.inputs[i]!.shape as [Dim, number, Dim, number];
    const shape = [batch, rows, heads * width];
    return op("reshape", [moved(source)], { shape }, `${node.name}.${SIDES.get(i)}`)[0]!;
  });
  const [y] = op(node.op, joined, node.attributes, node.name) as [Value];
  if (!sources.has(0)) return [y];
  const [batch, heads, rows, width] = node.outputs[0]!.shape as [Dim, Dim, Dim, Dim];
  const [split] = op("reshape", [y], { shape: [batch, rows, heads, width] }, `${node.name}.rows`);
  const [planes] = op("transpose", [split!], { perm: SWAP }, `${node.name}.planes`);
  inRows.set(planes!, split!);
  return [planes!];
}
