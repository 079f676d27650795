// Builds the graph of a language model from a spec and a model file (spec IF-3): embedding, layers of
// residual branches, final norm, head. All numbers that depend on the file come from hparams.ts, all
// weights stay in the file until a backend asks for them.
//
// A step is a table of M rows, each with a token, a position and the slot of its session; L of the rows
// want logits. Inputs: tokens, positions, slots i32[M], logit_rows i32[L]. Outputs: logits f32[L, vocab] and,
// where asked for, hidden f32[L, hidden]: the state after the final norm.

import { FormatError, UnsupportedError } from "../errors.ts";
import type { TensorInfo, WeightFile } from "../formats/source.ts";
import { createGraphBuilder, type GraphBuilder } from "../graph/builder.ts";
import { type Dim, symbol } from "../graph/dim/mod.ts";
import type { Graph, StateType, Value } from "../graph/graph.ts";
import { getOp } from "../ops/mod.ts";
import { adapterInput } from "../run/executable.ts";
import { PICTURE_INPUTS, PICTURE_SYMBOL } from "../run/picture_inputs.ts";
import { AXES } from "../run/step.ts";
import type { AdapterLookup } from "./adapters/lookup.ts";
import { type BlockContext, needed, norm, type StepInputs, weight } from "./blocks/context.ts";
import { windowOf } from "./blocks/attention.ts";
import { embedding, head } from "./blocks/embedding.ts";
import { buildLayer } from "./blocks/layer.ts";
import { type RopeAxis, tableOfAxes } from "./blocks/rope_axes.ts";
import type { PictureSize } from "./blocks/patches.ts";
import { readConstant } from "./constants.ts";
import type { EncoderOutputs } from "./encoder_outputs.ts";
import type { FieldName } from "./hparam_fields.ts";
import { type Hyperparameters, readHyperparameters, specializeSpec } from "./hparams.ts";
import { layerKinds } from "./layer_kinds.ts";
import { renameTensors } from "./renamed.ts";
import { ropeFrequencies } from "./rope.ts";
import { sectionOf } from "./section.ts";
import type { ResolvedSpec } from "./spec.ts";
import { createTensorLookup, type TensorLookup } from "./tensors.ts";

/** What a graph is built for. */
export interface BuildOptions {
  /** Positions that each session's cache holds. */
  readonly capacity: number;
  /** Storage of keys and values. */
  readonly cacheType: StateType;
  /** Whether `hidden` is an output too. */
  readonly embeddings: boolean;
  /**
   * Whether who runs the graph writes `spans`: the length of each row's whole text as it is known now. Only models
   * whose rotations depend on it have this input; when a text outgrows a length, all of it must be run again.
   */
  readonly spans?: boolean;
  /** How the model sees pictures, if rows of them may stand in place of tokens. */
  readonly sight?: PictureRules | undefined;
  /** Whether layers' results and chosen experts are outputs too, for tests and tools. */
  readonly observe?: boolean;
  /** Of models that listen: layers of the decoder whose queries and keys of the sound are outputs too. */
  readonly heardBy?: readonly number[] | undefined;
  /**
   * Of models that listen: whether a matrix may be the head, beside the embedding of floats that it is too. A step of one
   * token reads nothing as large, and answers as well by signed bytes.
   */
  readonly takesHead?: ((matrix: TensorInfo) => boolean) | undefined;
  /** Of encoders: what is given out; default: all that the spec has. */
  readonly outputs?: EncoderOutputs | undefined;
  /** Of encoders of pictures: what size those have; default: that of the model. */
  readonly pictures?: PictureSize | undefined;
}

/** How a model sees the rows of a picture. */
export interface PictureRules {
  /** A row sees all rows of its picture, those behind it too. */
  readonly seesWhole: boolean;
  /** A row is rotated by its place in the picture, on three axes that share the frequencies. */
  readonly byPlace: boolean;
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
  /** What adapters change, where there are any. */
  readonly adapters?: AdapterLookup;
}

/**
 * Reads and checks what a file says about its model; no tensor is read.
 *
 * @param architecture The file's own name of its architecture, for keys that begin with it.
 * @throws {FormatError} If a hyperparameter is missing or impossible.
 */
