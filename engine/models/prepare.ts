// From a model's name to a plan: find the file, read its header, choose the spec, build and optimise the
// graph, plan its memory. Nothing of the weights is read, so the same steps describe a model that is not
// going to be loaded.

import type { PictureTower } from "../decode/pictures/tower.ts";
import type { Network, Runtime, WordHeads } from "../decode/runtime.ts";
import { UnsupportedError } from "../errors.ts";
import type { TensorInfo, WeightFile } from "../formats/source.ts";
import type { DimEnv } from "../graph/dim/mod.ts";
import type { Graph } from "../graph/graph.ts";
import type { KvFormat } from "../run/backend.ts";
import type { DeviceFacts } from "../run/device_facts.ts";
import { SOURCE_FEATURES } from "../run/executable.ts";
import { optimizeAlike } from "../plan/alike_layers.ts";
import { optimize } from "../plan/passes.ts";
import { draftOf, draftValue, type PassContext } from "../plan/passes/pass.ts";
import type { Plan } from "../plan/plan.ts";
import { plan } from "../plan/planner.ts";
import { roundedWeights } from "../plan/rounded_weights.ts";
import type { Adapter } from "./adapters/adapter.ts";
import {
  buildModel,
  type BuildOptions,
  type BuiltModel,
  type ModelParts,
  readModelParts,
} from "./build.ts";
import { pictureGrid, type PictureSize } from "./blocks/patches.ts";
import { countParameters, describeModel, plannedMemory } from "../decode/describe.ts";
import type { Hyperparameters } from "./hparams.ts";
import {
  resolveDecoderLimits,
  type ResolvedLimits,
  resolveEncoderLimits,
  resolveLimits,
  resolvePictureLimits,
} from "../decode/load_options.ts";
import type { LoadOptions, ModelDescription, Precision } from "../decode/model.ts";
import { PICTURE_INPUTS, PICTURE_SYMBOL } from "../run/picture_inputs.ts";
import { withOutliers } from "./outliers.ts";
import type { ModelSpec } from "./spec.ts";
import { ownForm } from "./spec_file.ts";
import { chooseSpec } from "./specs/mod.ts";
import { unknownKeysWarning } from "./unknown_keys.ts";

/** A network ready to be loaded. */
export interface PreparedNetwork extends ModelDescription {
  readonly plan: Plan;
  readonly params: Pick<Hyperparameters, "vocabulary" | "hidden">;
  readonly limits: ResolvedLimits;
  /** Of encoders of pictures: what runs it, when it is loaded. */
  readonly tower?: (runtime: Pick<Runtime, "queue" | "logitRows">) => Promise<PictureTower>;
}

/** A model that was built from a spec, ready to be loaded. */
export interface PreparedModel extends PreparedNetwork {
  readonly params: Hyperparameters;
  readonly spec: ModelSpec;
  /** What it was built from. */
  readonly parts: ModelParts;
  /** Of models that listen, where words are to be timed. */
  readonly wordHeads?: WordHeads;
  /** Of encoders of pictures: the size of these, where that is not the model's own. */
  readonly pictures: PictureSize | undefined;
  /** Algorithm that a given spec cuts texts with; empty for the tokenizer's own. */
  readonly tokenization: string;
}

/** The network as a model of a spec; undefined where it is none. */
export function modelOf(prepared: PreparedNetwork): PreparedModel | undefined {
  return "parts" in prepared ? prepared as PreparedModel : undefined;
}

/** Kernels of the device that the plan is for. */
export type KernelQuestions =
  & Omit<PassContext, "precision">
  & Partial<Pick<DeviceFacts, "rowsOfStep" | "alignment">>;

/** Symbol of the windows of sound that a step reads. */
const WINDOWS = "W";

interface NetworkKind {
  limitsOf(options: LoadOptions, parts: ModelParts, pictures?: PictureSize): ResolvedLimits;
  build(parts: ModelParts, options: BuildOptions): Promise<BuiltModel>;
  /** Largest step. */
  symbols(limits: ResolvedLimits, graph: Graph): DimEnv;
}

