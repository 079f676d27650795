// GroupQueryAttention and RotaryEmbedding of com.microsoft. Each item of a batch has keys up to a
// length of its own; new rows go behind them, whether the past is given as long as it is or in a buffer
// with room.

import { type Dim, equal, max } from "../../graph/dim/mod.ts";
import { float, int, required, text } from "../derivation/attributes.ts";
import { applyBinary } from "../derivation/elementwise.ts";
import { contribOp, type OnnxCall, type OnnxOp } from "../derivation/op.ts";
import type { Tensor } from "../derivation/tensor.ts";
import { headWidth, knownDim, rotationStyle } from "./attention.ts";

/** RotaryEmbedding. */
export const contribRotaryEmbedding: OnnxOp = contribOp("RotaryEmbedding", {
  attributes: {
    interleaved: int(0),
    is_packed_batching: int(0),
    num_heads: int(0),
    rotary_embedding_dim: int(0),
    scale: float(1),
  },
  build(call) {
    const { interleaved, is_packed_batching, num_heads, scale } = call.attributes;
    if (is_packed_batching) call.unsupported("batches packed without padding");
    if (scale !== 1) call.unsupported(`a scale of ${scale}`);
    const x = call.input(0), cos = call.input(2), { shape } = x.type;
    // Without a number of heads the tables tell their width.
    const heads = shape.length === 4 ? knownDim(shape[1], "the number of heads") : num_heads ||
      knownDim(shape[2], "the columns") / (2 * knownDim(cos.type.shape[1], "angles"));
    const inputs = [x, cos, call.input(3), call.input(1)];
    return call.op("rope", inputs, { heads, style: rotationStyle(interleaved) });
  },
});

interface Given {
  readonly num_heads: number;
  readonly kv_num_heads: number;
}

/** GroupQueryAttention over floats. */
export const groupQueryAttention: OnnxOp = contribOp("GroupQueryAttention", {
  attributes: {
    causal: int(1),
    do_rotary: int(0),
    k_norm_epsilon: float(undefined),
    k_quant_type: text("NONE"),
    kv_cache_bit_width: int(0),
    kv_num_heads: required(int()),
    local_window_size: int(-1),
    num_heads: required(int()),
    q_norm_epsilon: float(undefined),
    qk_norm_epsilon: float(1e-6),
    qk_output: int(0),
    rotary_interleaved: int(0),
    scale: float(0),
    sliding_window_cache: int(0),
    smooth_softmax: int(0),
    softcap: float(0),
    v_quant_type: text("NONE"),
  },
  build(call) {
    const { attributes: given } = call;
    if (given.k_quant_type !== "NONE" || given.v_quant_type !== "NONE") {
      call.unsupported("caches of codes");
    }
    if (given.sliding_window_cache) call.unsupported("caches of a window's size");
    if (call.inputs[16]) call.unsupported("padded chunks (query_seqlens)");
    const { num_heads: qHeads, kv_num_heads: kvHeads } = given;
    let [q, k, v] = splitJoint(call);
    const width = headWidth(q, qHeads), rows = q.type.shape[1]!;
    q = normalHeads(call, {
      ...{ x: q, heads: qHeads, weight: call.inputs[14] },
      epsilon: given.q_norm_epsilon ?? given.qk_norm_epsilon,
    });
    k = normalHeads(call, {
      ...{ x: k, heads: kvHeads, weight: call.inputs[15] },
      epsilon: given.k_norm_epsilon ?? given.qk_norm_epsilon,
    });
    // seqlens_k is the number of keys less one.
    const counts = applyBinary(call, { kind: "add", a: call.input(5), b: call.scalar("i32", 1) });
    if (given.do_rotary) {
      const positions = call.inputs[9] ?? positionsOf(call, counts, rows);
      const turn = (x: Tensor, heads: number) =>
        call.one("rope", [x, call.input(7), call.input(8), positions], {
          heads,
          style: rotationStyle(given.rotary_interleaved),
        });
      q = turn(q, qHeads);
      k = turn(k, kvHeads);
    }
    const [keys, values] = caches(call, { k, v, counts });
    const sinks = call.inputs[11] ??
      (given.smooth_softmax > 0 ? zeros(call, q, qHeads) : undefined);
    const kind = given.qk_output === 0 ? "none" : given.qk_output === 1 ? "masked" : "weights";
    const inputs = [q, keys, values, call.inputs[10], counts, sinks];
    const [y, scores] = call.op("attention", inputs, {
      q_heads: qHeads,
      kv_heads: kvHeads,
      scale: given.scale || 1 / Math.sqrt(width),
      softcap: given.softcap,
      causal: given.causal !== 0,
      from_end: true,
      window: Math.max(0, given.local_window_size),
      scores: kind,
    });
    return [y, keys, values, scores];
  },
});

