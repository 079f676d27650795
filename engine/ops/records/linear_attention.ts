// linear_attention: attention whose memory is one matrix a head, written and read once a row. A row may
// first shrink the memory (`gated`) and correct what it already holds for its key (`delta`).
//
// Yang et al. 2024, "Gated Delta Networks"; Katharopoulos et al. 2020 for the plain form.

import { choice, integer, number } from "../attributes.ts";
import { defineOp } from "../define_op.ts";
import { exactDiv, mul } from "../../graph/dim/mod.ts";
import { FLOATS, numbersOf, storeNumbers } from "../host_numbers.ts";
import type { OpRecord } from "../op.ts";
import { checkInputCount, optionalInput, requireEqual, requireInput } from "../shape_rules.ts";

/** How a row changes the memory. */
const UPDATE_RULES = ["linear", "gated", "delta", "gated_delta"] as const;

/**
 * (q [B, T, H·K], k [B, T, Hkv·K], v [B, T, Hkv·V], state [B, Hkv, K, V]?, decay [B, T, Hkv or Hkv·K]?,
 * beta [B, T, Hkv or 1]?) → (y [B, T, H·V], state [B, Hkv, K, V]). Decays are logarithms.
 */
export const linearAttention: OpRecord = defineOp({
  name: "linear_attention",
  summary: "attention with a matrix a head as memory",
  attributes: {
    q_heads: integer(1),
    kv_heads: integer(1),
    scale: number(),
    rule: choice(UPDATE_RULES),
  },
  infer(inputs, { q_heads, kv_heads, rule }) {
    checkInputCount(inputs, 6);
    const q = requireInput(inputs, { index: 0, name: "q", dtype: FLOATS, rank: 3 });
    const k = requireInput(inputs, { index: 1, name: "k", dtype: q.dtype, rank: 3 });
    const v = requireInput(inputs, { index: 2, name: "v", dtype: q.dtype, rank: 3 });
    const state = optionalInput(inputs, { index: 3, name: "state", dtype: FLOATS, rank: 4 });
    const gated = rule.startsWith("gated"), delta = rule.endsWith("delta");
    for (const [index, name, wanted] of [[4, "decay", gated], [5, "beta", delta]] as const) {
      if (wanted) requireInput(inputs, { index, name, dtype: FLOATS, rank: 3 });
      else if (inputs[index]) throw new TypeError(`rule ${rule} takes no ${name}`);
    }
    if (q_heads % kv_heads !== 0) {
      throw new RangeError(`${q_heads} heads of q: must be a multiple of the ${kv_heads} of k`);
    }
    const width = exactDiv(q.shape[2]!, q_heads), depth = exactDiv(v.shape[2]!, kv_heads);
    if (width === undefined || depth === undefined) {
      throw new RangeError("the columns of q and v must be multiples of their heads");
    }
    requireEqual(width, {
      b: exactDiv(k.shape[2]!, kv_heads) ?? 0,
      what: "the head widths of q and k",
    });
    const [batch, rows] = q.shape as [typeof width, typeof width];
    return [
      { dtype: q.dtype, shape: [batch, rows, mul(depth, q_heads)] },
      { dtype: state?.dtype ?? q.dtype, shape: [batch, kv_heads, width, depth] },
    ];
  },
  reference({ inputs, outputs: [out, last], attributes }) {
    const [q, k, v, past, decay, beta] = inputs.map((input) => input && numbersOf(input));
    const { q_heads, kv_heads, scale } = attributes;
    const [batch, rows] = inputs[0]!.shape as [number, number];
    const [, , width, depth] = last!.shape as [number, number, number, number];
    const group = q_heads / kv_heads, y = new Float64Array(out!.data.length);
    const memory = new Float64Array(last!.data.length);
    if (past) memory.set(past);
    const decays = decay ? inputs[4]!.shape[2]! : 0, betas = beta ? inputs[5]!.shape[2]! : 0;

    function step(b: number, t: number, h: number): void {
      const state = memory.subarray((b * kv_heads + h) * width * depth);
      const row = b * rows + t, key = (row * kv_heads + h) * width;
      const value = Float64Array.from(
        { length: depth },
        (_, j) => v![(row * kv_heads + h) * depth + j]!,
      );
      for (let i = 0; decay && i < width; i++) {
        const at = decays === kv_heads ? h : h * width + i;
        const factor = Math.exp(decay[row * decays + at]!);
        for (let j = 0; j < depth; j++) state[i * depth + j]! *= factor;
      }
      if (beta) {
        const rate = beta[row * betas + (betas === 1 ? 0 : h)]!;
        for (let j = 0; j < depth; j++) {
          let held = 0;
          for (let i = 0; i < width; i++) held += state[i * depth + j]! * k![key + i]!;
          value[j] = rate * (value[j]! - held);
        }
      }
      for (let i = 0; i < width; i++) {
        for (let j = 0; j < depth; j++) state[i * depth + j]! += k![key + i]! * value[j]!;
      }
      for (let head = h * group; head < (h + 1) * group; head++) {
        const query = (row * q_heads + head) * width, target = (row * q_heads + head) * depth;
        for (let i = 0; i < width; i++) {
          const factor = scale * q![query + i]!;
          for (let j = 0; j < depth; j++) y[target + j]! += factor * state[i * depth + j]!;
        }
      }
    }

    for (let b = 0; b < batch; b++) {
      for (let t = 0; t < rows; t++) {
        for (let h = 0; h < kv_heads; h++) step(b, t, h);
      }
    }
    storeNumbers(out!, y);
    storeNumbers(last!, memory);
  },
  cases: (random) =>
    UPDATE_RULES.map((rule) => ({
      name: rule,
      inputs: [
        random.input([2, 5, 16]),
        random.input([2, 5, 8]),
        random.input([2, 5, 6]),
        random.input([2, 2, 4, 3]),
        rule.startsWith("gated") ? random.input([2, 5, 2]) : undefined,
        rule.endsWith("delta") ? random.input([2, 5, 1]) : undefined,
      ],
      attributes: { q_heads: 4, kv_heads: 2, scale: 0.5, rule },
    })),
});
