// FlexAttention: attention whose scores and weights the model changes with bodies of its own. Without
// bodies it is the attention op; with them it is written out, the bodies in its middle.

import { type Dim, mul } from "../../graph/dim/mod.ts";
import type { DataType } from "../../graph/graph.ts";
import { float, int, type OnnxAttributeRule } from "../derivation/attributes.ts";
import { castTo } from "../derivation/elementwise.ts";
import type { OnnxGraph } from "../file/model.ts";
import { type OnnxCall, type OnnxOp, onnxOp } from "../derivation/op.ts";
import type { Tensor } from "../derivation/tensor.ts";
import { headWidth, knownDim } from "./attention.ts";
import { elementType } from "./casts.ts";
import { softmaxAlong } from "./softmax.ts";

const body: OnnxAttributeRule<OnnxGraph | undefined> = { kind: "graph" };

function inBody(call: OnnxCall, graph: OnnxGraph | undefined, x: Tensor): Tensor {
  return graph ? call.inline(graph, [x])[0]! : x;
}

/** Each head `count` times in a row. */
function repeatHeads(call: OnnxCall, x: Tensor, count: number): Tensor {
  if (count === 1) return x;
  const [batch, heads, rows, width] = x.type.shape as [Dim, Dim, Dim, Dim];
  if (!Number.isInteger(count)) throw new RangeError("the heads of q must be a multiple of k's");
  const apart = call.one("reshape", [x], { shape: [batch, heads, 1, rows, width] });
  const wide = call.one("expand", [apart], { shape: [batch, heads, count, rows, width] });
  return call.one("reshape", [wide], { shape: [batch, mul(heads, count), rows, width] });
}

/** FlexAttention. */
export const flexAttentionOps: readonly OnnxOp[] = [
  onnxOp("FlexAttention", {
    domain: "ai.onnx.preview",
    versions: [1],
    attributes: {
      prob_mod: body,
      scale: float(undefined),
      score_mod: body,
      softmax_precision: int(undefined),
    },
    build(call) {
      const { prob_mod, score_mod, softmax_precision, scale: given } = call.attributes;
      const q = call.input(0), k = call.input(1), v = call.input(2);
      const [qHeads, kvHeads] = [q, k].map(({ type }) =>
        knownDim(type.shape[1], "the number of heads")
      ) as [number, number];
      const scale = given ?? 1 / Math.sqrt(headWidth(q, qHeads));
      if (!prob_mod && !score_mod) {
        const attributes = { q_heads: qHeads, kv_heads: kvHeads, scale };
        return call.op("attention", [q, k, v], attributes);
      }
      const precision: DataType = softmax_precision
        ? elementType(call, softmax_precision)
        : q.type.dtype === "f64"
        ? "f64"
        : "f32";
      const [keys, values] = [k, v].map((x) => repeatHeads(call, x, qHeads / kvHeads)) as [
        Tensor,
        Tensor,
      ];
      const product = call.one("matmul_nd", [q, keys], { transpose_b: true, alpha: scale });
      const scores = inBody(call, score_mod, castTo(call, { x: product, to: precision }));
      const weights = inBody(call, prob_mod, softmaxAlong(call, { x: scores, axis: 3 }));
      const y = call.one("matmul_nd", [weights, castTo(call, { x: values, to: precision })]);
      return [castTo(call, { x: y, to: v.type.dtype })];
    },
  }),
];