// What few models need is imported for them: every module is a fifth of a millisecond of every load.
const NETWORKS: Readonly<Record<Network, NetworkKind>> = {
  decoder: {
    limitsOf: (options, { params }) => resolveDecoderLimits(options, params),
    build: (parts, options) => buildModel(parts, { ...options, spans: true }),
    symbols: ({ batch, logitRows }, { inputs }) => ({
      ...{ M: batch, L: logitRows },
      ...inputs.some(({ name }) => name === PICTURE_INPUTS.rows) && { [PICTURE_SYMBOL]: batch },
    }),
  },
  encoder: {
    limitsOf: (options, { params }) => resolveEncoderLimits(options, params),
    build: async (...given) => await (await import("./encoder_build.ts")).buildEncoder(...given),
    symbols: stepOf,
  },
  picture: {
    limitsOf(options, { params, resolved: { spec }, tensors, file }, pictures) {
      const { rows, columns, leading } = pictureGrid(
        { params, spec, tensors, file: file.name },
        pictures,
      );
      return resolvePictureLimits(options, { context: leading + rows * columns });
    },
    build: async (...given) => await (await import("./picture_build.ts")).buildPicture(...given),
    symbols: stepOf,
  },
  "encoder-decoder": {
    limitsOf: (options, { params }) => resolveLimits(options, params),
    build: async (...given) =>
      await (await import("./encoder_decoder_build.ts")).buildEncoderDecoder(...given),
    // Sound is read a window at a time.
    symbols: ({ batch, logitRows, contextLength }, { inputs }) => ({
      M: batch,
      L: logitRows,
      ...inputs.some(({ name }) => name === SOURCE_FEATURES)
        ? { [WINDOWS]: 1 }
        : { E: contextLength },
    }),
  },
};

/** Rows of a step, and wanted ones; without a head no row is asked for. */
function stepOf({ batch, logitRows }: ResolvedLimits, { inputs }: Graph): DimEnv {
  const asks = inputs.some(({ name }) => name === "logit_rows");
  return { M: batch, ...asks && { L: logitRows } };
}

/** The graph of a model, whatever its network. @throws As `buildModel`. */
export function buildNetwork(parts: ModelParts, options: BuildOptions): Promise<BuiltModel> {
  return NETWORKS[parts.resolved.spec.network ?? "decoder"].build(parts, options);
}

/**
 * Plans a model.
 *
 * @param onGraph Called with the graph before it is optimised, if its weights will be loaded as they are.
 * @throws {FormatError | UnsupportedError} If the file's model cannot be built; the message says where.
 */
export async function prepareModel(
  file: WeightFile,
  { options, kernels, adapters = [], onGraph = async () => {}, outputs, sight, ...given }: {
    readonly options: LoadOptions;
    readonly kernels: KernelQuestions;
    readonly adapters?: readonly Adapter[] | undefined;
    readonly onGraph?: ((graph: Graph) => Promise<void>) | undefined;
    /** Of encoders: what is wanted of them, and of what size pictures are. */
    readonly outputs?: BuildOptions["outputs"];
    readonly pictures?: PictureSize | undefined;
    /** How a language model sees pictures. */
    readonly sight?: BuildOptions["sight"];
  },
): Promise<PreparedModel> {
  const givenSpec = await ownForm(options.spec, file);
  const { resolved, architecture: ownName } = chooseSpec(file, givenSpec.json);
  const own = await withHeads(
    readModelParts(resolved, { stored: file, architecture: ownName }),
    options.kvHeads,
  );
  const { params } = own;
  const changes = adapters.length === 0
    ? undefined
    : (await import("./adapters/lookup.ts")).createAdapterLookup(adapters, {
      params,
      convention: own.resolved.convention,
      architecture: ownName,
    });
  const parts = { ...own, ...changes && { adapters: changes } };
  const network = parts.resolved.spec.network ?? "decoder";
  const { limitsOf, symbols } = NETWORKS[network];
  const pictures = given.pictures ??
    (network === "picture"
      ? await (await import("./picture_processor.ts")).preparedSize(parts.file)
      : undefined);
  const batch = options.batch ?? (network === "decoder" ? kernels.rowsOfStep : undefined);
  const limits = limitsOf({ ...options, ...batch !== undefined && { batch } }, parts, pictures);
  const wordHeads = options.words
    ? await (await import("./encoder_decoder_build.ts")).wordHeads(parts)
    : undefined;
  const built = await buildNetwork(parts, {
    ...wordHeads && { heardBy: [...new Set(wordHeads.heads.map(([layer]) => layer))] },
    capacity: limits.contextLength,
    cacheType: limits.kvFormat.toLowerCase() as Lowercase<KvFormat>,
    embeddings: limits.embeddings,
    ...limits.precision === "fast" && { takesHead: (matrix) => takesHead(matrix, kernels) },
    ...{ outputs, pictures, sight },
  });
  changes?.checkUsed();
  if (network === "picture") refuseTower(built.graph, file.name);
  const graph = await withOutliers(built.graph, file);
  // Passes change the nodes of a decoder, not its weights; those of an encoder may be rounded.
  const isEncoder = network === "encoder" || network === "picture";
  const hears = graph.inputs.some(({ name }) => name === SOURCE_FEATURES);
  if (!isEncoder && !(hears && limits.precision === "fast")) await onGraph(graph);
  const warnings = [
    ...givenSpec.warnings,
    ...unknownKeysWarning(own.file, { resolved: own.resolved, architecture: ownName }),
    ...built.warnings,
    ...adapters.flatMap(({ warnings = [] }) => warnings),
  ];
  const planned = planGraph(graph, {
    ...{ kernels, precision: limits.precision, roundsWeights: hears ? WINDOWS : isEncoder },
    hasFewRows: network !== "picture",
    symbols: (optimized) => symbols(limits, optimized),
  });
  const architecture = resolved.spec.name;
  const rounded = roundedWeights(planned.graph.nodes).size;
  // What is read are pictures: their rows are all that there is.
  const sizes = network === "picture" ? { ...params, context: limits.contextLength } : params;
  const info = describeModel({
    ...{ file, architecture, network, params: sizes, limits, warnings, rounded },
    parameters: countParameters(file, graph),
    labels: Number(graph.outputs.find(({ name }) => name === "scores")?.shape.at(-1) ?? 0),
  });
  const memory = plannedMemory(planned, limits);
  const { tokenization } = givenSpec;
  const { spec } = parts.resolved;
  return {
    ...{ info, memory, plan: planned, params, limits, spec, parts, pictures, tokenization },
    ...wordHeads && { wordHeads },
  };
}

