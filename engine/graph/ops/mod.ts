// The table of ops: one file beside this one and one line here for each.

import { UnsupportedError } from "../../errors.ts";
import type { OpRecord } from "../op.ts";
import { activation } from "./activation.ts";
import { activationQ8 } from "./activation_q8.ts";
import { add } from "./add.ts";
import { affineGrid } from "./affine_grid.ts";
import { appendRows } from "./append_rows.ts";
import { argReduce } from "./arg_reduce.ts";
import { attention } from "./attention.ts";
import { attentionQ8 } from "./attention_q8.ts";
import { batchNorm } from "./batch_norm.ts";
import { binary } from "./binary.ts";
import { bitCast } from "./bit_cast.ts";
import { cast } from "./cast.ts";
import { clampedGlu } from "./clamped_glu.ts";
import { col2im } from "./col2im.ts";
import { concat } from "./concat.ts";
import { conv } from "./conv.ts";
import { convInteger } from "./conv_integer.ts";
import { convTranspose } from "./conv_transpose.ts";
import { cumulative } from "./cumulative.ts";
import { deformConv } from "./deform_conv.ts";
import { dequantizeLinear } from "./dequantize_linear.ts";
import { det } from "./det.ts";
import { dft } from "./dft.ts";
import { dynamicQuantize } from "./dynamic_quantize.ts";
import { elementwise } from "./elementwise.ts";
import { embed } from "./embed.ts";
import { expand } from "./expand.ts";
import { expertMatmul } from "./expert_matmul.ts";
import { expertMatmulQ8 } from "./expert_matmul_q8.ts";
import { eye } from "./eye.ts";
import { fromDims } from "./from_dims.ts";
import { gather } from "./gather.ts";
import { gatherElements } from "./gather_elements.ts";
import { gatherNd } from "./gather_nd.ts";
import { glu } from "./glu.ts";
import { gluHalves } from "./glu_halves.ts";
import { gluHalvesQ8 } from "./glu_halves_q8.ts";
import { gluQ8 } from "./glu_q8.ts";
import { gridSample } from "./grid_sample.ts";
import { groupNorm } from "./group_norm.ts";
import { joinColumns } from "./join_columns.ts";
import { kvAppend } from "./kv_append.ts";
import { layerNorm } from "./layer_norm.ts";
import { linearAttention } from "./linear_attention.ts";
import { localResponseNorm } from "./local_response_norm.ts";
import { lpNormalize } from "./lp_normalize.ts";
import { matmul } from "./matmul.ts";
import { matmulInt7 } from "./matmul_int7.ts";
import { matmulLf8 } from "./matmul_lf8.ts";
import { matmulInteger } from "./matmul_integer.ts";
import { matmulNd } from "./matmul_nd.ts";
import { matmulAdd } from "./matmul_add.ts";
import { matmulAddQ8 } from "./matmul_add_q8.ts";
import { matmulGluQ8 } from "./matmul_glu_q8.ts";
import { matmulQ8 } from "./matmul_q8.ts";
import { maxPool } from "./max_pool.ts";
import { maxRoiPool } from "./max_roi_pool.ts";
import { maxUnpool } from "./max_unpool.ts";
import { mul } from "./mul.ts";
import { nllLoss } from "./nll_loss.ts";
import { normMatmulGluQ8 } from "./norm_matmul_glu_q8.ts";
import { normMatmulQ8 } from "./norm_matmul_q8.ts";
import { oneHot } from "./one_hot.ts";
import { pad } from "./pad.ts";
import { pool } from "./pool.ts";
import { pow } from "./pow.ts";
import { quantizeLinear } from "./quantize_linear.ts";
import { quantizeLf8 } from "./quantize_lf8.ts";
import { quantizeQ8 } from "./quantize_q8.ts";
import { random } from "./random.ts";
import { range } from "./range.ts";
import { recurrent } from "./recurrent.ts";
import { reduce } from "./reduce.ts";
import { reshape } from "./reshape.ts";
import { resize } from "./resize.ts";
import { reverseSequence } from "./reverse_sequence.ts";
import { rmsNorm } from "./rms_norm.ts";
import { rmsNormQ8 } from "./rms_norm_q8.ts";
import { roiAlign } from "./roi_align.ts";
import { rope } from "./rope.ts";
import { ropeAppend } from "./rope_append.ts";
import { ropeAttention } from "./rope_attention.ts";
import { ropeAttentionQ8 } from "./rope_attention_q8.ts";
import { ropeTable } from "./rope_table.ts";
import { rotary } from "./rotary.ts";
import { route } from "./route.ts";
import { scale } from "./scale.ts";
import { scaledAttention } from "./scaled_attention.ts";
import { scatterElements } from "./scatter_elements.ts";
import { scatterNd } from "./scatter_nd.ts";
import { selectRows } from "./select_rows.ts";
import { slice } from "./slice.ts";
import { softcap } from "./softcap.ts";
import { softmax } from "./softmax.ts";
import { sparseAdd } from "./sparse_add.ts";
import { spanAttention } from "./span_attention.ts";
import { tile } from "./tile.ts";
import { topK } from "./top_k.ts";
import { transpose } from "./transpose.ts";
import { trilu } from "./trilu.ts";
import { unary } from "./unary.ts";
import { unpackBits } from "./unpack_bits.ts";
import { weightedSum } from "./weighted_sum.ts";
import { where } from "./where.ts";