// Query, key and value, which may lie in one tensor.
function splitJoint(call: OnnxCall<Given>): [Tensor, Tensor, Tensor] {
  const q = call.input(0), k = call.inputs[1], v = call.inputs[2];
  if (k && v) return [q, k, v];
  const { num_heads, kv_num_heads } = call.attributes;
  const [batch, rows, total] = q.type.shape as [Dim, Dim, Dim];
  const width = knownDim(total, "the columns") / (num_heads + 2 * kv_num_heads);
  const part = (from: number, heads: number) =>
    call.one("slice", [q], {
      starts: [0, 0, from * width],
      sizes: [batch, rows, heads * width],
      steps: [1, 1, 1],
    });
  return [
    part(0, num_heads),
    part(num_heads, kv_num_heads),
    part(num_heads + kv_num_heads, kv_num_heads),
  ];
}

/** Each head's row with an RMS norm of its own, if there is a weight for it. */
function normalHeads(
  call: OnnxCall<unknown>,
  { x, heads, weight, epsilon }: {
    readonly x: Tensor;
    readonly heads: number;
    readonly weight: Tensor | undefined;
    readonly epsilon: number;
  },
): Tensor {
  if (!weight) return x;
  const { shape } = x.type;
  const split = [shape[0]!, shape[1]!, heads, headWidth(x, heads)];
  const apart = call.one("reshape", [x], { shape: split });
  return call.one("reshape", [call.one("norm", [apart, weight], { epsilon })], { shape });
}

/** Positions [B, S] of the new rows: behind the keys that were there before. */
function positionsOf(call: OnnxCall<unknown>, counts: Tensor, rows: Dim): Tensor {
  const fresh = call.fromDims([rows], "i32", []);
  const before = applyBinary(call, { kind: "sub", a: counts, b: fresh });
  const start = applyBinary(call, { kind: "max", a: before, b: call.scalar("i32", 0) });
  const column = call.one("reshape", [start], { shape: [counts.type.shape[0]!, 1] });
  const steps = call.one("range", [call.scalar("i32", 0), call.scalar("i32", 1)], { size: rows });
  return applyBinary(call, { kind: "add", a: column, b: steps });
}

function caches(
  call: OnnxCall<Given>,
  { k, v, counts }: { readonly k: Tensor; readonly v: Tensor; readonly counts: Tensor },
): [Tensor, Tensor] {
  const pastKey = call.inputs[3], pastValue = call.inputs[4];
  const total = call.dims(6)[0]!, held = pastKey?.type.shape[2] ?? 0;
  const capacity = equal(held, 0) ? total : max(held, total);
  const attributes = { heads: call.attributes.kv_num_heads, capacity };
  return [
    call.one("append_rows", [k, pastKey, counts], attributes),
    call.one("append_rows", [v, pastValue, counts], attributes),
  ];
}

function zeros(call: OnnxCall<unknown>, like: Tensor, count: number): Tensor {
  return call.one("expand", [call.scalar(like.type.dtype, 0)], { shape: [count] });
}