/** Whether a device multiplies rows of 16 bit by a matrix, as the last product of a graph. */
function takesHead(tensor: TensorInfo, kernels: KernelQuestions): boolean {
  const { shape } = tensor, columns = shape.at(-1)!;
  const x = draftValue({ dtype: "f32", shape: [1, columns] });
  const weight = draftValue({ dtype: "f32", shape }, { role: "weight", tensor });
  return kernels.takes(draftOf("matmul", { inputs: [x, weight], given: { wide: true } }));
}

/** Optimises a graph for a device and plans it. */
export function planGraph(
  graph: Graph,
  { kernels, precision, roundsWeights, hasFewRows = true, symbols }: {
    readonly kernels: KernelQuestions;
    readonly precision: Precision;
    /**
     * Seven bits are enough for vectors, and for what is made of sound, not for a model that is fed its own output
     * (quant/int7_groups.ts).
     */
    readonly roundsWeights: boolean | string;
    /** Default true. */
    readonly hasFewRows?: boolean;
    /** Largest values of its symbols. */
    readonly symbols: (optimized: Graph) => DimEnv;
  },
): Plan {
  const context: PassContext = {
    precision,
    hasKernel: (op) => kernels.hasKernel(op),
    takes: (draft) => kernels.takes(draft),
    picksRowsEarly: kernels.picksRowsEarly,
    ...kernels.fusesNeighbours !== undefined && { fusesNeighbours: kernels.fusesNeighbours },
    ...kernels.goesRowByRow && { goesRowByRow: true },
    ...{ roundsWeights, hasFewRows },
  };
  const passes = (some: Graph) => optimize(some, { context });
  const optimized = optimizeAlike(graph, passes);
  const { alignment } = kernels;
  return plan(optimized, { limits: symbols(optimized), ...alignment && { alignment } });
}

/** @throws {UnsupportedError} If an encoder of pictures is laid out by who reads its rows (sight/tower.ts). */
function refuseTower({ inputs }: Graph, file: string): void {
  if (!inputs.some(({ name }) => name === "patch_rows" || name === "window_starts")) return;
  throw new UnsupportedError("looks at pictures for a language model, not by itself", {
    file,
    remedy: "Load the model that it is part of, and use chat()",
  });
}

async function withHeads(parts: ModelParts, kvHeads: number | undefined): Promise<ModelParts> {
  if (kvHeads === undefined) return parts;
  const { poolParts } = await import("./pooled_parts.ts");
  return poolParts(parts, kvHeads);
}
