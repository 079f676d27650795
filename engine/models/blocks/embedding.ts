// Both ends of the stack: from token ids to the stream, and from the stream to logits. The table is often
// shared; some families add learnt positions, a norm, or projections to another width.

import { FormatError } from "../../errors.ts";
import type { Value } from "../../graph/graph.ts";
import { factorOf } from "../sizes.ts";
import type { ModelSpec } from "../spec.ts";
import { sliceTensor } from "../../formats/tensor_slice.ts";
import { inverseRowLengths } from "../derived_tensors/row_norms.ts";
import { activated } from "./activation.ts";
import { adapted, adaptedEmbedding } from "./adapted.ts";
import { biasOf, type BlockContext, linear, needed, norm, scaled, weight } from "./context.ts";

/** tokens i32[M] → f32[M, hidden]. */
export function embedding(context: BlockContext, table: Value): Value {
  const { builder, spec, params, inputs } = context;
  const { scale, positions, sinusoidal, types, projection, norm: role } = spec.embedding;
  const { hidden } = params;
  const factor = factorOf(scale, { params, place: "embedding.scale" });
  let x = builder.op("embed", [inputs.tokens, table], { scale: factor }, "embedding")[0]!; // f32[M, embeddingDim]
  // A table that encoder and decoder share is not adapted: its users would disagree.
  if (!context.source) {
    const shape = [params.vocabulary, params.embeddingDim];
    x = adaptedEmbedding(context, x, {
      role: "embedding",
      name: "embedding",
      shape,
      scale: factor,
    });
  }
  if (projection && params.embeddingDim !== hidden) {
    const sizes = { rows: hidden, columns: params.embeddingDim };
    x = linear(context, x, { role: "embedding_in", name: "embedding.in", ...sizes });
  }
  if (inputs.pictures) x = withPictures(context, x, inputs.pictures);
  if (positions) {
    const learnt = builder.op(
      "embed",
      [inputs.positions, positionTable(context, positions.offset)],
      {},
      "embedding.positions",
    )[0]!;
    x = builder.op("binary", [x, learnt], { kind: "add" }, "embedding.sum")[0]!;
  }
  if (sinusoidal) {
    let rows = builder.op(
      "select_rows",
      [sinusoidalTable(context, sinusoidal), inputs.positions],
      {},
      "embedding.sinusoidal",
    )[0]!;
    const { padId } = sinusoidal;
    if (padId !== undefined) {
      const isText = new Float32Array(params.vocabulary).fill(1);
      isText[padId] = 0;
      const table = builder.constant("embedding.text", isText, [params.vocabulary, 1]);
      const mask = builder.op("select_rows", [table, inputs.tokens], {}, "embedding.is_text")[0]!;
      rows = builder.op("binary", [rows, mask], { kind: "mul" }, "embedding.sinusoidal.text")[0]!;
    }
    x = builder.op("binary", [x, rows], { kind: "add" }, "embedding.sum")[0]!;
  }
  if (types) {
    const { tokenTypes } = needed(context, ["tokenTypes"]);
    const table = weight(context, { role: "token_types", shape: [tokenTypes, hidden] });
    const learnt = builder.op("embed", [inputs.types, table], {}, "embedding.types")[0]!;
    x = builder.op("binary", [x, learnt], { kind: "add" }, "embedding.typed")[0]!;
  }
  if (role === undefined) return x;
  return norm(context, x, { role, name: "embedding.norm", size: hidden });
}

/** Rows of pictures in place of tokens: f32[M, hidden], f32[P, hidden] → f32[M, hidden]. */
function withPictures(
  { builder }: BlockContext,
  x: Value,
  { rows, choice }: NonNullable<BlockContext["inputs"]["pictures"]>,
): Value {
  const both = builder.op("concat", [x, rows], { axis: 0 }, "embedding.pictures")[0]!;
  return builder.op("select_rows", [both, choice], {}, "embedding.chosen")[0]!;
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

/** Sines, then cosines, of all positions: f32[capacity, hidden]. */
function sinusoidalTable(
  { builder, params: { hidden }, capacity, file }: BlockContext,
  { offset, frequencies }: NonNullable<ModelSpec["embedding"]["sinusoidal"]>,
): Value {
  if (hidden % 2 !== 0 || hidden < 4) {
    throw new FormatError(`is ${hidden}: sines and cosines need an even number of at least 4`, {
      ...{ file, place: "hidden" },
    });
  }
  const half = hidden / 2;
  const steps = frequencies === "plain" ? half : half - 1;
  const table = new Float32Array(capacity * hidden);
  for (let position = 0; position < capacity; position++) {
    for (let i = 0; i < half; i++) {
      const angle = (position + offset) * 10000 ** (-i / steps);
      table[position * hidden + i] = Math.sin(angle);
      table[position * hidden + half + i] = Math.cos(angle);
    }
  }
  return builder.constant("embedding.sinusoidal.table", table, [capacity, hidden]);
}

/** f32[L, hidden] → logits f32[L, vocabulary], over a matrix of its own or the embedding's. */
export function head(
  context: BlockContext,
  { hidden, table }: { readonly hidden: Value; readonly table: Value },
): Value {
  const { builder, params, tensors, spec } = context;
  const { bias: rule, unitRows, projection, scale, transform } = spec.head ?? {};
  const width = params.embeddingDim;
  const shape: [number, number] = [params.vocabulary, width];
  const narrow = projection && width !== params.hidden
    ? linear(context, hidden, {
      role: "embedding_out",
      name: "embedding.out",
      rows: width,
      columns: params.hidden,
    })
    : transform
    ? transformed(context, hidden, transform)
    : hidden;
  // A head of its own, unless the config says that it is the embedding or there is none.
  const stored = tensors.find("head", shape);
  if (!stored && params.tiedHead === false) tensors.get("head", shape);
  const isTied = !stored || params.tiedHead === true;
  const matrix = isTied ? table : builder.weight(stored.name, stored);
  const bias = biasOf(context, { role: "head", rule, shape: [params.vocabulary] });
  const inputs = bias ? [narrow, matrix, bias] : [narrow, matrix];
  let logits = builder.op("matmul", inputs, {}, "logits")[0]!;
  if (!isTied) {
    logits = adapted(context, { x: narrow, y: logits }, { role: "head", name: "logits", shape });
  }
  if (unitRows) {
    const lengths = inverseRowLengths(matrix.tensor!);
    const factors = builder.weight(lengths.name, lengths);
    logits = builder.op("binary", [logits, factors], { kind: "mul" }, "logits.unit")[0]!;
  }
  logits = scaled(context, { x: logits, factor: scale, name: "logits.scaled" });
  return params.logitCap === undefined ? logits : builder.op("unary", [logits], {
    kind: "softcap",
    alpha: params.logitCap,
  }, "logits.capped")[0]!;
}

/** norm(activation(dense x)), as masked language models have it in front of their table. */
function transformed(context: BlockContext, x: Value, { norm: role }: { norm: string }): Value {
  const { hidden } = context.params;
  const name = "head.transform";
  const dense = linear(context, x, {
    ...{ role: "transform", name, rows: hidden, columns: hidden, bias: "required" },
  });
  const active = activated(context, { x: dense, name: `${name}.activation` });
  return norm(context, active, { role, name: `${name}.norm`, size: hidden });
}
