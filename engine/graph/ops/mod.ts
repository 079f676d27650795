// The table of ops: one file beside this one and one line here for each.

import { UnsupportedError } from "../../errors.ts";
import type { OpRecord } from "../op.ts";
import { activation } from "./activation.ts";
import { add } from "./add.ts";
import { attention } from "./attention.ts";
import { clampedGlu } from "./clamped_glu.ts";
import { conv } from "./conv.ts";
import { convInteger } from "./conv_integer.ts";
import { convTranspose } from "./conv_transpose.ts";
import { deformConv } from "./deform_conv.ts";
import { embed } from "./embed.ts";
import { expertMatmul } from "./expert_matmul.ts";
import { expertMatmulQ8 } from "./expert_matmul_q8.ts";
import { glu } from "./glu.ts";
import { gluQ8 } from "./glu_q8.ts";
import { joinColumns } from "./join_columns.ts";
import { kvAppend } from "./kv_append.ts";
import { layerNorm } from "./layer_norm.ts";
import { matmul } from "./matmul.ts";
import { matmulQ8 } from "./matmul_q8.ts";
import { maxPool } from "./max_pool.ts";
import { maxUnpool } from "./max_unpool.ts";
import { mul } from "./mul.ts";
import { pool } from "./pool.ts";
import { quantizeQ8 } from "./quantize_q8.ts";
import { reshape } from "./reshape.ts";
import { rmsNorm } from "./rms_norm.ts";
import { rmsNormQ8 } from "./rms_norm_q8.ts";
import { rope } from "./rope.ts";
import { ropeTable } from "./rope_table.ts";
import { route } from "./route.ts";
import { scale } from "./scale.ts";
import { selectRows } from "./select_rows.ts";
import { softcap } from "./softcap.ts";
import { softmax } from "./softmax.ts";
import { spanAttention } from "./span_attention.ts";
import { weightedSum } from "./weighted_sum.ts";

const all: readonly OpRecord[] = [
  activation,
  add,
  attention,
  clampedGlu,
  conv,
  convInteger,
  convTranspose,
  deformConv,
  embed,
  expertMatmul,
  expertMatmulQ8,
  glu,
  gluQ8,
  joinColumns,
  kvAppend,
  layerNorm,
  matmul,
  matmulQ8,
  maxPool,
  maxUnpool,
  mul,
  pool,
  quantizeQ8,
  reshape,
  rmsNorm,
  rmsNormQ8,
  rope,
  ropeTable,
  route,
  scale,
  selectRows,
  softcap,
  softmax,
  spanAttention,
  weightedSum,
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
