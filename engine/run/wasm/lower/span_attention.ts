// The WASM kernel of attention to spans: one instruction, units of a tile of rows and a key-value head (see
// wasm/assembly/attention/spans.ts).

import type { WasmKernel } from "../kernel.ts";
import { attentionInputs } from "../../../ops/attention_inputs.ts";
import {
  attentionAddress,
  cacheKind,
  emit,
  inputAddress,
  isStatic,
  outputAddress,
} from "./lower.ts";

/** Positions that the kernel takes at once, of caches and of the step's own rows. */
const BLOCK = 32;
const PACKED = 128;
/** Queries (rows × heads of a group) that share a read of K and V. */
const MOST_QUERIES = { cache: 32, step: 64 };

/** float32 rows of the step, or any cache; any head size. */
export const spanAttentionKernel: WasmKernel = {
  name: "span_attention",
  when({ node: { inputs, attributes } }) {
    const { q, k, v, sinks, slopes, rows } = attentionInputs(inputs);
    const { q_heads, style, to, window, softcap } = attributes;
    if (rows || q_heads !== 0 || style !== "none" || to === "q8") return false;
    if (!k || !v) return false;
    return !sinks && !slopes && window === 0 && softcap === 0 &&
      [q!.shape[1], ...k.shape.slice(1), ...v.shape.slice(1)].every(isStatic) &&
      k.dtype === v.dtype;
  },
  lower(lowering) {
    const { node: { inputs, attributes } } = lowering;
    const { q, k, v, slots, bias } = attentionInputs(inputs);
    const heads = q!.shape[1] as number, keys = slots && lowering.state(k!);
    const [kvHeads, size] = k!.shape.slice(1) as [number, number];
    const valueSize = v!.shape[2] as number;
    const most = slots ? MOST_QUERIES.cache : MOST_QUERIES.step;
    const tile = Math.max(1, Math.floor(most / (heads / kvHeads)));
    // per query: q, scores, accumulator, maximum, sum, factor; per block: K and V as float32, or a panel of either
    const queries = tile * heads / kvHeads + 1;
    const widths = padded(size) + padded(valueSize) + 4;
    const scratchBytes = 4 * queries * (widths + PACKED + 3) + 64 +
      4 * Math.max(BLOCK * widths, 8 * PACKED);
    emit(lowering, {
      name: "span_attention",
      operands: {
        q: inputAddress(lowering, 0),
        k: keys?.address ?? inputAddress(lowering, 1),
        v: slots ? lowering.state(v!).address : inputAddress(lowering, 2),
        starts: attentionAddress(lowering, "starts"),
        ends: attentionAddress(lowering, "ends"),
        positions: attentionAddress(lowering, "positions"),
        slots: attentionAddress(lowering, "slots"),
        page_table: keys?.table ?? 0,
        slot_count: lowering.slotCount,
        y: outputAddress(lowering),
        rows: q!.shape[0]!,
        limit: k!.shape[0]!,
        heads,
        kv_heads: kvHeads,
        head_size: size,
        value_size: valueSize,
        cache: cacheKind(k!),
        scale: attributes.scale as number,
        bias: attentionAddress(lowering, "bias"),
        reach: bias ? ((bias.shape[1] as number) - 1) / 2 : 0,
        tile,
        scratch: lowering.scratch(scratchBytes),
        scratch_bytes: Math.ceil(scratchBytes / 64) * 64,
      },
    });
  },
};

function padded(size: number): number {
  return Math.ceil(size / 4) * 4;
}
