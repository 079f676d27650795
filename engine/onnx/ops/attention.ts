// Attention over tensors, with caches that the graph itself carries along; rotary embeddings; linear
// attention.

import { type Dim, equal, exactDiv } from "../../graph/dim/mod.ts";
import { float, int, required, text } from "../derivation/attributes.ts";
import { type OnnxCall, type OnnxOp, onnxOp } from "../derivation/op.ts";
import type { Tensor } from "../derivation/tensor.ts";

type Building = Pick<OnnxCall, "one">;

/** A dim that must be known when the graph is derived. */
export function knownDim(dim: Dim | undefined, what: string): number {
  if (typeof dim === "number") return dim;
  throw new RangeError(`${what} must be known`);
}

/** [B, S, heads · D] as [B, heads, S, D]; four dims stay as they are. */
function splitHeads(
  call: Building,
  { x, heads }: { readonly x: Tensor; readonly heads: number },
): Tensor {
  const { shape } = x.type;
  if (shape.length === 4) return x;
  const [batch, rows, columns] = shape as [Dim, Dim, Dim];
  const width = exactDiv(columns, heads);
  if (width === undefined) throw new RangeError(`rows must be multiples of ${heads} heads`);
  // One row needs no transposition.
  if (equal(rows, 1)) return call.one("reshape", [x], { shape: [batch, heads, rows, width] });
  const split = call.one("reshape", [x], { shape: [batch, rows, heads, width] });
  return call.one("transpose", [split], { perm: [0, 2, 1, 3] });
}

/** Width of a head of a tensor of three or four dims. */
export function headWidth(x: Tensor, heads: number): number {
  const { shape } = x.type;
  const last = knownDim(shape.at(-1), "the columns of a head");
  return shape.length === 4 ? last : last / heads;
}

/** Rows of so many heads behind those of the past, [B, heads, rows, D], if there are any. */
export function joinRows(
  call: Building,
  { past, now, heads }: {
    readonly past: Tensor | undefined;
    readonly now: Tensor;
    readonly heads: number;
  },
): Tensor {
  const rows = splitHeads(call, { x: now, heads });
  if (!past || equal(past.type.shape[2]!, 0)) return rows;
  return call.one("concat", [past, rows], { axis: 2 });
}

/** What the fourth output holds, by number. */
const SCORES = ["products", "capped", "masked", "weights"] as const;

/** How pairs of channels stand, by an attribute. */
export function rotationStyle(interleaved: number): "half" | "interleaved" {
  return interleaved === 0 ? "half" : "interleaved";
}

/** Attention. */
export const attentionOps: readonly OnnxOp[] = [
  onnxOp("Attention", {
    versions: [23, 24],
    attributes: {
      is_causal: int(0),
      kv_num_heads: int(undefined),
      q_num_heads: int(undefined),
      qk_matmul_output_mode: int(0),
      scale: float(undefined),
      softcap: float(0),
      softmax_precision: int(undefined),
    },
    build(call) {
      const { attributes: given } = call;
      const q = call.input(0), k = call.input(1), v = call.input(2);
      const [mask, pastKey, pastValue, counts] = [3, 4, 5, 6].map((i) => call.inputs[i]);
      const heads = (x: Tensor, count: number | undefined) =>
        x.type.shape.length === 4 ? knownDim(x.type.shape[1], "the number of heads") : count ?? 0;
      const qHeads = heads(q, given.q_num_heads), kvHeads = heads(k, given.kv_num_heads);
      if (!qHeads || !kvHeads) throw new TypeError("three dims need q_num_heads and kv_num_heads");
      // The caches have four dims, whatever the inputs have.
      const cached = pastKey || call.wanted[1] || call.wanted[2];
      const keys = cached ? joinRows(call, { past: pastKey, now: k, heads: kvHeads }) : k;
      const values = cached ? joinRows(call, { past: pastValue, now: v, heads: kvHeads }) : v;
      const scores = call.wanted[3] ? SCORES[given.qk_matmul_output_mode] : "none";
      if (!scores) throw new TypeError(`qk_matmul_output_mode is ${given.qk_matmul_output_mode}`);
      const [y, seen] = call.op("attention", [q, keys, values, mask, counts], {
        q_heads: qHeads,
        kv_heads: kvHeads,
        scale: given.scale ?? 1 / Math.sqrt(headWidth(q, qHeads)),
        softcap: given.softcap,
        causal: given.is_causal !== 0,
        offset: pastKey ? pastKey.type.shape[2]! : 0,
        scores,
      });
      return cached ? [y, keys, values, seen] : [y, undefined, undefined, seen];
    },
  }),

  /** `chunk_size` is a hint to implementations and changes no result. */
  onnxOp("LinearAttention", {
    versions: [27],
    attributes: {
      chunk_size: int(64),
      kv_num_heads: required(int()),
      q_num_heads: required(int()),
      scale: float(0),
      update_rule: text("gated_delta", { choices: ["linear", "gated", "delta", "gated_delta"] }),
    },
    build(call) {
      const { kv_num_heads: kv_heads, q_num_heads: q_heads, scale, update_rule: rule } =
        call.attributes;
      const q = call.input(0);
      const inputs = [q, call.input(1), call.input(2), ...[3, 4, 5].map((i) => call.inputs[i])];
      return call.op("linear_attention", inputs, {
        ...{ q_heads, kv_heads, rule },
        scale: scale || 1 / Math.sqrt(headWidth(q, q_heads)),
      });
    },
  }),

  onnxOp("RotaryEmbedding", {
    versions: [23],
    attributes: { interleaved: int(0), num_heads: int(0), rotary_embedding_dim: int(0) },
    build(call) {
      const x = call.input(0), { interleaved, num_heads } = call.attributes;
      const heads = x.type.shape.length === 4
        ? knownDim(x.type.shape[1], "the number of heads")
        : num_heads;
      const inputs = [x, call.input(1), call.input(2), call.inputs[3]];
      return call.op("rope", inputs, { heads, style: rotationStyle(interleaved) });
    },
  }),
];
