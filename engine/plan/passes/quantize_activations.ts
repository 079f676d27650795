// quantize_activations, for precision "fast": every matmul whose weight format has an integer kernel
// takes its input in 8 bit. The quantised input is a node of its own, so matmuls of one input share it
// after common_subexpressions.
//   matmul(x, W, b) → matmul(quantize(x), W, b), and the same for expert_matmul
// The last product of a graph, a head, takes rows in 16 bit where it can: nothing behind it evens out what 8 bit lose, and
// its matrix waits for memory. That is a property of the node, so that a row has the same numbers in whatever step.
// A large matrix that the file holds as floats is rounded to 7 bit while it is loaded, where that is allowed.
// Not so: embeddings (and a head that is one, because a weight is in memory once), what chooses experts, and
// small matrices, which cost little and are often the sensitive ones.

import { symbolsOf } from "../../graph/dim/mod.ts";
import type { Attributes, Node, Value } from "../../graph/graph.ts";
import type { Q8Type } from "../../ops/q8_rows.ts";
import { Q8_GROUP } from "../../../quant/q8_activation.ts";
import { type MatchContext, WHOLE } from "./match.ts";
import { defineReplacement, draftOf, draftValue, type NodeDraft, type Pass } from "./pass.ts";

/** Weights of a matrix that is worth rounding. */
const LARGE = 1 << 15;

/** Rewrites matmuls to 8-bit activations where the device can. */
export const quantizeActivations: Pass = defineReplacement({
  name: "quantize_activations",
  // A product that `route` reads stays, whatever that does with it.
  reads: { matmul: [], expert_matmul: [], route: WHOLE },
  suits: ({ precision }) => precision === "fast",
  match(node, seen, { roundsWeights, takes }): NodeDraft | undefined {
    if (!readsFloats(node)) return undefined;
    const [x, ...rest] = node.inputs;
    if (node.op === "matmul" && isLast(node, seen)) {
      const draft = draftOf(node.op, { inputs: node.inputs, given: { wide: true } });
      if (takes(draft)) return draft;
    }
    const isMeant = typeof roundsWeights === "string"
      ? symbolsOf(x!.shape[0]!).has(roundsWeights)
      : roundsWeights;
    const forms: readonly Attributes[] = isMeant && mayRound(node, seen)
      ? [{ rounded: true }, {}]
      : [{}];
    for (const given of forms) {
      const rows = draftValue({ dtype: formatFor(given), shape: x!.shape });
      const draft = draftOf(node.op, { inputs: [rows, ...rest], given });
      if (takes(draft)) return draft;
    }
    return undefined;
  },
  replace({ node, inputs: [x, ...rest], op }, { attributes, outputs }) {
    if (attributes.wide) return op(node.op, [x, ...rest], attributes, node.name, outputs);
    const [quantized] = op("quantize", [x], { format: formatFor(attributes) }, `${x!.name}.q8`);
    return op(node.op, [quantized, ...rest], attributes, node.name, outputs);
  },
});

/** How rows are quantised for a product. */
function formatFor({ rounded }: Attributes): Q8Type {
  return rounded ? "q8_low" : "q8";
}

/** Whether a node multiplies rows of floats by a weight, and the rows are whole groups. */
function readsFloats({ op, inputs: [x, weight] }: Node): boolean {
  const columns = weight?.tensor?.shape.at(-1) ?? 0;
  return (op === "matmul" || op === "expert_matmul") && x?.dtype === "f32" &&
    columns > 0 && columns % Q8_GROUP === 0;
}

/** Whether the graph gives what a node makes, and nothing reads it. */
function isLast({ outputs: [result] }: Node, { outputs, readers }: MatchContext): boolean {
  return outputs.has(result!) && !readers.get(result!)?.length;
}

/** Whether a weight is large, and nothing reads it but products that may be rounded. */
function mayRound({ inputs: [, weight] }: Node, { readers }: MatchContext): boolean {
  const isProduct = ({ op, inputs, outputs }: Node, weight: Value) =>
    op === "matmul" && inputs[1] === weight && inputs[0] !== weight &&
    !readers.get(outputs[0]!)?.some((reader) => reader.op === "route");
  const shape = weight!.tensor!.shape;
  return shape.length === 2 && shape[0]! * shape[1]! >= LARGE &&
    readers.get(weight!)!.every((reader) => isProduct(reader, weight!));
}
