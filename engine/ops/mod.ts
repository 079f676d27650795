// The table of ops: one file beside this one and one line here for each.

import { UnsupportedError } from "../errors.ts";
import type { Node } from "../graph/graph.ts";
import type { OpRecord } from "./op.ts";
import { affineGrid } from "./records/affine_grid.ts";
import { appendRows } from "./records/append_rows.ts";
import { argReduce } from "./records/arg_reduce.ts";
import { attention } from "./records/attention.ts";
import { batchNorm } from "./records/batch_norm.ts";
import { binary } from "./records/binary.ts";
import { bitCast } from "./records/bit_cast.ts";
import { cast } from "./records/cast.ts";
import { col2im } from "./records/col2im.ts";
import { concat } from "./records/concat.ts";
import { conv } from "./records/conv.ts";
import { convInteger } from "./records/conv_integer.ts";
import { convTranspose } from "./records/conv_transpose.ts";
import { cumulative } from "./records/cumulative.ts";
import { deformConv } from "./records/deform_conv.ts";
import { dequantizeLinear } from "./records/dequantize_linear.ts";
import { det } from "./records/det.ts";
import { dft } from "./records/dft.ts";
import { dynamicQuantize } from "./records/dynamic_quantize.ts";
import { elementwise } from "./records/elementwise.ts";
import { embed } from "./records/embed.ts";
import { expand } from "./records/expand.ts";
import { expertMatmul } from "./records/expert_matmul.ts";
import { eye } from "./records/eye.ts";
import { fromDims } from "./records/from_dims.ts";
import { gather } from "./records/gather.ts";
import { gatherElements } from "./records/gather_elements.ts";
import { gatherNd } from "./records/gather_nd.ts";
import { glu } from "./records/glu.ts";
import { gridSample } from "./records/grid_sample.ts";
import { groupNorm } from "./records/group_norm.ts";
import { joinColumns } from "./records/join_columns.ts";
import { kvAppend } from "./records/kv_append.ts";
import { linearAttention } from "./records/linear_attention.ts";
import { localResponseNorm } from "./records/local_response_norm.ts";
import { lpNormalize } from "./records/lp_normalize.ts";
import { matmul } from "./records/matmul.ts";
import { matmulInteger } from "./records/matmul_integer.ts";
import { matmulNd } from "./records/matmul_nd.ts";
import { maxPool } from "./records/max_pool.ts";
import { maxRoiPool } from "./records/max_roi_pool.ts";
import { maxUnpool } from "./records/max_unpool.ts";
import { nllLoss } from "./records/nll_loss.ts";
import { norm } from "./records/norm.ts";
import { oneHot } from "./records/one_hot.ts";
import { pad } from "./records/pad.ts";
import { pool } from "./records/pool.ts";
import { quantize } from "./records/quantize.ts";
import { quantizeLinear } from "./records/quantize_linear.ts";
import { random } from "./records/random.ts";
import { range } from "./records/range.ts";
import { recurrent } from "./records/recurrent.ts";
import { reduce } from "./records/reduce.ts";
import { reshape } from "./records/reshape.ts";
import { resize } from "./records/resize.ts";
import { reverseSequence } from "./records/reverse_sequence.ts";
import { roiAlign } from "./records/roi_align.ts";
import { rope } from "./records/rope.ts";
import { ropeTable } from "./records/rope_table.ts";
import { route } from "./records/route.ts";
import { scatterElements } from "./records/scatter_elements.ts";
import { scatterNd } from "./records/scatter_nd.ts";
import { selectRows } from "./records/select_rows.ts";
import { slice } from "./records/slice.ts";
import { softmax } from "./records/softmax.ts";
import { sparseAdd } from "./records/sparse_add.ts";
import { tile } from "./records/tile.ts";
import { topK } from "./records/top_k.ts";
import { transpose } from "./records/transpose.ts";
import { trilu } from "./records/trilu.ts";
import { unary } from "./records/unary.ts";
import { unpackBits } from "./records/unpack_bits.ts";
import { weightedSum } from "./records/weighted_sum.ts";
import { where } from "./records/where.ts";

const all: readonly OpRecord[] = [
  affineGrid,
  appendRows,
  argReduce,
  attention,
  batchNorm,
  binary,
  bitCast,
  cast,
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
  eye,
  fromDims,
  gather,
  gatherElements,
  gatherNd,
  glu,
  gridSample,
  groupNorm,
  joinColumns,
  kvAppend,
  linearAttention,
  localResponseNorm,
  lpNormalize,
  matmul,
  matmulInteger,
  matmulNd,
  maxPool,
  maxRoiPool,
  maxUnpool,
  nllLoss,
  norm,
  oneHot,
  pad,
  pool,
  quantize,
  quantizeLinear,
  random,
  range,
  recurrent,
  reduce,
  reshape,
  resize,
  reverseSequence,
  roiAlign,
  rope,
  ropeTable,
  route,
  scatterElements,
  scatterNd,
  selectRows,
  slice,
  softmax,
  sparseAdd,
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

/** Whether a node changes a state, so that it happens as often as it is written. */
export function changesState({ op, attributes }: Pick<Node, "op" | "attributes">): boolean {
  const { view, inPlace } = getOp(op);
  return !view && Object.keys(inPlace?.(attributes) ?? {}).length > 0;
}
