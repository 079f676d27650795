// Both ends of the stack: from token ids to the stream, and from the stream to logits. The table is often
// shared; some families add learnt positions, a norm, or projections to another width.

import type { Value } from "../../graph/graph.ts";
import { factorOf } from "../sizes.ts";
import { sliceTensor } from "../views/slice.ts";
import { inverseRowLengths } from "../views/row_norms.ts";
import { apply, biasOf, type BlockContext, linear, norm, scaled } from "./context.ts";

/** tokens i32[M] → f32[M, hidden]. */
export function embedding(context: BlockContext, table: Value): Value {
  const { builder, spec, params, inputs } = context;
  const { scale, positions, projection, norm: role } = spec.embedding;
  const { hidden } = params;
  let x = apply(builder, "embed", "embedding", [inputs.tokens, table], {
    scale: factorOf(scale, params, "embedding.scale"),
  }); // f32[M, embeddingDim]
  if (projection && params.embeddingDim !== hidden) {
    const sizes = { rows: hidden, columns: params.embeddingDim };
    x = linear(context, x, { role: "embedding_in", name: "embedding.in", ...sizes });
  }
  if (positions) {
    const learnt = apply(
      builder,
      "embed",
      "embedding.positions",
      [inputs.positions, positionTable(context, positions.offset)],
    );
    x = apply(builder, "add", "embedding.sum", [x, learnt]);
  }
  if (role === undefined) return x;
  return norm(context, x, { role, name: "embedding.norm", size: hidden });
}

function positionTable({ builder, tensors, params }: BlockContext, offset: number): Value {
  const { context, hidden } = params;
  const stored = tensors.get("positions", [context + offset, hidden]);
  const table = offset === 0 ? stored : sliceTensor(stored, {
    axis: 0,
    start: offset,
    count: context,
    groups: 1,
    stride: context + offset,
  });
  return builder.weight(table.name, table);
}

/** f32[L, hidden] → logits f32[L, vocabulary], over a matrix of its own or the embedding's. */
export function head(context: BlockContext, hidden: Value, table: Value): Value {
  const { builder, params, tensors, spec } = context;
  const { bias: rule, unitRows, projection, scale } = spec.head ?? {};
  const width = params.embeddingDim;
  const shape = [params.vocabulary, width];
  const narrow = projection && width !== params.hidden
    ? linear(context, hidden, {
      role: "embedding_out",
      name: "embedding.out",
      rows: width,
      columns: params.hidden,
    })
    : hidden;
  // A head of its own, unless the config says that it is the embedding or there is none.
  const stored = tensors.find("head", shape);
  if (!stored && params.tiedHead === false) tensors.get("head", shape);
  const isTied = !stored || params.tiedHead === true;
  const matrix = isTied ? table : builder.weight(stored.name, stored);
  const bias = biasOf(context, { role: "head", rule, shape: [params.vocabulary] });
  const inputs = bias ? [narrow, matrix, bias] : [narrow, matrix];
  let logits = apply(builder, "matmul", "logits", inputs);
  if (unitRows) {
    const lengths = inverseRowLengths(matrix.tensor!);
    const factors = builder.weight(lengths.name, lengths);
    logits = apply(builder, "mul", "logits.unit", [logits, factors]);
  }
  logits = scaled(context, logits, scale, "logits.scaled");
  return params.logitCap === undefined
    ? logits
    : apply(builder, "softcap", "logits.capped", [logits], { cap: params.logitCap });
}
