// fuse_gated: both halves of a gated feed-forward block come out of one product, where the device has a kernel that
// takes them as halves of a row:
//   glu(matmul(x, G), matmul(x, U)) → glu(matmul(x, [G; U])), whatever type the result has;
//   the same in 8 bit → matmul(x, [G; U]) with a gate, where there is a kernel for all of it.

import type { TensorInfo } from "../../formats/source.ts";
import type { Attributes, Node, Value } from "../../graph/graph.ts";
import { canJoin, joinInputs } from "./joined_weights.ts";
import { type MatchContext, WHOLE } from "./match.ts";
import { defineReplacement, draftOf, draftValue, type Pass, type PassContext } from "./pass.ts";

/** A gate, and the products before it as one. */
interface Gated {
  readonly x: Value;
  readonly matrix: TensorInfo;
  readonly bias: TensorInfo | undefined;
  /** Of the product. */
  readonly name: string;
  /** Of a product that gates by itself; absent: the device has none. */
  readonly whole: Attributes | undefined;
}

/** Joins the products before a gate. */
export const fuseGated: Pass = defineReplacement({
  name: "fuse_gated",
  reads: { glu: WHOLE, matmul: [] },
  suits: ({ fusesNeighbours }) => fusesNeighbours !== false,
  match,
  replace({ node, op, weight, moved }, { x, matrix, bias, name, whole }: Gated) {
    const inputs = [moved(x), weight(matrix.name, matrix), bias && weight(bias.name, bias)];
    if (whole) return op("matmul", inputs, whole, node.name);
    return op("glu", op("matmul", inputs, {}, name), node.attributes, node.name);
  },
});

function match(
  { op, inputs, attributes }: Node,
  { made, readers }: MatchContext,
  { takes }: PassContext,
): Gated | undefined {
  if (op !== "glu") return undefined;
  const products = inputs.map((value) =>
    value && readers.get(value)!.length === 1 ? made.get(value) : undefined
  );
  if (!canJoin(products)) return undefined;
  const [first] = products as [Node];
  const x = first.inputs[0]!;
  const matrix = joinInputs(products, 1)!, bias = joinInputs(products, 2);
  const draft = [x, ...[matrix, bias].map((tensor) => tensor && draftWeight(tensor))];
  const { outputs } = draftOf("matmul", { inputs: draft });
  if (!takes(draftOf("glu", { inputs: outputs, given: attributes }))) return undefined;
  const { activation, to } = attributes;
  const gated = { gate: activation!, to: to! };
  const isGate = to === "q8" && x.dtype === "q8" && activation !== "clamped";
  const whole = isGate && takes(draftOf("matmul", { inputs: draft, given: gated }))
    ? gated
    : undefined;
  return { x, matrix, bias, name: `${first.name}_up`, whole };
}

function draftWeight(tensor: TensorInfo): Value {
  return draftValue({ dtype: "f32", shape: tensor.shape }, { role: "weight", tensor });
}
