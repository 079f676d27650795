// The record that every number format fills in. A format is one file in this folder plus one line in
// quant/mod.ts; files, matmuls, KV cache and tools learn of it through the table only.
// The scalar decode and encode here are the definition; WASM and WGSL kernels are judged by them.

import type { BlockLayout } from "./block.ts";

/** What an encoder may be told beside the values; formats that have no use for a part leave it. */
export interface EncodeOptions {
  /**
   * Inferflow's blocks and LF8: the levels of the paper, or those of the program behind it, whose bytes
   * are then met (Q6, Q5, Q4_B64: the top code stays unused; LF8: 127 steps). Default `paper`.
   */
  readonly levels?: "paper" | "upstream";
  /** Formats with `scope` "tensor": smallest and greatest value of the tensor; default: of `values`. */
  readonly range?: readonly [min: number, max: number];
  /**
   * How much each column counts, mean squares of its input say: one value a column, positive or zero. Values
   * are then whole rows of as many columns.
   */
  readonly importance?: Float32Array;
}

/** The codes of a block, apart from the scales that they count in. */
export interface CodeGrid {
  /** Codes are 0 … codes - 1, in the order of the levels that they stand for. */
  readonly codes: number;
  /** Where the levels are, up to scale and offset, if they are not evenly spaced; ascending. */
  readonly places?: ArrayLike<number>;
  /** Writes the codes of the block at `at`, whose scales stand there already and stay. */
  write(codes: Uint8Array, out: Uint8Array, at: number): void;
}

/** What encoding does to numbers; tests hold encoders to it. */
export interface EncodingBounds {
  /**
   * Largest error as a fraction of the block's largest magnitude: half a step (a whole one where the other extreme is
   * clipped) and what the scale loses. Encoders that minimise the error of a block, not of a value, have looser ones.
   * Absent where no scale follows the values; every other encoder states it.
   */
  readonly error?: number;
  /** Greatest magnitude that can be stored. */
  readonly largest?: number;
  /** Relative error of a block of one value; default 5e-4, that of a 16-bit float, twice, for a scale and a code. */
  readonly relative?: number;
  /** Least step of what is stored, which comes on top. */
  readonly step?: number;
  /**
   * By which part of the greatest magnitude numbers may move that were decoded and are encoded again: levels do not
   * reach both ends of a block.
   */
  readonly shrink?: number;
  /** The encoder searches, and finds a better scale for numbers that lie on a grid already; then they stay. */
  readonly settles?: true;
}

/** One number format: how a run of values is stored in bytes. */
export interface NumberFormat {
  /** Name as GGUF writes it, e.g. `Q4_1`, `F16`. */
  readonly name: string;
  /** ggml type id, when ggml has the format. */
  readonly ggmlType?: number;
  /** Values in one block. */
  readonly blockSize: number;
  /** Bytes of one block. */
  readonly blockBytes: number;
  /** The name without the columns, of a format whose block is a row. */
  readonly rowFamily?: string;
  /** `tensor`: the encoder needs the range of the whole tensor, not only of the values it gets. */
  readonly scope?: "tensor";
  /**
   * Decodes whole blocks to float32.
   *
   * @param bytes Source blocks, `blocks * blockBytes` long.
   * @param out Receives `blocks * blockSize` values.
   */
  decode(bytes: Uint8Array, out: Float32Array): void;
  /**
   * Encodes whole blocks from float32; absent when there is no public rule.
   *
   * @param values Source, a multiple of `blockSize` long.
   * @param out Receives the blocks.
   */
  encode?(values: Float32Array, out: Uint8Array, options?: EncodeOptions): void;
  /** Whether `encode` chooses scales by {@linkcode EncodeOptions.importance}; others leave it. */
  readonly usesImportance?: true;
  /** What of a block kernels have to know; absent for floats and for what they do not read by its codes. */
  readonly block?: BlockLayout;
  readonly bounds?: EncodingBounds;
  /** What it is for if not for weights of files: plain numbers, or scratch memory of products. */
  readonly use?: "numbers" | "scratch";
  /** Left out by benches unless it is named: it differs from its like in a constant. */
  readonly variant?: true;
  /**
   * What rounding.ts needs to choose codes one by one; absent where a code is no step of its block's
   * scale.
   */
  readonly grid?: CodeGrid;
}

/**
 * Bytes that `count` values take in a format.
 *
 * @throws {RangeError} If `count` is not a multiple of the block size.
 */
export function formatBytes(format: NumberFormat, count: number): number {
  if (count % format.blockSize !== 0) {
    throw new RangeError(
      `Cannot store ${count} values as ${format.name}: not a multiple of ${format.blockSize}`,
    );
  }
  return (count / format.blockSize) * format.blockBytes;
}
