// One vector of a whole sequence or picture: a row of it, with the mean of its patches behind it, or what a learnt query
// sees in them. Shapes: M rows of the step, of which L begin (or end) what is wanted whole.

import { formatDim } from "../../graph/dim/mod.ts";
import type { Value } from "../../graph/graph.ts";
import { attentionList } from "../../ops/attention_inputs.ts";
import { readConstant } from "../constants.ts";
import { activated } from "./activation.ts";
import { type BlockContext, linear, norm } from "./context.ts";

/** Which rows are wanted, i32[L] each. */
export interface PoolInputs {
  /** The row that stands for the whole. */
  readonly rows: Value;
  /** Its patches: rows [starts, ends). Of pools that look at those alone. */
  starts(): Value;
  ends(): Value;
}

/** f32[M, hidden] → f32[L, width]; the width is hidden, or twice that with the mean. */
export async function pool(
  context: BlockContext,
  { x, inputs }: { readonly x: Value; readonly inputs: PoolInputs },
): Promise<Value> {
  const { builder, spec, params: { hidden } } = context;
  const kind = spec.pool!.rows;
  if (kind === "attention") return await attentionPool(context, x, inputs);
  const row = builder.op("select_rows", [x, inputs.rows], {}, "pool.rows")[0]!;
  const chosen = kind === "first_and_mean"
    ? builder.op("concat", [row, meanOf(context, { x, row }, inputs)], { axis: 1 }, "pool.joined")
    : [row];
  if (spec.outputNorm !== "pooled") return chosen[0]!;
  return norm(context, chosen[0]!, { role: "output_norm", name: "output_norm", size: hidden });
}

/** Mean of the patches f32[L, hidden]: attention whose scores are all the same. */
function meanOf(
  context: BlockContext,
  { x, row }: { readonly x: Value; readonly row: Value },
  inputs: PoolInputs,
): Value {
  const [query, rows] = [row, x].map((value) => heads(context, value, `${value.name}.heads`));
  return attend(context, { query: query!, keys: rows!, values: rows!, scale: 0 }, inputs);
}

/** The learnt query over all patches, and a feed-forward block behind it: f32[M, hidden] → f32[L, hidden]. */
async function attentionPool(
  context: BlockContext,
  x: Value,
  inputs: PoolInputs,
): Promise<Value> {
  const { builder, tensors, params: { hidden, headDim, feedForward: inner } } = context;
  const square = { rows: hidden, columns: hidden, bias: "required" } as const;
  const project = (value: Value, part: string) =>
    linear(context, value, { role: `pool_${part}`, name: `pool.${part}`, ...square });
  const stored = await readConstant(tensors.get("pool_probe", [1, 1, hidden]));
  const probe = builder.constant("pool.probe", stored, [1, hidden]);
  const shape = [inputs.rows.shape[0]!, hidden];
  const queries = builder.op("expand", [probe], { shape }, "pool.probes")[0]!;
  const seen = attend(context, {
    query: heads(context, project(queries, "query"), "pool.query.heads"),
    keys: heads(context, project(x, "key"), "pool.key.heads"),
    values: heads(context, project(x, "value"), "pool.value.heads"),
    scale: headDim ** -0.5,
  }, inputs);
  const sum = project(seen, "output");
  const normed = norm(context, sum, { role: "pool_norm", name: "pool.norm", size: hidden });
  const wide = linear(context, normed, {
    ...{ role: "pool_up", name: "pool.up", rows: inner, columns: hidden, bias: "required" },
  });
  const active = activated(context, { x: wide, name: "pool.activation" });
  const narrow = linear(context, active, {
    ...{ role: "pool_down", name: "pool.down", rows: hidden, columns: inner, bias: "required" },
  });
  return builder.op("binary", [sum, narrow], { kind: "add" }, "pool.residual")[0]!;
}

function heads({ builder, params }: BlockContext, x: Value, name: string): Value {
  const width = x.shape[1] as number, dim = params.headDim;
  const shape = [formatDim(x.shape[0]!), `${width / dim}`, `${dim}`];
  return builder.op("reshape", [x], { shape }, name)[0]!;
}

/** f32[L, H, D] over rows f32[M, H, D] → f32[L, H · D]. */
function attend(
  { builder }: BlockContext,
  { query: q, keys: k, values: v, scale }: {
    readonly query: Value;
    readonly keys: Value;
    readonly values: Value;
    readonly scale: number;
  },
  { starts, ends }: PoolInputs,
): Value {
  const seen = attentionList({ q, k, v, starts: starts(), ends: ends() });
  return builder.op("attention", seen, { scale }, "pool.attention")[0]!;
}
