// The kernels of WebGPU: for each op in order of preference. The first whose `when` holds is taken, by
// run/kernel_choice.ts; an op without a line here runs on another device.

import type { Capabilities } from "../../../gpu/kernel.ts";
import { boundsOf, type Dim, product } from "../../graph/dim/mod.ts";
import type { Node } from "../../graph/graph.ts";
import { gpuKvAppend } from "./lower/append.ts";
import { gpuAttentionKernels } from "./lower/attention.ts";
import { gpuCastKernels } from "./lower/cast.ts";
import { gpuDequantizeKernels, gpuQuantizeLinearKernels } from "./lower/codes.ts";
import { gpuChainKernels } from "./lower/chain.ts";
import { gpuConvKernels, gpuConvTransposeKernels } from "./lower/conv.ts";
import { halvesAttentionKernel } from "./lower/halves_attention.ts";
import { halvesConvKernel } from "./lower/conv_halves.ts";
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

/**
 * What an invocation may walk through on an adapter that computes on the CPU: Mesa's leaves all loops after 65,535 rounds, and
 * says nothing.
 */
const MOST_ROUNDS = 2 ** 15;

/** Kernels that such an adapter does not get where an invocation sums so many elements. */
function withinRounds(
  kernels: readonly GpuKernel[],
  roundsOf: (node: Node) => readonly Dim[],
): GpuKernel[] {
  return kernels.map((kernel) => ({
    ...kernel,
    when: (context) =>
      kernel.when(context) && !(context.capabilities.isSoftware &&
        boundsOf(product(roundsOf(context.node))).max > MOST_ROUNDS),
  }));
}

const windowOf = ({ attributes }: Node) => attributes.kernel as readonly number[];
const filterOf = ({ inputs: [, w] }: Node) => w!.shape.slice(1);
const filterBackOf = ({ inputs: [, w] }: Node) => w!.shape.filter((_, axis) => axis !== 1);
const innerOf = ({ inputs: [a], attributes }: Node) => [
  a!.shape.at(attributes.transpose_a === true ? -2 : -1)!,
];

/** Kernels by op, best first. */
export const GPU_KERNELS: Readonly<Record<string, readonly GpuKernel[]>> = {
  arg_reduce: gpuArgReduceKernels,
  attention: [
    halvesAttentionKernel,
    queryAttentionKernel,
    ...gpuAttentionKernels,
    tensorAttentionKernel,
  ],
  batch_norm: gpuBatchNormKernels,
  binary: gpuBinaryKernels,
  bit_cast: [gpuMoveKernel("gpu_bit_cast")],
  cast: gpuCastKernels,
  concat: [gpuMoveKernel("gpu_concat_move")],
  conv: withinRounds(
    [virtualConvKernel, winogradConvKernel, halvesConvKernel, ...gpuConvKernels],
    filterOf,
  ),
  conv_transpose: withinRounds(gpuConvTransposeKernels, filterBackOf),
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
  matmul_nd: withinRounds(gpuMatmulNdKernels, innerOf),
  max_pool: withinRounds(gpuMaxPoolKernels, windowOf),
  nll_loss: gpuNllLossKernels,
  norm: [...gpuNormKernels, ...gpuRmsNormQ8Kernels],
  one_hot: gpuOneHotKernels,
  pad: [gpuMoveKernel("gpu_pad_move"), gpuPadKernel],
  pool: withinRounds(gpuPoolKernels, windowOf),
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
