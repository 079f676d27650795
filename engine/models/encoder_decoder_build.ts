// Builds the graph of an encoder-decoder. One graph holds both halves, so that they share the embedding and
// the sessions' caches; a step runs one of them and has no rows for the other:
//
//   encoding   E rows (source_tokens, source_positions, source_starts, source_ends, source_slots i32[E]):
//              the encoder, then keys and values of its output into the caches of each decoder layer; of sound
//              W windows, each of as many rows as there are positions (source_features f32[W, bands, 1, frames])
//   decoding   M rows as those of a decoder, L with logits; memory_slots i32[M] says whose source a row sees
//              and memory_ends i32[M] how long it is
//
// Outputs: logits f32[L, vocab], and with `observe` the encoder's output f32[E, hidden] and, of each layer of the
// decoder, the keys that it made of it f32[E, H, D] and the queries that look at them f32[M, H, D]; those of some layers
// with `heardBy`.

import type { WordHeads } from "../decode/runtime.ts";
import { UnsupportedError } from "../errors.ts";
import { readAlignmentHeads } from "../formats/media/speech_config.ts";
import { createGraphBuilder } from "../graph/builder.ts";
import { mul, symbol } from "../graph/dim/mod.ts";
import type { Value } from "../graph/graph.ts";
import { getOp } from "../ops/mod.ts";
import { type BlockContext, norm, type StepInputs, weight } from "./blocks/context.ts";
import { crossOutputs, rememberSource } from "./blocks/cross_attention.ts";
import { embedding, head } from "./blocks/embedding.ts";
import { signedBytes } from "./derived_tensors/signed_bytes.ts";
import { buildLayer } from "./blocks/layer.ts";
import { soundStem } from "./blocks/sound_stem.ts";
import {
  type BuildOptions,
  type BuiltModel,
  type ModelParts,
  ropeTables,
  unusedWarning,
} from "./build.ts";
import { encoderContext, relativeBias, scaleInputs } from "./encoder_build.ts";
import { runLayers } from "./encoder_outputs.ts";
import { layerKinds } from "./layer_kinds.ts";
import type { TensorLookup } from "./tensors.ts";

/**
 * Builds the graph of an encoder-decoder.
 *
 * @throws As `buildModel`.
 */
export async function buildEncoderDecoder(
  parts: ModelParts,
  options: BuildOptions,
): Promise<BuiltModel> {
  const { resolved: { spec }, file, params, tensors } = parts;
  const builder = createGraphBuilder(file.name, getOp);
  const M = symbol("M", { min: 0 });
  const { sound } = spec.encoder!;
  const { sourceContext = options.capacity } = params;
  const windows = symbol("W", { min: 0 });
  const E = sound ? mul(windows, sourceContext) : symbol("E", { min: 0 });
  const L = symbol("L", { min: 0 });
  const rows = (name: string, count = M) => builder.input(name, [count], "i32");

  const sourceScales = scaleInputs(builder, { rows: E, prefix: "source_" });
  const encoder = await encoderContext(encoderParts(parts), {
    ...{ builder, options, rows: E, prefix: "source_", scales: sourceScales },
  });
  const table = weight({ ...encoder, tensors }, {
    role: "embedding",
    shape: [params.vocabulary, params.embeddingDim],
  });
  const embedded = sound ? soundStem(encoder, { sound, windows }) : embedding(encoder, table);
  const output = finish(encoder, runLayers(encoder, { x: embedded }).at(-1)!, spec.encoder!.norm);
  if (options.observe) builder.output("encoder", output);

  const inputs: StepInputs = {
    tokens: rows("tokens"),
    positions: rows("positions"),
    slots: rows("slots"),
    logitRows: rows("logit_rows", L),
  };
  const bias = await relativeBias(parts, { builder, isBidirectional: false });
  const observed: [string, Value][] = [];
  const decoder: BlockContext = {
    builder,
    spec,
    params,
    tensors,
    inputs,
    spans: bias && { isCached: true, bias },
    capacity: options.capacity,
    cacheType: options.cacheType,
    file: file.name,
    adapters: parts.adapters?.over(tensors, scaleInputs(builder, { rows: M, prefix: "" })),
    ropeTable: await ropeTables(parts, { builder, positions: inputs.positions }),
    observe: (name, value) => observed.push([name, value]),
  };
  const sourceSide = {
    ...decoder,
    capacity: sound ? sourceContext : options.capacity,
    inputs: { ...encoder.inputs, slots: rows("source_slots", E) },
    adapters: parts.adapters?.over(tensors, sourceScales),
  };
  const caches = Array.from(
    { length: params.layers },
    (_, layer) => rememberSource(sourceSide, { output, layer }),
  );
  const source = { slots: rows("memory_slots"), ends: rows("memory_ends"), caches };
  const hidden = decode({ ...decoder, source }, table);
  const bytes = sound && options.takesHead ? signedBytes(table.tensor!) : undefined;
  const isTaken = bytes && options.takesHead!(bytes);
  const headTable = isTaken ? builder.weight(bytes.name, bytes) : table;
  builder.output("logits", head(decoder, { hidden, table: headTable }));
  if (options.embeddings) builder.output("hidden", hidden);
  const heard = options.heardBy?.flatMap((layer) => Object.values(crossOutputs(layer)));
  for (const [name, value] of observed) {
    if (options.observe || heard?.includes(name)) builder.output(name, value);
  }
  return { graph: builder.build(), params, warnings: unusedWarning(tensors) };
}

