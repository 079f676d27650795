// Builds the graph of an encoder: every token sees its whole sequence, nothing outlives a step. A step is a
// table of M rows; rows of one sequence lie side by side, and many sequences make one step. Inputs: tokens,
// positions, starts, ends i32[M] (a row sees rows [start, end); row_ends in place of ends where it sees none behind
// itself), types i32[M] where the model has token types, logit_rows i32[L] where it has a head or a pool.
//
// Outputs: hidden f32[M, hidden], and f32[L, …] of the rows asked for: `logits` over the vocabulary (masked
// language models), `scores` over labels (classification and reranking), `vectors` (encoder_outputs.ts).

import { FormatError } from "../errors.ts";
import { createGraphBuilder, type GraphBuilder } from "../graph/builder.ts";
import { type Dim, symbol } from "../graph/dim/mod.ts";
import type { Value } from "../graph/graph.ts";
import { getOp } from "../ops/mod.ts";
import { adapterInput } from "../run/executable.ts";
import { type BlockContext, linear, needed, weight } from "./blocks/context.ts";
import { embedding, head } from "./blocks/embedding.ts";
import {
  type BuildOptions,
  type BuiltModel,
  type ModelParts,
  ropeTables,
  unusedWarning,
} from "./build.ts";
import { readConstant } from "./constants.ts";
import { asksForAll, encoderOutputs } from "./encoder_outputs.ts";
import { relativeBiasTable } from "./relative_bias.ts";

/**
 * Builds the graph of an encoder.
 *
 * @throws As `buildModel`.
 */
export async function buildEncoder(parts: ModelParts, options: BuildOptions): Promise<BuiltModel> {
  const { resolved: { spec }, params, tensors, file } = parts;
  const builder = createGraphBuilder(file.name, getOp);
  const M = symbol("M", { min: 1 });
  const L = symbol("L", { min: 0 });
  const context = await encoderContext(parts, { builder, options, rows: M, prefix: "" });
  const table = weight(context, {
    role: "embedding",
    shape: [params.vocabulary, params.embeddingDim],
  });
  const x = embedding(context, table);
  const hidden = await encoderOutputs(context, x, { ...options.outputs, wholes: L });
  const isClassifier = spec.classifier === true && tensors.has("classifier");
  const isMasked = spec.head !== undefined && tensors.has("transform");
  if (isClassifier || isMasked) {
    const logitRows = builder.input("logit_rows", [L], "i32");
    const rows = builder.op("select_rows", [hidden, logitRows], {}, "logit_rows")[0]!; // f32[L, hidden]
    const judge = { ...context, inputs: { ...context.inputs, logitRows } };
    if (isClassifier) builder.output("scores", classifier(judge, rows));
    else builder.output("logits", head(judge, { hidden: rows, table }));
  }
  const isWhole = asksForAll(options.outputs);
  return { graph: builder.build(), params, warnings: isWhole ? unusedWarning(tensors) : [] };
}

/** What the context of an encoder is made for. */
export interface EncoderContextOptions {
  readonly builder: GraphBuilder;
  readonly options: BuildOptions;
  /** Symbol of its rows. */
  readonly rows: Dim;
  /** In front of its inputs' names. */
  readonly prefix: string;
  /** Inputs with the scales of adapters; default: made here. */
  readonly scales?: (adapter: number) => Value;
}

/** Makes the input with an adapter's scales of rows when it is first asked for. */
export function scaleInputs(
  builder: GraphBuilder,
  { rows, prefix }: { readonly rows: Dim; readonly prefix: string },
): (adapter: number) => Value {
  const made: Value[] = [];
  return (adapter) =>
    made[adapter] ??= builder.input(adapterInput(adapter, prefix), [rows, 1], "f32");
}

/** Inputs and surroundings of an encoder's layers. */
export async function encoderContext(
  parts: ModelParts,
  { builder, options, rows, prefix, scales = scaleInputs(builder, { rows, prefix }) }:
    EncoderContextOptions,
): Promise<BlockContext> {
  const { resolved: { spec }, file, params, tensors } = parts;
  const input = (name: string) => builder.input(prefix + name, [rows], "i32");
  const positions = input("positions");
  return {
    builder,
    spec,
    params,
    tensors,
    inputs: {
      // Sound has features in their place; blocks ask only how many rows there are.
      tokens: spec.encoder?.sound ? positions : input("tokens"),
      positions,
      slots: undefined,
      logitRows: positions,
      ...spec.embedding.types && { types: input("types") },
    },
    spans: {
      starts: input("starts"),
      ends: input(spec.attention.causal ? "row_ends" : "ends"),
      isCached: false,
      bias: await relativeBias(parts, { builder, isBidirectional: true }),
    },
    capacity: options.capacity,
    cacheType: options.cacheType,
    file: file.name,
    adapters: parts.adapters?.over(tensors, scales),
    ropeTable: await ropeTables(parts, { builder, positions }),
    observe: () => {},
  };
}

/** Summands by distance of a stack, f32[H, 2R+1], where the model has them. */
export async function relativeBias(
  { resolved: { spec }, tensors, params, file }: ModelParts,
  { builder, isBidirectional }: {
    readonly builder: GraphBuilder;
    readonly isBidirectional: boolean;
  },
): Promise<Value | undefined> {
  if (!spec.attention.relativeBias) return undefined;
  const { heads } = params;
  const { relativeBuckets: buckets, relativeDistance: farthest } = needed(
    { params, file: file.name },
    ["relativeBuckets", "relativeDistance"],
  );
  // Half of the classes are for single distances, the rest for up to `farthest`.
  if (buckets < 4 || farthest <= buckets / 2) {
    throw new FormatError(
      `is ${farthest}: ${buckets} classes of distances, 4 at least, need one above ${buckets / 2}`,
      { file: file.name, place: "relativeDistance" },
    );
  }
  const values = await readConstant(tensors.get("relative_bias", [buckets, heads]));
  const table = relativeBiasTable({ values, buckets, heads, farthest, isBidirectional });
  const name = isBidirectional ? "encoder.relative_bias" : "relative_bias";
  return builder.constant(name, table, [heads, 2 * farthest + 1]);
}

/** out(tanh(dense x)): f32[L, hidden] → f32[L, labels]. */
function classifier(context: BlockContext, x: Value): Value {
  const { builder, tensors, params: { hidden } } = context;
  const sizes = { columns: hidden, bias: "required" } as const;
  const dense = linear(context, x, { role: "pooler", name: "pooler", rows: hidden, ...sizes });
  const active = builder.op("unary", [dense], { kind: "tanh" }, "pooler.tanh")[0]!;
  const labels = tensors.rows("classifier")!;
  return linear(context, active, { role: "classifier", name: "scores", rows: labels, ...sizes });
}
