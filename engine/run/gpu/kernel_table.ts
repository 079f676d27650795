// The kernels of WebGPU: for each op in order of preference. The first whose `when` holds is taken, by
// run/kernel_choice.ts; an op without a line here runs on another device.

import type { Capabilities } from "../../../gpu/kernel.ts";
import { gpuKvAppend } from "./lower/append.ts";
import { gpuAttentionKernels } from "./lower/attention.ts";
import { gpuCastKernels } from "./lower/cast.ts";
import { gpuDequantizeKernels, gpuQuantizeLinearKernels } from "./lower/codes.ts";
import { gpuChainKernels } from "./lower/chain.ts";
import { gpuConvKernels, gpuConvTransposeKernels } from "./lower/conv.ts";
import { winogradConvKernel } from "./lower/conv_winograd.ts";
import { virtualConvKernel } from "./lower/conv_virtual.ts";
import { gpuGroupNormKernels } from "./lower/group_norm.ts";
import { gpuBinaryKernels, gpuGluKernels, gpuUnaryKernels } from "./lower/elementwise.ts";
import {
  gpuArgReduceKernels,
  gpuGatherElementsKernels,
  gpuOneHotKernels,
  gpuTriluKernels,
} from "./lower/index.ts";
import { gpuNllLossKernels } from "./lower/loss.ts";
import { gpuExpertMatmulKernels, gpuMatmulKernels } from "./lower/matmul.ts";
import { gpuFusedMatmulKernels } from "./lower/matmul_fused.ts";
import { gpuGatedMatmulKernels } from "./lower/matmul_gated.ts";
import { gpuRouteKernels } from "./lower/route.ts";
import {
  gpuGatherKernels,
  gpuMatmulNdKernels,
  gpuMaxPoolKernels,
  gpuPoolKernels,
  gpuReduceKernels,
} from "./lower/network.ts";
import { gpuGluQ8Kernels, gpuQuantizeKernels, gpuRmsNormQ8Kernels } from "./lower/quantize.ts";
import { queryAttentionKernel } from "./lower/query_attention.ts";
import { gpuResizeKernels } from "./lower/resize.ts";
import {
  gpuEmbedKernels,
  gpuJoinColumnsKernels,
  gpuNormKernels,
  gpuRopeKernels,
  gpuRopeTableKernels,
  gpuSelectRowsKernels,
  gpuSoftmaxKernels,
  gpuWeightedSumKernels,
} from "./lower/rows.ts";
import {
  gpuCumulativeKernels,
  gpuGatherNdKernels,
  gpuPadKernel,
  gpuRotaryKernel,
  gpuTopKKernels,
} from "./lower/select.ts";
import { gpuSparseAddKernels } from "./lower/sparse.ts";
import { gpuBatchNormKernels, gpuMoveKernel, gpuWhereKernels } from "./lower/strided.ts";
import { tensorAttentionKernel } from "./lower/tensor_attention.ts";
import type { GpuKernel } from "./kernel.ts";

/** What every adapter can do: a kernel that asks for more has one beside it that does not. */
export const LEAST_GPU: { readonly capabilities: Capabilities } = {
  capabilities: {
    ...{ f16: false, subgroupSize: 0, subgroupsNeedEnable: false, packedDot: false },
    ...{
      subgroupMatrix: false,
      compilesInTurn: false,
      timestamp: false,
      isSoftware: false,
      adapter: "",
    },
    ...{ maxBindingBytes: 2 ** 27, maxBufferBytes: 2 ** 28, maxStorageBindings: 8 },
    ...{ maxWorkgroupBytes: 2 ** 14, maxWorkgroupSize: 256 },
    ...{ maxTexture2d: 8192, maxTexture3d: 2048, maxTextureLayers: 256 },
  },
};

/** Kernels by op, best first. */
export const GPU_KERNELS: Readonly<Record<string, readonly GpuKernel[]>> = {
  arg_reduce: gpuArgReduceKernels,
  attention: [queryAttentionKernel, ...gpuAttentionKernels, tensorAttentionKernel],
  batch_norm: gpuBatchNormKernels,
  binary: gpuBinaryKernels,
  bit_cast: [gpuMoveKernel("gpu_bit_cast")],
  cast: gpuCastKernels,
  concat: [gpuMoveKernel("gpu_concat_move")],
  conv: [virtualConvKernel, winogradConvKernel, ...gpuConvKernels],
  conv_transpose: gpuConvTransposeKernels,
  cumulative: gpuCumulativeKernels,
  dequantize_linear: gpuDequantizeKernels,
  elementwise: gpuChainKernels,
  embed: gpuEmbedKernels,
  expand: [gpuMoveKernel("gpu_expand_move")],
  expert_matmul: gpuExpertMatmulKernels,
  gather: gpuGatherKernels,
  gather_nd: gpuGatherNdKernels,
  gather_elements: gpuGatherElementsKernels,
  glu: [...gpuGluKernels, ...gpuGluQ8Kernels],
  group_norm: gpuGroupNormKernels,
  join_columns: gpuJoinColumnsKernels,
  kv_append: [gpuKvAppend],
  matmul: [...gpuMatmulKernels, ...gpuFusedMatmulKernels, ...gpuGatedMatmulKernels],
  matmul_nd: gpuMatmulNdKernels,
  max_pool: gpuMaxPoolKernels,
  nll_loss: gpuNllLossKernels,
  norm: [...gpuNormKernels, ...gpuRmsNormQ8Kernels],
  one_hot: gpuOneHotKernels,
  pad: [gpuMoveKernel("gpu_pad_move"), gpuPadKernel],
  pool: gpuPoolKernels,
  quantize: gpuQuantizeKernels,
  quantize_linear: gpuQuantizeLinearKernels,
  reduce: gpuReduceKernels,
  resize: gpuResizeKernels,
  rope: [...gpuRopeKernels, gpuRotaryKernel],
  rope_table: gpuRopeTableKernels,
  route: gpuRouteKernels,
  select_rows: gpuSelectRowsKernels,
  slice: [gpuMoveKernel("gpu_slice_move")],
  softmax: gpuSoftmaxKernels,
  sparse_add: gpuSparseAddKernels,
  tile: [gpuMoveKernel("gpu_tile_move")],
  top_k: gpuTopKKernels,
  transpose: [gpuMoveKernel("gpu_transpose_move")],
  trilu: gpuTriluKernels,
  unary: gpuUnaryKernels,
  weighted_sum: gpuWeightedSumKernels,
  where: gpuWhereKernels,
};
