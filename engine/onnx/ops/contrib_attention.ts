// Attention of com.microsoft: with its projections (Attention, QAttention), after them
// (MultiHeadAttention) and for decoders that share key-value heads (GroupQueryAttention). All of them
// become the op attention.

import { type Dim, equal, mul } from "../../graph/dim/mod.ts";
import { float, int, ints, type OnnxAttributesOf, required } from "../derivation/attributes.ts";
import { applyBinary, castTo } from "../derivation/elementwise.ts";
import { contribOp, type OnnxCall, type OnnxOp } from "../derivation/op.ts";
import type { Tensor } from "../derivation/tensor.ts";
import { headWidth, joinRows, knownDim } from "./attention.ts";
import { contribRotaryEmbedding, groupQueryAttention } from "./contrib_group_query.ts";
import { integerProduct } from "./contrib_quantized.ts";
import { multiplyMatrices } from "./matmul.ts";

/** Columns `from` to `from + count` of a tensor. */
function columnsOf(
  call: Pick<OnnxCall, "one">,
  { x, from, count }: { readonly x: Tensor; readonly from: number; readonly count: number },
): Tensor {
  const { shape } = x.type;
  return call.one("slice", [x], {
    starts: shape.map((_, axis) => axis === shape.length - 1 ? from : 0),
    sizes: [...shape.slice(0, -1), count],
    steps: shape.map(() => 1),
  });
}

/** What a mask of ones and zeros adds to scores, or how many keys of each item count. */
interface Masking {
  readonly mask?: Tensor | undefined;
  readonly counts?: Tensor | undefined;
}

/** Masks of all forms but the packed ones. `filter` is what a masked score loses. */
function maskingOf(
  call: OnnxCall<unknown>,
  { mask, batch, filter }: {
    readonly mask: Tensor | undefined;
    readonly batch: Dim;
    readonly filter: number;
  },
): Masking {
  if (!mask) return {};
  const { shape } = mask.type;
  if (shape.length === 1) {
    if (!equal(shape[0]!, batch)) call.unsupported("masks of start and end positions");
    return { counts: mask };
  }
  // [B, T], [B, S, T] and [B, 1, S, T] under [B, heads, S, T].
  const aligned = shape.length === 4 ? mask : call.one("reshape", [mask], {
    shape: shape.length === 2 ? [shape[0]!, 1, 1, shape[1]!] : [shape[0]!, 1, shape[1]!, shape[2]!],
  });
  const seen = castTo(call, { x: aligned, to: "f32" });
  const missing = applyBinary(call, { kind: "sub", a: call.scalar("f32", 1), b: seen });
  return { mask: applyBinary(call, { kind: "mul", a: missing, b: call.scalar("f32", filter) }) };
}

function sumOf(call: OnnxCall<unknown>, a: Tensor | undefined, b: Tensor | undefined) {
  return a && b ? applyBinary(call, { kind: "add", a, b }) : a ?? b;
}

interface Attending {
  readonly q: Tensor;
  readonly k: Tensor;
  readonly v: Tensor;
  readonly heads: number;
  readonly scale: number | undefined;
  readonly causal: boolean;
  readonly past: Dim;
  readonly masking: Masking;
  readonly bias: Tensor | undefined;
  readonly weights?: boolean;
}

function attend(call: OnnxCall<unknown>, given: Attending): Tensor[] {
  const { q, k, v, heads, scale, causal, past, masking, bias, weights } = given;
  const mask = sumOf(call, masking.mask, bias);
  return call.op("attention", [q, k, v, mask, masking.counts], {
    q_heads: heads,
    kv_heads: heads,
    scale: scale || 1 / Math.sqrt(headWidth(q, heads)),
    causal,
    offset: past,
    scores: weights ? "weights" : "none",
  });
}

// Query, key and value, which may lie together: [B, S, heads, 3, D], or keys and values [B, T, heads,
// 2, D].
function splitInputs(call: OnnxCall<unknown>, heads: number): [Tensor, Tensor, Tensor] {
  const parts = (x: Tensor, count: number) => {
    const [batch, rows, , , width] = x.type.shape as [Dim, Dim, Dim, Dim, Dim];
    return Array.from({ length: count }, (_, i) => {
      const part = call.one("slice", [x], {
        starts: [0, 0, 0, i, 0],
        sizes: [batch, rows, heads, 1, width],
        steps: [1, 1, 1, 1, 1],
      });
      return call.one("reshape", [part], { shape: [batch, rows, mul(width, heads)] });
    });
  };
  const q = call.input(0), k = call.inputs[1], v = call.inputs[2];
  if (q.type.shape.length === 5) return parts(q, 3) as [Tensor, Tensor, Tensor];
  if (k?.type.shape.length === 5) return [q, ...parts(k, 2)] as [Tensor, Tensor, Tensor];
  if (!k || !v) throw new TypeError("key and value are missing");
  return [q, k, v];
}

function withBias(
  call: OnnxCall<unknown>,
  inputs: [Tensor, Tensor, Tensor],
): [Tensor, Tensor, Tensor] {
  const bias = call.inputs[3];
  if (!bias) return inputs;
  let from = 0;
  return inputs.map((x) => {
    if (x.type.shape.length === 4) throw new TypeError("a bias needs inputs of three dims");
    const width = knownDim(x.type.shape[2], "the columns of an input");
    const part = columnsOf(call, { x: bias, from, count: width });
    from += width;
    return applyBinary(call, { kind: "add", a: x, b: part });
  }) as [Tensor, Tensor, Tensor];
}

