// How the tiles of a weight are shared out. Threads take chunks from a counter, so that a slow core does
// not stall the rest; but weights come out of memory, and a thread that reads on where it stopped gets
// them faster than one that jumps. So each thread first takes one large chunk, and what is left is taken
// in small ones (bench/results/kernels.md).

import type { OperandsOf } from "./opcodes.ts";

/** The part of the weight that is shared out in large chunks. */
const LARGE_PART = 0.75;
/** Most bytes of a small chunk. */
const SMALL_BYTES = 32 * 1024;

/** Operands of kernels that share out tiles: the first `threads` chunks have `large` tiles, the rest `chunk`. */
export type ChunkOperands = Pick<
  OperandsOf<"matmul_q8", number>,
  "large" | "threads" | "chunk"
>;

/** Tiles of a small chunk, two at least, which a GEMV reads in turns (gen/gemv.ts). */
export function smallChunk(tileBytes: number): number {
  return Math.max(2, Math.floor(SMALL_BYTES / Math.max(1, tileBytes)));
}

/** Chunks for a weight of so many tiles, `tileBytes` each. */
export function shareTiles(
  tiles: number,
  { tileBytes, threads }: { readonly tileBytes: number; readonly threads: number },
): ChunkOperands {
  const large = Math.floor(LARGE_PART * tiles / threads);
  const rest = tiles - large * threads;
  const chunk = Math.min(smallChunk(tileBytes), Math.max(1, Math.ceil(rest / threads)));
  return { large, threads, chunk };
}