export function readModelParts(
  general: ResolvedSpec,
  { stored, architecture }: { readonly stored: WeightFile; readonly architecture: string },
): ModelParts {
  const file = renameTensors(sectionOf(stored, general.spec), general.names.renamed);
  const resolved = specializeSpec(general, { file, architecture });
  const isOfTokens = resolved.spec.network !== "picture";
  const vocabulary = isOfTokens
    ? createTensorLookup(file, { names: resolved.names }).rows("embedding")
    : 0;
  const params = readHyperparameters(general, file, { architecture, vocabulary });
  const tensors = createTensorLookup(file, { names: resolved.names, params });
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
  const builder = createGraphBuilder(file.name, getOp);
  const M = symbol("M", { min: 1 });
  const L = symbol("L", { min: 0 });
  const inputs: StepInputs = {
    tokens: builder.input("tokens", [M], "i32"),
    positions: builder.input("positions", [M], "i32"),
    slots: builder.input("slots", [M], "i32"),
    logitRows: builder.input("logit_rows", [L], "i32"),
    ...options.sight && { pictures: pictureInputs(builder, M, params.hidden) },
  };
  const observed: [string, Value][] = [];
  const context: BlockContext = {
    builder,
    spec,
    params,
    tensors,
    inputs,
    spans: options.sight?.seesWhole ? pictureSpans(parts, { builder, M }) : undefined,
    capacity: options.capacity,
    cacheType: options.cacheType,
    file: file.name,
    adapters: parts.adapters?.over(
      tensors,
      (adapter) => builder.input(adapterInput(adapter), [M, 1], "f32"),
    ),
    ropeTable: await ropeTables(parts, { builder, positions: inputs.positions }, {
      capacity: options.capacity,
      ...options.spans && { spans: once(() => builder.input("spans", [M], "i32")) },
      ...options.sight?.byPlace && { axes: pictureAxes(parts, { builder, M }) },
    }),
    observe: (name, value) => observed.push([name, value]),
  };
  const kinds = layerKinds(spec, { params, file: file.name });
  const table = weight(context, {
    role: "embedding",
    shape: [params.vocabulary, params.embeddingDim],
  });
  let x = embedding(context, table); // f32[M, hidden]
  context.observe("layers.input", x);
  for (let layer = 0; layer < params.layers; layer++) {
    x = buildLayer(context, x, { layer, kind: kinds[layer]! });
    context.observe(`layers.${layer}.output`, x);
  }
  const rows = builder.op("select_rows", [x, inputs.logitRows], {}, "logit_rows")[0]!; // f32[L, hidden]
  const hidden = spec.head?.norm === false ? rows : norm(context, rows, {
    role: "output_norm",
    name: "output_norm",
    size: params.hidden,
  });
  builder.output("logits", head(context, { hidden, table }));
  if (options.embeddings) builder.output("hidden", hidden);
  if (options.observe) { for (const [name, value] of observed) builder.output(name, value); }
  return { graph: builder.build(), params, warnings: unusedWarning(tensors) };
}

/** The inputs of pictures (run/picture_inputs.ts). */
function pictureInputs(builder: GraphBuilder, M: Dim, hidden: number): StepInputs["pictures"] {
  const P = symbol(PICTURE_SYMBOL, { min: 0 });
  return {
    rows: builder.input(PICTURE_INPUTS.rows, [P, hidden], "f32"),
    choice: builder.input(PICTURE_INPUTS.choice, [M], "i32"),
  };
}

/** What rows see that see all of their picture. */
function pictureSpans(
  { resolved: { spec }, params, file }: ModelParts,
  { builder, M }: { readonly builder: GraphBuilder; readonly M: Dim },
): BlockContext["spans"] {
  const starts = new Map<number, Value>();
  const ends = builder.input(PICTURE_INPUTS.ends, [M], "i32");
  const startsOf = (window: number): Value => {
    const made = starts.get(window) ?? builder.input(PICTURE_INPUTS.starts(window), [M], "i32");
    starts.set(window, made);
    return made;
  };
  return {
    isCached: true,
    ofKind(kind) {
      const window = windowOf({ spec, params, file: file.name }, kind);
      return { ends, ...window > 0 && { starts: startsOf(window) } };
    },
  };
}

/** Axes by which rows of pictures are rotated, in the shares that the model's record of rotations states. */
function pictureAxes(
  { params, file }: ModelParts,
  { builder, M }: { readonly builder: GraphBuilder; readonly M: Dim },
): RopeAxis[] {
  const sections = params.ropeScaling?.mrope_section ?? params.ropeSections;
  if (!Array.isArray(sections) && !ArrayBuffer.isView(sections)) {
    throw new FormatError("is missing, and rows of pictures cannot be rotated without it", {
      file: file.name,
      place: "rotary scaling, mrope_section",
    });
  }
  return Array.from(sections as ArrayLike<number>).slice(0, AXES).map((pairs, axis) => ({
    pairs,
    places: builder.input(PICTURE_INPUTS.offsets(axis), [M], "i32"),
  }));
}

function once<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => made ??= make();
}