const sharedAttributes = {
  do_rotary: int(0),
  mask_filter_value: float(-10000),
  num_heads: required(int()),
  past_present_share_buffer: int(0),
  scale: float(0),
  unidirectional: int(0),
} as const;

type Projected = OnnxAttributesOf<typeof sharedAttributes>;

/** From the joint projection on: split, appended to the past [2, B, heads, P, D], attended. */
function afterProjection(
  call: OnnxCall<Projected>,
  joint: Tensor,
  widths: readonly [number, number, number],
  { mask, past, bias }: Readonly<Record<"mask" | "past" | "bias", Tensor | undefined>>,
): (Tensor | undefined)[] {
  const { num_heads: heads, mask_filter_value, scale, unidirectional } = call.attributes;
  if (call.attributes.do_rotary) call.unsupported("rotary positions inside attention");
  if (call.attributes.past_present_share_buffer) call.unsupported("caches in a shared buffer");
  const q = columnsOf(call, { x: joint, from: 0, count: widths[0] });
  const k = columnsOf(call, { x: joint, from: widths[0], count: widths[1] });
  const v = columnsOf(call, { x: joint, from: widths[0] + widths[1], count: widths[2] });
  const cached = past !== undefined || call.wanted[1] === true;
  const half = (index: number) => past && pastHalf(call, past, index);
  const keys = cached ? joinRows(call, { past: half(0), now: k, heads }) : k;
  const values = cached ? joinRows(call, { past: half(1), now: v, heads }) : v;
  const [y] = attend(call, {
    ...{ q, k: keys, v: values, heads, scale, bias },
    causal: unidirectional !== 0,
    past: past?.type.shape[3] ?? 0,
    masking: maskingOf(call, { mask, batch: q.type.shape[0]!, filter: mask_filter_value }),
  });
  if (!cached) return [y];
  const stacked = [keys, values].map((x) =>
    call.one("reshape", [x], { shape: [1, ...x.type.shape] })
  );
  return [y, call.one("concat", stacked, { axis: 0 })];
}

function pastHalf(call: OnnxCall<unknown>, past: Tensor, index: number): Tensor {
  const [, ...shape] = past.type.shape;
  const half = call.one("slice", [past], {
    starts: [index, 0, 0, 0, 0],
    sizes: [1, ...shape],
    steps: [1, 1, 1, 1, 1],
  });
  return call.one("reshape", [half], { shape });
}

/** Attention of com.microsoft. */
export const contribAttentionOps: readonly OnnxOp[] = [
  contribOp("Attention", {
    attributes: {
      ...sharedAttributes,
      qkv_hidden_sizes: ints(undefined),
      rotary_embedding_dim: int(0),
    },
    build(call) {
      const x = call.input(0), weight = call.input(1), bias = call.inputs[2];
      const total = knownDim(weight.type.shape[1], "the columns of the weights");
      const widths = call.attributes.qkv_hidden_sizes ?? [total / 3, total / 3, total / 3];
      const joint = multiplyMatrices(call, { a: x, b: weight }, bias ? { bias } : {});
      return afterProjection(call, joint, widths as [number, number, number], {
        mask: call.inputs[3],
        past: call.inputs[4],
        bias: call.inputs[5],
      });
    },
  }),
  contribRotaryEmbedding,
  groupQueryAttention,
  contribOp("MultiHeadAttention", {
    attributes: {
      mask_filter_value: float(-10000),
      num_heads: required(int()),
      scale: float(0),
      unidirectional: int(0),
    },
    build(call) {
      const { mask_filter_value, num_heads: heads, scale, unidirectional } = call.attributes;
      if (call.inputs[8] || call.inputs[9]) call.unsupported("caches in a shared buffer");
      const [q, k, v] = withBias(call, splitInputs(call, heads));
      const pastKey = call.inputs[6], pastValue = call.inputs[7];
      const cached = pastKey || call.wanted[1] || call.wanted[2];
      const keys = cached ? joinRows(call, { past: pastKey, now: k, heads }) : k;
      const values = cached ? joinRows(call, { past: pastValue, now: v, heads }) : v;
      const [y, weights] = attend(call, {
        ...{ q, k: keys, v: values, heads, scale },
        causal: unidirectional !== 0,
        past: pastKey?.type.shape[2] ?? 0,
        masking: maskingOf(call, {
          mask: call.inputs[4],
          batch: q.type.shape[0]!,
          filter: mask_filter_value,
        }),
        bias: call.inputs[5],
        weights: call.wanted[3] === true,
      });
      return [y, cached ? keys : undefined, cached ? values : undefined, weights];
    },
  }),
  contribOp("QAttention", {
    attributes: sharedAttributes,
    build(call) {
      const weight = call.input(1),
        total = knownDim(weight.type.shape[1], "the columns of weights");
      const joint = integerProduct(call, {
        a: { codes: call.input(0), scale: call.input(3), zero: call.inputs[6] },
        b: { codes: weight, scale: call.input(4), zero: call.inputs[7] },
        bias: call.input(2),
      });
      return afterProjection(call, joint, [total / 3, total / 3, total / 3], {
        mask: call.inputs[5],
        past: call.inputs[8],
        bias: undefined,
      });
    },
  }),
];
