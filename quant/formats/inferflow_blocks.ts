// Inferflow's blocks that differ in numbers only. B32 and B64 are values in a block; A and B are levels
// on the ends of the range and in the middle of cells. Upstream leaves the top code of Q6, Q5 and Q4_B64
// unused. Two blocks are not here because ggml has them bit for bit: Q8_B32T2 is Q8_0, Q5_B32T1 is Q5_1
// (names.ts).

import type { NumberFormat } from "../format.ts";
import { defineInferflowBlock, type InferflowBlock } from "./inferflow_block.ts";

type Split = Pick<InferflowBlock, "blockSize" | "blockBytes" | "codes">;

/** Codes of so many bits in sequence: the fields of the high bits of all, then those of the low ones. */
function split(blockSize: 32 | 64, low: 2 | 4 | 8, high: 0 | 1 | 2 = 0): Split {
  const lowAt = 4 + blockSize * high / 8;
  return {
    blockSize,
    blockBytes: lowAt + blockSize * low / 8,
    codes: [
      { at: lowAt, bits: low, run: 1 },
      ...high === 0 ? [] : [{ at: 4, bits: high, run: 1 } as const],
    ],
  };
}

/** Q8 to Q2 of Inferflow with base and scale, but for Q3H and Q5_B32T1. */
export const inferflowBlocks: readonly NumberFormat[] = [
  { name: "Q8_B32T1", ...split(32, 8), grid: { top: 255 } },
  { name: "Q6_B64T1", ...split(64, 4, 2), grid: { top: 63 }, upstream: { top: 63, steps: 62 } },
  { name: "Q5_B64T1", ...split(64, 4, 1), grid: { top: 31 }, upstream: { top: 31, steps: 30 } },
  { name: "Q4_B32T1A", ...split(32, 4), grid: { top: 15 } },
  { name: "Q4_B32T1B", ...split(32, 4), grid: { top: 15, midpoint: true } },
  { name: "Q4_B64T1", ...split(64, 4), grid: { top: 15 }, upstream: { top: 15, steps: 14 } },
  { name: "Q3_B32T1A", ...split(32, 2, 1), grid: { top: 7 } },
  { name: "Q3_B32T1B", ...split(32, 2, 1), grid: { top: 7, midpoint: true } },
  { name: "Q2_B32T1A", ...split(32, 2), grid: { top: 3 } },
  { name: "Q2_B32T1B", ...split(32, 2), grid: { top: 3, midpoint: true } },
].map(defineInferflowBlock);
