// The WASM kernel of attention: two instructions, the second of which has nothing to do unless few rows
// meet a long context (see wasm/assembly/attention/attention.ts). All sizes here depend on shapes only, so results
// are the same on any number of threads.

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

/** Up to this many rows a long context is split over units of work. */
const SPLIT_ROWS = 4;
/** Most segments that a row is cut into, and fewest positions of one (whole blocks): of two pages. */
const MOST_SEGMENTS = 16;
const SHORTEST_SEGMENT = 128;
/** Positions of a block, and, of a cache of float16, queries and positions that the kernel takes at once. */
const BLOCK = 32;
const TOGETHER = 4;
const RUN = 64;
/** Queries (rows × heads of a group) that share a read of K and V. */
const MOST_QUERIES = 32;

/** Any cache that rows see up to themselves, or to an end; any head size that is a multiple of 4. */
export const attentionKernel: WasmKernel = {
  name: "attention",
  when({ node: { inputs, attributes } }) {
    const { q, k, v, positions, slots, sinks, slopes, starts, ends, bias, rows } = attentionInputs(
      inputs,
    );
    const { q_heads, style, to, window, softcap } = attributes;
    if (rows || q_heads !== 0 || style !== "none" || to === "q8") return false;
    const isSource = ends !== undefined && window === 0 && softcap === 0 && !sinks && !slopes;
    return slots !== undefined && (isSource || positions !== undefined && !ends) && !starts &&
      !bias && !(slopes && softcap !== 0) &&
      [q!.shape[1], ...k!.shape, ...v!.shape].every(isStatic) && k!.dtype === v!.dtype &&
      (k!.shape[2] as number) % 4 === 0 && (v!.shape[2] as number) % 4 === 0;
  },
  lower(lowering) {
    const { node: { inputs: [q, k, v], attributes } } = lowering;
    const heads = q!.shape[1] as number;
    const [capacity, kvHeads, size] = k!.shape as [number, number, number];
    const valueSize = v!.shape[2] as number;
    const group = heads / kvHeads;
    const tile = Math.max(1, Math.floor(MOST_QUERIES / group));
    const segments = Math.min(MOST_SEGMENTS, Math.ceil(capacity / SHORTEST_SEGMENT));
    const partialBytes = 4 * SPLIT_ROWS * heads * segments * (valueSize + 4);
    // per query: q, accumulator, maximum, sum; a unit is a tile of rows of one KV head, or a row of several
    const queries = Math.max(tile * group + 1, kvHeads * (group + 1));
    const working = k!.dtype === "f16"
      // of the queries that go together: scores, four partial sums for each, a factor a block
      ? TOGETHER * (5 * RUN + RUN / BLOCK)
      // per query: scores and factor; of the queries that go together: a weight a position
      : queries * (BLOCK + 1) + BLOCK * TOGETHER;
    const scratchBytes = 4 * queries * (size + valueSize + 2 + segments * (valueSize + 4)) +
      4 * working + 64;
    const rows = q!.shape[0]!, keys = lowering.state(k!);
    const ends = attentionAddress(lowering, "ends"), behind = ends ? 1 : 0;
    const positions = ends || attentionAddress(lowering, "positions");
    const partials = segments > 1 ? lowering.sharedScratch(partialBytes) : 0;
    const y = outputAddress(lowering);
    emit(lowering, {
      name: "attention",
      operands: {
        q: inputAddress(lowering, 0),
        k: keys.address,
        v: lowering.state(v!).address,
        positions,
        slots: attentionAddress(lowering, "slots"),
        page_table: keys.table,
        slot_count: lowering.slotCount,
        y,
        rows,
        heads,
        kv_heads: kvHeads,
        head_size: size,
        value_size: valueSize,
        capacity,
        cache: cacheKind(k!),
        scale: attributes.scale as number,
        window: attributes.window as number,
        softcap: attributes.softcap as number,
        tile,
        split_rows: SPLIT_ROWS,
        segments,
        partials,
        scratch: lowering.scratch(scratchBytes),
        scratch_bytes: Math.ceil(scratchBytes / 64) * 64,
        sinks: attentionAddress(lowering, "sinks"),
        slopes: attentionAddress(lowering, "slopes"),
        threads: lowering.threads,
        behind,
      },
    });
    if (segments === 1) return;
    emit(lowering, {
      name: "attention_combine",
      operands: {
        partials,
        positions,
        y,
        rows,
        heads,
        value_size: valueSize,
        window: attributes.window as number,
        split_rows: SPLIT_ROWS,
        segments,
        behind,
      },
    });
  },
};
