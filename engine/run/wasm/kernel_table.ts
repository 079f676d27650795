// The kernels of WASM: for each op in order of preference. The first whose `when` holds is taken, by
// run/kernel_choice.ts; an op without a line here runs by its reference.

import { attentionKernel } from "./lower/attention.ts";
import { chainKernel } from "./lower/chain.ts";
import { convKernel, depthwiseKernel, fewPlacesKernel } from "./lower/conv.ts";
import { convIntegerKernel } from "./lower/conv_integer.ts";
import { convPatchesKernel, convTransposeKernel } from "./lower/conv_transpose.ts";
import { winogradKernel } from "./lower/conv_winograd.ts";
import { chooseKernel, combineKernels, mapKernel } from "./lower/elementwise.ts";
import {
  gatherElementsKernel,
  oneHotKernel,
  scatterElementsKernel,
  triluKernel,
} from "./lower/index.ts";
import {
  dequantizeKernel,
  dynamicQuantizeKernel,
  matmulIntegerKernel,
  quantizeKernel,
} from "./lower/integer.ts";
import { nllLossKernel } from "./lower/loss.ts";
import { embedKernel, expertMatmulKernels, matmulKernels } from "./lower/matmul.ts";
import { matmulNdKernel } from "./lower/matmul_nd.ts";
import { moveKernel } from "./lower/move.ts";
import { padKernel } from "./lower/pad.ts";
import { batchNormKernel, groupNormKernel } from "./lower/plane_norms.ts";
import { averagePoolKernel, maxPoolKernel } from "./lower/pool.ts";
import { recurrentKernel } from "./lower/recurrent.ts";
import { reduceFloat64Kernel, reduceIntegersKernel, reduceKernel } from "./lower/reduce.ts";
import { resizeKernel } from "./lower/resize.ts";
import { appendRowsKernel, rotaryKernel, scaledAttentionKernel } from "./lower/scaled_attention.ts";
import { argReduceKernel, gatherNdKernel, scatterNdKernel, topKKernel } from "./lower/select.ts";
import { spanAttentionKernel } from "./lower/span_attention.ts";
import {
  accumulateKernel,
  codeKernels,
  combineTypedKernels,
  convertKernel,
  mapTypedKernels,
  numbersKernel,
  rangeKernel,
} from "./lower/typed.ts";
import type { WasmKernel } from "./kernel.ts";
import { gatherKernels } from "./kernels/gather.ts";
import { gluKernels } from "./kernels/glu.ts";
import { kvAppendKernels } from "./kernels/kv_append.ts";
import { quantizeKernels } from "./kernels/quantize.ts";
import { normKernels } from "./kernels/norm.ts";
import { ropeKernels } from "./kernels/rope.ts";
import { ropeTableKernels } from "./kernels/rope_table.ts";
import { routeKernels } from "./kernels/route.ts";
import {
  joinColumnsKernels,
  selectRowsKernels,
  softmaxKernels,
  sparseAddKernels,
  weightedSumKernels,
} from "./kernels/rows.ts";

/** Of which forms of nodes passes are told: those that have a kernel with all instructions. */
export const LEAST_WASM = { simd: "relaxed", threads: 1 } as const;

/** Kernels by op, best first. */
export const WASM_KERNELS: Readonly<Record<string, readonly WasmKernel[]>> = {
  append_rows: [appendRowsKernel],
  arg_reduce: [argReduceKernel],
  attention: [attentionKernel, spanAttentionKernel, scaledAttentionKernel],
  batch_norm: [batchNormKernel],
  binary: [...combineKernels, ...combineTypedKernels],
  bit_cast: [moveKernel("bit_cast_move")],
  cast: [convertKernel, ...codeKernels],
  concat: [moveKernel("concat_move")],
  conv: [depthwiseKernel, fewPlacesKernel, winogradKernel, convKernel],
  conv_integer: [convIntegerKernel],
  conv_transpose: [convPatchesKernel, convTransposeKernel],
  cumulative: [accumulateKernel],
  dequantize_linear: [dequantizeKernel],
  dynamic_quantize: [dynamicQuantizeKernel],
  elementwise: [chainKernel],
  embed: [embedKernel],
  expand: [moveKernel("expand_move")],
  expert_matmul: expertMatmulKernels,
  from_dims: [numbersKernel],
  gather: gatherKernels,
  gather_elements: [gatherElementsKernel],
  gather_nd: [gatherNdKernel],
  glu: gluKernels,
  group_norm: [groupNormKernel],
  join_columns: joinColumnsKernels,
  kv_append: kvAppendKernels,
  matmul: matmulKernels,
  matmul_integer: [matmulIntegerKernel],
  matmul_nd: [matmulNdKernel],
  max_pool: [maxPoolKernel],
  nll_loss: [nllLossKernel],
  norm: normKernels,
  one_hot: [oneHotKernel],
  pad: [moveKernel("pad_move"), padKernel],
  pool: [averagePoolKernel],
  quantize: quantizeKernels,
  quantize_linear: [quantizeKernel],
  range: [rangeKernel],
  recurrent: [recurrentKernel],
  reduce: [reduceKernel, reduceIntegersKernel, reduceFloat64Kernel],
  resize: [resizeKernel],
  rope: [...ropeKernels, rotaryKernel],
  rope_table: ropeTableKernels,
  route: routeKernels,
  scatter_elements: [scatterElementsKernel],
  scatter_nd: [scatterNdKernel],
  select_rows: selectRowsKernels,
  slice: [moveKernel("slice_move")],
  softmax: softmaxKernels,
  sparse_add: sparseAddKernels,
  tile: [moveKernel("tile_move")],
  top_k: [topKKernel],
  transpose: [moveKernel("transpose_move")],
  trilu: [triluKernel],
  unary: [mapKernel, ...mapTypedKernels],
  weighted_sum: weightedSumKernels,
  where: [chooseKernel],
};
