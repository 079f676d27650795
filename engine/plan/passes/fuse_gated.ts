// fuse_gated: both halves of a gated feed-forward block come out of one product, where the device has a kernel that
// takes them as halves of a row:
//   glu(matmul(x, G), matmul(x, U)) → glu(matmul(x, [G; U])), whatever type the result has;
//   the same with a result of the type of x → matmul(x, [G; U]) with a gate, where there is a kernel for all of it;
//   matmul(x, U) · f(matmul(x, G)), as exporters write it, likewise.

import { ACTIVATION_NAMES } from "../../../functions/unary.ts";
import type { TensorInfo } from "../../formats/source.ts";
import type { Attributes, Node, Value } from "../../graph/graph.ts";
import { canJoin, joinInputs } from "./joined_weights.ts";
import { type MatchContext, soleMaker, WHOLE } from "./match.ts";
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
  reads: { binary: ["kind"], glu: WHOLE, matmul: [], unary: ["kind"] },
  suits: ({ fusesNeighbours }) => fusesNeighbours !== false,
  match,
  replace({ node, op, weight, moved }, { x, matrix, bias, name, whole }: Gated) {
    const inputs = [moved(x), weight(matrix.name, matrix), bias && weight(bias.name, bias)];
    if (whole) return op("matmul", inputs, whole, node.name);
    return op("glu", op("matmul", inputs, {}, name), node.attributes, node.name);
  },
});

function match(
  node: Node,
  context: MatchContext,
  { takes }: PassContext,
): Gated | undefined {
  const gate = node.op === "glu" ? node : writtenOut(node, context);
  if (!gate) return undefined;
  const { inputs, attributes } = gate, { made, readers } = context;
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
  const isGate = to === x.dtype && activation !== "clamped";
  const whole = isGate && takes(draftOf("matmul", { inputs: draft, given: gated }))
    ? gated
    : undefined;
  if (gate !== node && !whole) return undefined;
  return { x, matrix, bias, name: `${first.name}_up`, whole };
}

/** A product with a function of another value, as the gate that it is. */
function writtenOut(
  { op, inputs, attributes }: Node,
  context: MatchContext,
): Pick<Node, "inputs" | "attributes"> | undefined {
  if (op !== "binary" || attributes.kind !== "mul") return undefined;
  const [a, b] = inputs as [Value, Value];
  for (const [up, active] of [[a, b], [b, a]] as const) {
    const activation = ACTIVATION_NAMES.find((name) => soleMaker(active, { name, context }));
    if (!activation || up === active) continue;
    const gate = context.made.get(active)!.inputs[0]!;
    return { inputs: [gate, up], attributes: { activation, to: "f32" } };
  }
  return undefined;
}

function draftWeight(tensor: TensorInfo): Value {
  return draftValue({ dtype: "f32", shape: tensor.shape }, { role: "weight", tensor });
}
