// Kernels of the matmul family: quantisation of activations, matrix products, embedding rows.
// See opcodes.ts. `layout` and `tile_bytes` are those of wasm/weight_layout.ts; `scratch` is the address
// of thread 0's scratch memory and `scratch_bytes` what each thread has; `bias` is 0 for none.

import type { OpcodeRecord } from "./opcode_record.ts";

/** Table of these kernels. */
export const MATMUL_OPCODES = {
  /**
   * While loading: `rows` rows of a weight, `row_bytes` apart at `source`, into tiles at `target`, `chunk` tiles
   * at a time; what is not finite is counted at `bad`. `kind` and the rest: see pack/weight.ts.
   */
  pack_weight: {
    file: "pack/weight",
    operands: {
      ...{ kind: "u32", layout: "u32", source: "u32", rows: "u32", row_bytes: "u32" },
      ...{ columns: "u32", target: "u32", tile_bytes: "u32", chunk: "u32", bad: "u32" },
      ...{ codes: "u32", codes_above: "u32", scales: "u32", floats: "u32", integers: "u32" },
      ...{ integers_above: "u32", offset: "u32", block_size: "u32", block_bytes: "u32" },
      ...{ scratch: "u32", scratch_bytes: "u32", file: "u32", file_offset: "u32" },
      ...{ file_offset_high: "u32", staging_bytes: "u32", loaded: "u32" },
    },
  },
  /** Rows of float32 to 8 bit (quant/q8_activation.ts), `row_bytes` apart; `low` 1: with low sums. */
  quantize_q8: {
    file: "matmul/quantize",
    operands: {
      ...{ x: "u32", y: "u32", rows: "u32", columns: "u32", group: "u32", row_bytes: "u32" },
      ...{ scratch: "u32", scratch_bytes: "u32", low: "u32" },
    },
  },
  /** quantize_q8 of rms_norm; `scratch_bytes` hold a row of floats. */
  rms_norm_q8: {
    file: "matmul/quantize",
    operands: {
      ...{ x: "u32", w: "u32", y: "u32", rows: "u32", columns: "u32", group: "u32" },
      ...{ row_bytes: "u32", epsilon: "f32", base: "f32", scratch: "u32", scratch_bytes: "u32" },
    },
  },
  /** quantize_q8 of glu; `scratch_bytes` hold 512 floats. */
  glu_q8: {
    file: "matmul/quantize",
    operands: {
      ...{ gate: "u32", up: "u32", y: "u32", rows: "u32", columns: "u32", row_bytes: "u32" },
      ...{ kind: "u32", scratch: "u32", scratch_bytes: "u32" },
    },
  },
  /** quantize_q8 of activation; `scratch_bytes` hold 512 floats. */
  activation_q8: {
    file: "matmul/quantize",
    operands: {
      ...{ x: "u32", y: "u32", rows: "u32", columns: "u32", row_bytes: "u32", kind: "u32" },
      ...{ scratch: "u32", scratch_bytes: "u32", low: "u32" },
    },
  },
  /**
   * y[rows, outputs] = x · wᵀ + bias on 8-bit rows. `large`, `threads`, `chunk`: see weight_chunks.ts.
   * `style` 0 lets the kernel ask the processor, 1 forces pair sums, 2 the relaxed dot (tests).
   */
  matmul_q8: {
    file: "matmul/q8",
    operands: {
      ...{ x: "u32", w: "u32", y: "u32", bias: "u32", rows: "u32", columns: "u32", outputs: "u32" },
      ...{ layout: "u32", row_bytes: "u32", tile_bytes: "u32", large: "u32" },
      ...{ threads: "u32", chunk: "u32", scratch: "u32", scratch_bytes: "u32", style: "u32" },
    },
  },
  /** y[rows, outputs] = x · wᵀ + bias on float32 rows that are rounded to 16 bit, `row_bytes` apart in scratch memory. */
  matmul_q16: {
    file: "matmul/q16",
    operands: {
      ...{ x: "u32", w: "u32", y: "u32", bias: "u32", rows: "u32", columns: "u32", outputs: "u32" },
      ...{ layout: "u32", row_bytes: "u32", tile_bytes: "u32", large: "u32", threads: "u32" },
      ...{ chunk: "u32", scratch: "u32", scratch_bytes: "u32" },
    },
  },
  /** y[rows, outputs] = x · wᵀ + bias on 8-bit rows and weights rounded to 7 bit (int7_layout.ts). */
  matmul_int7: {
    file: "matmul/int7",
    operands: {
      ...{ x: "u32", w: "u32", y: "u32", bias: "u32", rows: "u32", columns: "u32", outputs: "u32" },
      ...{ row_bytes: "u32", tile_bytes: "u32", large: "u32", threads: "u32", chunk: "u32" },
      ...{ block: "u32", scratch: "u32", scratch_bytes: "u32", style: "u32" },
    },
  },
  /** Rows of float32 to LF8 (quant/lf8_products.ts); `columns` a multiple of 256. */
  quantize_lf8: {
    file: "matmul/lf8",
    operands: { x: "u32", y: "u32", rows: "u32", columns: "u32" },
  },
  /** y[rows, outputs] = x · wᵀ + bias, both sides LF8 as it lies in files, in the order of the definition. */
  matmul_lf8: {
    file: "matmul/lf8",
    operands: {
      ...{ x: "u32", w: "u32", y: "u32", bias: "u32", rows: "u32", columns: "u32", outputs: "u32" },
    },
  },
  /**
   * y[rows, outputs] = x · wᵀ + bias on float32 rows and exactly the stored weights; `block` rows at a time
   * where there are more.
   */
  matmul: {
    file: "matmul/matmul",
    operands: {
      ...{ x: "u32", w: "u32", y: "u32", bias: "u32", rows: "u32", columns: "u32", outputs: "u32" },
      ...{ layout: "u32", tile_bytes: "u32", large: "u32", threads: "u32", chunk: "u32" },
      ...{ block: "u32", scratch: "u32", scratch_bytes: "u32" },
    },
  },
  /**
   * y[m, i] = x[m, i] · w[e]ᵀ + bias[e] with e = `chosen[m, i]`, or i where `chosen` is 0; `count` of them a
   * row, `shared` 1 if x has one row for all. `outputs` of one matrix, a multiple of 8.
   */
  expert_matmul: {
    file: "matmul/expert",
    operands: {
      ...{ x: "u32", w: "u32", y: "u32", bias: "u32", chosen: "u32", rows: "u32", count: "u32" },
      ...{ shared: "u32", experts: "u32", columns: "u32", outputs: "u32", layout: "u32" },
      ...{ tile_bytes: "u32", chunk: "u32", scratch: "u32", scratch_bytes: "u32" },
    },
  },
  /** The same on 8-bit rows, `row_bytes` apart; `style` as in matmul_q8. */
  expert_matmul_q8: {
    file: "matmul/expert",
    operands: {
      ...{ x: "u32", w: "u32", y: "u32", bias: "u32", chosen: "u32", rows: "u32", count: "u32" },
      ...{ shared: "u32", experts: "u32", columns: "u32", outputs: "u32", layout: "u32" },
      ...{ row_bytes: "u32", tile_bytes: "u32", chunk: "u32", style: "u32" },
      ...{ scratch: "u32", scratch_bytes: "u32" },
    },
  },
  /** y[rows, columns] = w[token] · scale; traps on a token outside the vocabulary. */
  embed: {
    file: "rows/embed",
    operands: {
      ...{ tokens: "u32", w: "u32", y: "u32", rows: "u32", columns: "u32", vocabulary: "u32" },
      ...{ layout: "u32", tile_bytes: "u32", scale: "f32", scratch: "u32", scratch_bytes: "u32" },
    },
  },
  /** Reads `bytes` (a multiple of 64) and keeps nothing: what memory gives, the limit in benches. */
  read_memory: { file: "machine/read_memory", operands: { address: "u32", bytes: "u32" } },
  /** Computes without memory, `chunks` times `times` steps of a kind (bench/support/peak_kinds.ts): limits in benches. */
  peak: { file: "machine/peak", operands: { chunks: "u32", kind: "u32", times: "u32" } },
} as const satisfies Record<string, OpcodeRecord>;
