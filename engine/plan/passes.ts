// The passes between a graph as written and a plan, in order. To add a fusion: one file in passes/ and
// one row here.

import type { Graph } from "../graph/graph.ts";
import { commonSubexpressions } from "./passes/common_subexpressions.ts";
import { deadCode } from "./passes/dead_code.ts";
import { fuseAttentionInput } from "./passes/fuse_attention_input.ts";
import { fuseFunction } from "./passes/fuse_function.ts";
import { fuseGated } from "./passes/fuse_gated.ts";
import { fuseNorm } from "./passes/fuse_norm.ts";
import { fuseNormBehind } from "./passes/fuse_norm_behind.ts";
import { fuseQuantized } from "./passes/fuse_quantized.ts";
import { fuseResidual } from "./passes/fuse_residual.ts";
import { joinAttentionProducts } from "./passes/join_attention_products.ts";
import { type Pass, type PassRun, runPasses } from "./passes/pass.ts";
import { pickRowsEarly } from "./passes/pick_rows_early.ts";
import { quantizeActivations } from "./passes/quantize_activations.ts";
import { strictProducts } from "./passes/strict_products.ts";

/** All passes, in the order in which they run. */
export const passes: readonly Pass[] = [
  deadCode,
  pickRowsEarly,
  quantizeActivations,
  strictProducts,
  commonSubexpressions,
  fuseQuantized,
  deadCode,
  fuseGated,
  fuseAttentionInput,
  joinAttentionProducts,
  fuseFunction,
  fuseResidual,
  deadCode,
  fuseNorm,
  deadCode,
  fuseNormBehind,
  deadCode,
];

/** Runs all passes. */
export function optimize(graph: Graph, run: Omit<PassRun, "passes">): Graph {
  return runPasses(graph, { ...run, passes });
}
