// Builds the graph of a language model from a spec and a model file (spec IF-3): embedding, layers of
// residual branches, final norm, head. All numbers that depend on the file come from hparams.ts, all
// weights stay in the file until a backend asks for them.
//
// A step is a table of M rows, each with a token, a position and the slot of its session; L of the rows
// want logits. Inputs: tokens, positions, slots i32[M], logit_rows i32[L]. Outputs: logits f32[L, vocab] and,
// where asked for, hidden f32[L, hidden]: the state after the final norm.

import { createGraphBuilder, type GraphBuilder } from "../graph/builder.ts";
import { symbol } from "../graph/dim.ts";
import type { Graph, Value } from "../graph/graph.ts";
import type { WeightFile } from "../formats/source.ts";
import { attention } from "./blocks/attention.ts";
import { apply, type BlockContext, norm, type StepInputs, weight } from "./blocks/context.ts";
import { feedForward } from "./blocks/feed_forward.ts";
import { readConstant } from "./constants.ts";
import { type Hyperparameters, readHyperparameters } from "./hparams.ts";
import { layerKinds } from "./layer_kinds.ts";
import { ropeFrequencies } from "./rope.ts";
import type { ResolvedSpec } from "./spec.ts";
import { createTensorLookup, type TensorLookup } from "./tensors.ts";

/** What a graph is built for. */
export interface BuildOptions {
  /** Positions that each session's cache holds. */
  readonly capacity: number;
  /** Storage of keys and values. */
  readonly cacheType: "f16" | "f32";
  /** Whether `hidden` is an output too. */
  readonly embeddings: boolean;
}

/** A graph and what was learnt on the way. */
export interface BuiltModel {
  readonly graph: Graph;
  readonly params: Hyperparameters;
  /** One sentence each. */
  readonly warnings: readonly string[];
}

/** A spec made ready for one file: hyperparameters and tensors. */
export interface ModelParts {
  readonly resolved: ResolvedSpec;
  readonly file: WeightFile;
  readonly params: Hyperparameters;
  readonly tensors: TensorLookup;
}

/**
 * Reads and checks what a file says about its model; no tensor is read.
 *
 * @param architecture The file's own name of its architecture, for keys that begin with it.
 * @throws {FormatError} If a hyperparameter is missing or impossible.
 */
export function readModelParts(
  resolved: ResolvedSpec,
  file: WeightFile,
  architecture: string,
): ModelParts {
  const tensors = createTensorLookup(file, resolved.names);
  const vocabulary = tensors.rows("embedding");
  const params = readHyperparameters(resolved, file, { architecture, vocabulary });
  return { resolved, file, params, tensors };
}

/**
 * Builds the graph of a model.
 *
 * @throws {FormatError} If a tensor is missing or has another shape than the hyperparameters say.
 * @throws {UnsupportedError} If the file asks for something that is not built.
 */
export async function buildModel(parts: ModelParts, options: BuildOptions): Promise<BuiltModel> {
  const { resolved: { spec }, file, params, tensors } = parts;
  const builder = createGraphBuilder(file.name);
  const M = symbol("M", { min: 1 });
  const L = symbol("L", { min: 0 });
  const inputs: StepInputs = {
    tokens: builder.input("tokens", [M], "i32"),
    positions: builder.input("positions", [M], "i32"),
    slots: builder.input("slots", [M], "i32"),
    logitRows: builder.input("logit_rows", [L], "i32"),
  };
  const context: BlockContext = {
    builder,
    spec,
    params,
    tensors,
    inputs,
    capacity: options.capacity,
    cacheType: options.cacheType,
    ropeTable: await ropeTables(parts, builder, inputs.positions),
  };
  const kinds = layerKinds(spec, params, file.name);

  const table = weight(context, "embedding", [params.vocabulary, params.hidden]);
  let x = apply(builder, "embed", "embedding", [inputs.tokens, table], {
    scale: spec.embedding.scale === "sqrt_hidden" ? Math.sqrt(params.hidden) : spec.embedding.scale,
  }); // f32[M, hidden]
  for (let layer = 0; layer < params.layers; layer++) {
    x = buildLayer(context, x, { layer, kind: kinds[layer]!, file: file.name });
  }
  const rows = apply(builder, "select_rows", "logit_rows", [x, inputs.logitRows]); // f32[L, hidden]
  const hidden = norm(context, rows, {
    role: "output_norm",
    name: "output_norm",
    size: params.hidden,
  });
  const logits = head(context, hidden, table);
  builder.output("logits", logits);
  if (options.embeddings) builder.output("hidden", hidden);
  return { graph: builder.build(), params, warnings: unusedWarning(tensors) };
}

function buildLayer(
  context: BlockContext,
  input: Value,
  { layer, kind, file }: { layer: number; kind: string; file: string },
): Value {
  const { builder, spec, params } = context;
  let x = input;
  for (const { block, before, after } of spec.layer) {
    const path = `layers.${layer}.${before}`;
    const normed = norm(context, x, { role: before, name: path, size: params.hidden, layer });
    const branch = block === "attention"
      ? attention(context, normed, { layer, kind })
      : feedForward(context, normed, { layer, file });
    const added = after === undefined ? branch : norm(context, branch, {
      role: after,
      name: `layers.${layer}.${after}`,
      size: params.hidden,
      layer,
    });
    x = apply(builder, "add", `layers.${layer}.${block}.residual`, [x, added]);
  }
  return x;
}

// A head of its own, unless the config says that it is the embedding or there is none.
function head(
  context: BlockContext,
  hidden: Value,
  table: Value,
): Value {
  const { builder, params, tensors } = context;
  const shape = [params.vocabulary, params.hidden];
  const stored = tensors.find("head", shape);
  if (!stored && params.tiedHead === false) tensors.get("head", shape);
  const isTied = !stored || params.tiedHead === true;
  const matrix = isTied ? table : builder.weight(stored.name, stored);
  const logits = apply(builder, "matmul", "logits", [hidden, matrix]);
  return params.logitCap === undefined
    ? logits
    : apply(builder, "softcap", "logits.capped", [logits], { cap: params.logitCap });
}

async function ropeTables(
  { resolved: { spec }, file, params, tensors }: ModelParts,
  builder: GraphBuilder,
  positions: Value,
): Promise<(kind: string) => Value> {
  const values = params as unknown as Readonly<Record<string, unknown>>;
  const stored = tensors.find("rope_factors", [params.ropeDim / 2]);
  const factors = stored && await readConstant(stored);
  const tables = new Map<string, Value>();
  for (const [kind, { theta, scaling }] of Object.entries(spec.attention.kinds)) {
    const frequencies = ropeFrequencies({
      dim: params.ropeDim,
      theta: values[theta] as number,
      context: params.context,
      scaling: scaling === undefined
        ? undefined
        : values[scaling] as Hyperparameters["ropeScaling"],
      factors,
      file: file.name,
    });
    const key = `${frequencies.magnitude}:${frequencies.inverse.join()}`;
    const table = tables.get(key) ?? apply(builder, "rope_table", `rope.${kind}`, [
      positions,
      builder.constant(`rope.${kind}.inverse`, frequencies.inverse),
    ], { magnitude: frequencies.magnitude });
    tables.set(key, table).set(kind, table);
  }
  return (kind) => tables.get(kind)!;
}

function unusedWarning(tensors: TensorLookup): string[] {
  const names = tensors.unused();
  if (names.length === 0) return [];
  const shown = names.slice(0, 3).join(", ") + (names.length > 3 ? ", ..." : "");
  return [`${names.length} tensors of the file are not used: ${shown}`];
}