/**
 * Heads by which words are timed.
 *
 * @throws {UnsupportedError} If the model does not listen. @throws {FormatError} If its files name heads that it lacks.
 */
export async function wordHeads(
  { file, params, resolved: { spec } }: ModelParts,
): Promise<WordHeads> {
  if (!spec.encoder?.sound) {
    throw new UnsupportedError("does not listen, and so times no words", {
      ...{ file: file.name, remedy: "Leave words out" },
    });
  }
  const { layers, heads, kvHeads, headDim, attentionScale: scale = headDim ** -0.5 } = params;
  return {
    heads: await readAlignmentHeads(file, { layers, heads }),
    ...{ headCount: heads, keyHeadCount: kvHeads, headDim, scale },
  };
}

/** Layers and final norm of the rows that want logits: → f32[L, hidden]. */
function decode(context: BlockContext, table: Value): Value {
  const { builder, spec, params, inputs, file } = context;
  const kinds = layerKinds(spec, { params, file });
  let x = embedding(context, table); // f32[M, hidden]
  for (let layer = 0; layer < params.layers; layer++) {
    x = buildLayer(context, x, { layer, kind: kinds[layer]! });
  }
  const rows = builder.op("select_rows", [x, inputs.logitRows], {}, "logit_rows")[0]!;
  return finish(context, rows, spec.head?.norm === false ? undefined : "output_norm");
}

function finish(context: BlockContext, x: Value, role: string | undefined): Value {
  if (role === undefined) return x;
  return norm(context, x, { role, name: role, size: context.params.hidden });
}

/** The encoder's own spec, sizes and tensors, under the names that its blocks ask for. */
function encoderParts(parts: ModelParts): ModelParts {
  const { resolved, params, tensors } = parts;
  const { encoderLayers, encoderHeads, encoderFeedForward, hidden } = params;
  // Heads of their own number share out the same width; where a file names a width, it is that of both stacks.
  const headDim = encoderHeads === undefined ? params.headDim : hidden / encoderHeads;
  return {
    ...parts,
    resolved: { ...resolved, spec: { ...resolved.spec, layer: resolved.spec.encoder!.layer } },
    params: {
      ...params,
      layers: encoderLayers ?? params.layers,
      heads: encoderHeads ?? params.heads,
      kvHeads: encoderHeads ?? params.kvHeads,
      ...encoderHeads !== undefined && { headDim, valueDim: headDim },
      feedForward: encoderFeedForward ?? params.feedForward,
    },
    tensors: prefixed(tensors, "encoder_"),
  };
}

function prefixed(tensors: TensorLookup, prefix: string): TensorLookup {
  return {
    ...tensors,
    get: (role, shape, layer) => tensors.get(prefix + role, shape, layer),
    find: (role, shape, layer) => tensors.find(prefix + role, shape, layer),
    has: (role, layer) => tensors.has(prefix + role, layer),
    rows: (role) => tensors.rows(prefix + role),
    stored: (role, layer) => tensors.stored(prefix + role, layer),
  };
}