/** How long texts get, and the lengths of rows' texts if they are known. */
export interface RopeContext {
  readonly capacity: number;
  /** i32[M] */
  readonly spans?: () => Value;
  /** Axes that share the frequencies, in their order, by places that are counted from the position; absent: by that alone. */
  readonly axes?: readonly RopeAxis[];
}

/**
 * Rotary tables by attention kind; kinds with equal frequencies share one.
 *
 * @throws {UnsupportedError} If frequencies change within the capacity and spans are not known.
 */
export async function ropeTables(
  { resolved: { spec }, file, params, tensors }: ModelParts,
  { builder, positions }: { readonly builder: GraphBuilder; readonly positions: Value },
  { capacity, spans, axes }: RopeContext = { capacity: Infinity },
): Promise<(kind: string) => Value | undefined> {
  const values = params as unknown as Readonly<Record<string, unknown>>;
  const factors = await storedFactors(tensors, "rope_factors", params);
  const long = await storedFactors(tensors, "rope_factors_long", params);
  const short = await storedFactors(tensors, "rope_factors_short", params);
  const tables = new Map<string, Value>();
  for (const [kind, { theta, scaling }] of Object.entries(spec.attention.kinds)) {
    if (theta === undefined) continue;
    const base = needed({ params, file: file.name }, [theta as FieldName])[theta as FieldName];
    const record = values[scaling ?? ""] as Hyperparameters["ropeScaling"];
    if (long && short) checkBesideLists(record, file.name);
    const frequencies = ropeFrequencies({
      dim: params.ropeDim,
      theta: base as number * (params.ropeRatio ?? 1),
      context: params.context,
      scaling: scaling === undefined ? undefined : {
        ...record,
        ...params.ropeTruncate !== undefined && { truncate: params.ropeTruncate },
        // Some GGUF files hold the two lists as tensors, and then need not name the rule.
        ...long && short && {
          type: "longrope",
          long_factor: [...long],
          short_factor: [...short],
          attention_factor: record?.attn_factor ?? 1,
        },
      },
      original: params.ropeOriginal,
      factors,
      file: file.name,
    });
    const { inverse, magnitude } = frequencies;
    const second = capacity > (frequencies.long?.beyond ?? Infinity)
      ? frequencies.long!
      : undefined;
    if (second && !spans) {
      const { beyond } = second;
      throw new UnsupportedError(`rotations that change beyond ${beyond} tokens are not built`, {
        file: file.name,
        remedy: `Load the model with contextLength: ${beyond} or less`,
      });
    }
    const key = `${magnitude}:${inverse.join()}:${second?.inverse.join()}`;
    const name = `rope.${kind}`;
    const first = [positions, builder.constant(`${name}.inverse`, inverse)];
    const inputs = second
      ? [...first, spans!(), builder.constant(`${name}.long`, second.inverse)]
      : first;
    const attributes = { magnitude, beyond: second?.beyond ?? 0 };
    const turned = (own: readonly Value[], path: string) =>
      builder.op("rope_table", own, attributes, path)[0]!;
    const table = tables.get(key) ??
      (axes
        ? tableOfAxes(builder, {
          ...{ axes, name, file: file.name, pairs: inverse.length },
          table: (axis, path) => {
            const places = builder.op("binary", [positions, axis.places], {
              kind: "add",
            }, `${path}.places`)[0]!;
            return turned([places, ...inputs.slice(1)], path);
          },
        })
        : turned(inputs, name));
    tables.set(key, table).set(kind, table);
  }
  return (kind) => tables.get(kind);
}

/** Divisors that are stored as lists are a rule by themselves: another one beside them would have to be joined to it. */
function checkBesideLists(record: Hyperparameters["ropeScaling"], file: string): void {
  const { type = "none", factor = 1 } = record ?? {};
  const refused = (field: string, value: unknown, only: string) =>
    new UnsupportedError(
      `is ${JSON.stringify(value)} beside lists of divisors, and only ${only} is built`,
      { file, place: `rotary scaling, ${field}` },
    );
  if (type !== "none" && type !== "longrope") throw refused("type", type, "none or longrope");
  if (factor !== 1) throw refused("factor", factor, "1");
}

async function storedFactors(
  tensors: TensorLookup,
  role: string,
  { ropeDim }: Hyperparameters,
): Promise<Float32Array | undefined> {
  const stored = tensors.find(role, [ropeDim / 2]);
  return stored && await readConstant(stored);
}

/** One sentence about tensors that nothing asked for. */
export function unusedWarning(tensors: TensorLookup): string[] {
  const names = tensors.unused();
  if (names.length === 0) return [];
  const shown = names.slice(0, 3).join(", ") + (names.length > 3 ? ", ..." : "");
  return [`${names.length} tensors of the file are not used: ${shown}`];
}
