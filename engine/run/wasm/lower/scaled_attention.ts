// Lowering of attention over keys and values that are activations, of rotary tables and of appended
// rows.

import { ATTENTION_FLAGS } from "../../../../wasm/opcodes_nn.ts";
import type { WasmKernel } from "../kernel.ts";
import { type Dim, equal, product } from "../../../graph/dim/mod.ts";
import type { Value } from "../../../graph/graph.ts";
import { roundUp64 } from "./conv.ts";
import { emit, inputAddress, isStatic, outputAddress } from "./lower.ts";
import { maskStrides } from "../../../ops/attention_shapes.ts";
import { heads, type Layout, layoutsOf } from "../../../ops/attention_rows.ts";

const isJoined = (value: Value): boolean => value.shape.length === 3;
const isWide = (value: Value | undefined): 0 | 1 => value?.dtype === "i64" ? 1 : 0;

/** Sum of the flags that hold. */
function flagsOf(flags: Readonly<Record<keyof typeof ATTENTION_FLAGS, boolean>>): number {
  return Object.entries(ATTENTION_FLAGS).reduce(
    (sum, [name, bit]) => sum + (flags[name as keyof typeof ATTENTION_FLAGS] ? bit : 0),
    0,
  );
}

/** Float32 heads of known widths, without scores as an output. */
export const scaledAttentionKernel: WasmKernel = {
  name: "scaled_attention_f32",
  when({ node: { inputs: [q, k, v, mask, , sinks, newK, newV], attributes } }) {
    if (attributes.q_heads === 0 || attributes.to === "q8") return false;
    const layouts = layoutsOf([q, k, v], attributes);
    return [q, k, v, newK, newV].every((value) => !value || value.dtype === "f32") &&
      attributes.scores === "none" && isStatic(layouts.q.width) && isStatic(layouts.v.width) &&
      (!mask || (mask.shape.length <= 4 && (mask.dtype === "f32" || mask.dtype === "bool"))) &&
      (!sinks || sinks.dtype === "f32");
  },
  lower(lowering) {
    const { inputs: [q, k, v, mask, counts, , newK, newV], attributes } = lowering.node;
    const qHeads = attributes.q_heads as number, kvHeads = attributes.kv_heads as number;
    const { q: query, k: { rows: keys }, v: value } = layoutsOf([q, k, v], attributes);
    const { batch, rows, width } = query, value_width = value.width as number;
    const padded = Math.ceil(value_width / 8) * 8;
    const qkv = inputAddress(lowering, 0), headBytes = 4 * (width as number);
    // Scores, sums, two numbers a row, a packed panel: wasm/assembly/attention/scaled.ts.
    const panel = Math.max(width as number, 128) * 32;
    const bytes = 32 * 128 * 4 + 32 * padded * 4 + 2 * 32 * 4 + panel;
    emit(lowering, {
      name: "scaled_attention",
      operands: {
        q: qkv,
        k: k ? inputAddress(lowering, 1) : qkv + qHeads * headBytes,
        v: v ? inputAddress(lowering, 2) : qkv + (qHeads + kvHeads) * headBytes,
        y: outputAddress(lowering),
        mask: inputAddress(lowering, 3),
        counts: inputAddress(lowering, 4),
        sinks: inputAddress(lowering, 5),
        flags: flagsOf({
          q_joined: isJoined(q!),
          k_joined: k !== undefined && isJoined(k),
          v_joined: v !== undefined && isJoined(v),
          packed: !k && !v,
          causal: attributes.causal === true,
          from_end: attributes.from_end === true,
          wide: counts?.dtype === "i64",
          new_k_joined: newK !== undefined && isJoined(newK),
          new_v_joined: newV !== undefined && isJoined(newV),
          truths: mask?.dtype === "bool",
          one_column: mask !== undefined && equal(mask.shape.at(-1) ?? 1, 1),
          behind_valid: attributes.new_rows === "behind_valid",
          spoilt: attributes.unseen === "nan",
        }),
        ...{ batch, heads: qHeads, kv_heads: kvHeads, rows, keys, width, value_width },
        scale: attributes.scale as number,
        softcap: attributes.softcap as number,
        offset: attributes.offset as Dim,
        window: attributes.window as number,
        ...maskStrides(mask?.shape),
        new_k: inputAddress(lowering, 6),
        new_v: inputAddress(lowering, 7),
        fresh: newK ? heads(newK.shape, kvHeads).rows : 0,
        scratch: lowering.scratch(bytes),
        scratch_bytes: roundUp64(bytes),
      },
    });
  },
};

/** Float32 heads and tables. */
export const rotaryKernel: WasmKernel = {
  name: "rotary_f32",
  when({ node: { inputs: [x, cos, sin], attributes } }) {
    if (attributes.heads === 0) return false;
    const { width } = heads(x!.shape, attributes.heads as number), half = cos!.shape.at(-1)!;
    return [x, cos, sin].every((value) => value!.dtype === "f32") && isStatic(width) &&
      isStatic(half) && 2 * half <= width;
  },
  lower(lowering) {
    const { inputs: [x, cos, , positions], attributes } = lowering.node;
    const { batch, rows, width } = heads(x!.shape, attributes.heads as number) as Layout<Dim>;
    emit(lowering, {
      name: "rotary",
      operands: {
        x: inputAddress(lowering, 0),
        y: outputAddress(lowering),
        cos: inputAddress(lowering, 1),
        sin: inputAddress(lowering, 2),
        positions: inputAddress(lowering, 3),
        wide: isWide(positions),
        single: positions && equal(product(positions.shape), 1) ? 1 : 0,
        ...{ batch, rows, width, heads: attributes.heads as number },
        half: cos!.shape.at(-1)!,
        table: product(cos!.shape.slice(0, -1)),
        joined: isJoined(x!) ? 1 : 0,
        interleaved: attributes.style === "interleaved" ? 1 : 0,
      },
    });
  },
};

/** Float32 rows. */
export const appendRowsKernel: WasmKernel = {
  name: "append_rows_f32",
  when: ({ node: { inputs: [rows] } }) => rows!.dtype === "f32",
  lower(lowering) {
    const { inputs: [x, past, counts], attributes } = lowering.node;
    const count = attributes.heads as number;
    const { batch, rows, width } = heads(x!.shape, count) as Layout<Dim>;
    emit(lowering, {
      name: "append_rows",
      operands: {
        x: inputAddress(lowering, 0),
        past: inputAddress(lowering, 1),
        counts: inputAddress(lowering, 2),
        wide: isWide(counts),
        y: outputAddress(lowering),
        ...{ batch, heads: count, rows, width },
        held: past ? past.shape[2]! : 0,
        capacity: attributes.capacity as Dim,
        joined: isJoined(x!) ? 1 : 0,
      },
    });
  },
};
