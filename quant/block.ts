// What a block of a number format is, as data: where its codes lie, what they stand for, and where its scales are. The
// decoder, the order in which encoders write codes, the packing for WebGPU (gpu/layouts/) and for WASM
// (wasm/format_layouts.ts) and the scales that tests draw all follow from it, so that a format is described once.

import type { CodeField, Codes } from "./fields.ts";
import type { GridName } from "./iq_grids.ts";
import type { ScaleKind, ScaleSource } from "./scale_kinds.ts";

/** A block of codes, one a column. */
export interface CodeBlock {
  readonly codes: Codes;
  /** Whether codes of 8 bits have a sign. */
  readonly signed?: boolean | undefined;
  /** What codes stand for, if not for themselves. */
  readonly levels?: Int8Array | undefined;
  /** What is subtracted from a code. */
  readonly offset?: number | undefined;
  readonly scales: ScaleSource;
}

/** Bits of a block, counted from its first byte on, lowest first: entry `i` of group `g` of 32 columns. */
export interface BitField {
  /** Of entry 0 of group 0. */
  readonly at: number;
  /** Bits of an entry, at most 16. */
  readonly bits: number;
  /** From entry to entry of a group. */
  readonly step: number;
  /** From group to group. */
  readonly group: number;
  /** From the first of two groups to that of the next two, if it is not twice the above. */
  readonly pair?: number;
}

/** A block of 256 columns whose codes are points. */
export interface PointBlock {
  readonly grid: GridName;
  /** Numbers of points, the field of the lowest bits first. */
  readonly index: readonly BitField[];
  /** Signs of eight columns an entry; where seven bits are stored, the number of minus signs is even. */
  readonly signs?: BitField;
  /** A bit a point: its coordinates are moved down by an eighth, not up. */
  readonly shifts?: BitField;
  /** float16. */
  readonly d: readonly BitField[];
  /** The numbers n: one for 32 columns, or one for each 16. */
  readonly scales: BitField & { readonly kind: Extract<ScaleKind, "n8" | "n16"> };
  readonly factor: number;
}

/** What is known of a block of a format that kernels read by its codes. */
export type BlockLayout = CodeBlock | PointBlock;

/** Whether a block's codes are fields. */
export function hasFields<B extends Pick<CodeBlock, "codes">>(
  block: B,
): block is B & { readonly codes: readonly CodeField[] } {
  return Array.isArray(block.codes);
}