const all: readonly OpRecord[] = [
  activation,
  activationQ8,
  add,
  affineGrid,
  appendRows,
  argReduce,
  attention,
  attentionQ8,
  batchNorm,
  binary,
  bitCast,
  cast,
  clampedGlu,
  col2im,
  concat,
  conv,
  convInteger,
  convTranspose,
  cumulative,
  deformConv,
  dequantizeLinear,
  det,
  dft,
  dynamicQuantize,
  elementwise,
  embed,
  expand,
  expertMatmul,
  expertMatmulQ8,
  eye,
  fromDims,
  gather,
  gatherElements,
  gatherNd,
  glu,
  gluHalves,
  gluHalvesQ8,
  gluQ8,
  gridSample,
  groupNorm,
  joinColumns,
  kvAppend,
  layerNorm,
  linearAttention,
  localResponseNorm,
  lpNormalize,
  matmul,
  matmulInt7,
  matmulLf8,
  matmulInteger,
  matmulNd,
  matmulAdd,
  matmulAddQ8,
  matmulGluQ8,
  matmulQ8,
  normMatmulGluQ8,
  normMatmulQ8,
  maxPool,
  maxRoiPool,
  maxUnpool,
  mul,
  nllLoss,
  oneHot,
  pad,
  pool,
  pow,
  quantizeLinear,
  quantizeLf8,
  quantizeQ8,
  random,
  range,
  recurrent,
  reduce,
  reshape,
  resize,
  reverseSequence,
  rmsNorm,
  rmsNormQ8,
  roiAlign,
  rope,
  ropeAppend,
  ropeAttention,
  ropeAttentionQ8,
  ropeTable,
  rotary,
  route,
  scale,
  scaledAttention,
  scatterElements,
  scatterNd,
  selectRows,
  slice,
  softcap,
  softmax,
  sparseAdd,
  spanAttention,
  tile,
  topK,
  transpose,
  trilu,
  unary,
  unpackBits,
  weightedSum,
  where,
];

/** Every op by name. */
export const ops: ReadonlyMap<string, OpRecord> = new Map(all.map((op) => [op.name, op]));

/**
 * The op of a name.
 *
 * @throws {UnsupportedError} If there is none.
 */
export function getOp(name: string): OpRecord {
  const op = ops.get(name);
  if (op) return op;
  throw new UnsupportedError(`Cannot use op "${name}": this build does not have it`, {
    remedy: `Known ops are ${[...ops.keys()].join(", ")}`,
  });
}
