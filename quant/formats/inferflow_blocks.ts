// Inferflow's blocks that differ in numbers only. B32 and B64 are values in a block; A and B are levels
// on the ends of the range and in the middle of cells. Upstream leaves the top code of Q6, Q5 and Q4_B64
// unused. Two blocks are not here because ggml has them bit for bit: Q8_B32T2 is Q8_0, Q5_B32T1 is Q5_1
// (names.ts).

import { splitCodes } from "../code_packings.ts";
import type { NumberFormat } from "../format.ts";
import { defineInferflowBlock } from "./inferflow_block.ts";

/** Q8 to Q2 of Inferflow with base and scale, but for Q3H and Q5_B32T1. */
export const inferflowBlocks: readonly NumberFormat[] = [
  { name: "Q8_B32T1", blockSize: 32, grid: { top: 255 }, packing: splitCodes(32, 8, 0) },
  {
    name: "Q6_B64T1",
    blockSize: 64,
    grid: { top: 63 },
    upstream: { top: 63, steps: 62 },
    packing: splitCodes(64, 4, 2),
  },
  {
    name: "Q5_B64T1",
    blockSize: 64,
    grid: { top: 31 },
    upstream: { top: 31, steps: 30 },
    packing: splitCodes(64, 4, 1),
  },
  { name: "Q4_B32T1A", blockSize: 32, grid: { top: 15 }, packing: splitCodes(32, 4, 0) },
  {
    name: "Q4_B32T1B",
    blockSize: 32,
    grid: { top: 15, midpoint: true },
    packing: splitCodes(32, 4, 0),
  },
  {
    name: "Q4_B64T1",
    blockSize: 64,
    grid: { top: 15 },
    upstream: { top: 15, steps: 14 },
    packing: splitCodes(64, 4, 0),
  },
  { name: "Q3_B32T1A", blockSize: 32, grid: { top: 7 }, packing: splitCodes(32, 2, 1) },
  {
    name: "Q3_B32T1B",
    blockSize: 32,
    grid: { top: 7, midpoint: true },
    packing: splitCodes(32, 2, 1),
  },
  { name: "Q2_B32T1A", blockSize: 32, grid: { top: 3 }, packing: splitCodes(32, 2, 0) },
  {
    name: "Q2_B32T1B",
    blockSize: 32,
    grid: { top: 3, midpoint: true },
    packing: splitCodes(32, 2, 0),
  },
].map(defineInferflowBlock);
