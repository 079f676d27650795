// Facts about a model from its file's header, its plan and the options, without reading a weight. The
// same code answers `troodon info` for a remote file and fills `model.info`.

import { formats } from "../../quant/mod.ts";
import type { Network } from "./runtime.ts";
import type { TensorInfo, WeightFile } from "../formats/source.ts";
import type { Graph } from "../graph/graph.ts";
import type { Plan } from "../plan/plan.ts";
import { pagesFor, stateBytes } from "../run/pages/groups.ts";
import { sizeOf } from "../plan/sizes.ts";
import type { ResolvedLimits } from "./load_options.ts";
import { type ModelMemory, totalMemory } from "./memory.ts";
import type { FormatCount, ModelInfo } from "./model.ts";

/** Sizes of a model, as its file states them. */
export type ModelSizes =
  & Pick<
    ModelInfo,
    "vocabulary" | "layers" | "hidden" | "heads" | "kvHeads" | "headDim" | "feedForward"
  >
  & { readonly context: number };

/** Parts of a description. */
export interface DescribeInput {
  readonly file: WeightFile;
  readonly architecture: string;
  readonly network: Network;
  readonly params: ModelSizes;
  readonly limits: ResolvedLimits;
  readonly warnings: readonly string[];
  /** Matrices that are rounded to 7 bit while they are loaded. */
  readonly rounded: number;
  readonly parameters: number;
  /** Of a head that judges whole texts. */
  readonly labels?: number;
}

/** Facts about a model. */
export function describeModel(
  { file, architecture, network, params, limits, warnings, rounded, parameters, labels = 0 }:
    DescribeInput,
): ModelInfo {
  const tensors = [...file.tensors.values()];
  const { precision, kvFormat, contextLength } = limits;
  const { vocabulary, layers, hidden, heads, kvHeads, headDim, feedForward } = params;
  return {
    name: textAt(file, "general.name") ?? baseName(file.name),
    architecture,
    network,
    container: file.container ?? file.kind,
    license: textAt(file, "general.license"),
    parameters,
    tensors: countFormats(tensors),
    vocabulary,
    contextLength,
    trainedContextLength: params.context,
    ...{ layers, hidden, heads, kvHeads, headDim, feedForward },
    ...{ labels, precision, rounded, kvFormat, warnings },
  };
}

/** Numbers of a file; where plain bytes hold some, as many as the graph sees in them. */
export function countParameters(file: WeightFile, graph: Graph): number {
  const tensors = [...file.tensors.values()];
  const count = (some: readonly TensorInfo[]) =>
    some.reduce((sum, { shape }) => sum + shape.reduce((a, b) => a * b, 1), 0);
  const numbers = tensors.filter(({ format }) => formats.has(format));
  if (numbers.length === tensors.length) return count(tensors);
  const own = new Set(numbers.map(({ format }) => format));
  return count(numbers) + count(weightTensors(graph).filter(({ format }) => !own.has(format)));
}

/** Memory as planned: weights as in the file, nothing for programs and tables. */
export function plannedMemory(
  plan: Plan,
  { sessions, cacheTokens }: Pick<ResolvedLimits, "sessions" | "cacheTokens">,
): ModelMemory {
  const weights = weightTensors(plan.graph).reduce((sum, { byteLength }) => sum + byteLength, 0);
  const sessionCache = plan.graph.states.reduce(
    (sum, value) => sum + sizeOf(value, plan.limits).bytes,
    0,
  );
  const pages = pagesFor(plan, { slots: sessions, tokens: cacheTokens });
  const cache = stateBytes(plan.graph, { slots: sessions, pages }).values()
    .reduce((sum, bytes) => sum + bytes, 0);
  return totalMemory({
    ...{ weights, activations: plan.arenaBytes },
    ...{ sessionCache, cache, cacheTokens, sessions, other: 0 },
  });
}

/** Every tensor that a graph reads, once. */
export function weightTensors(graph: Graph): TensorInfo[] {
  const values = graph.nodes.flatMap(({ inputs }) => inputs);
  return [
    ...new Set(values.map((value) => value?.tensor).filter((tensor) => tensor !== undefined)),
  ];
}

function countFormats(tensors: readonly TensorInfo[]): FormatCount[] {
  const groups = Map.groupBy(tensors, ({ format }) => formats.get(format)?.name ?? format);
  return [...groups]
    .map(([format, members]) => ({
      format,
      tensors: members.length,
      bytes: members.reduce((sum, { byteLength }) => sum + byteLength, 0),
    }))
    .sort((a, b) => b.bytes - a.bytes);
}

function textAt(file: WeightFile, key: string): string | undefined {
  const value = file.metadata.get(key);
  return typeof value === "string" ? value : undefined;
}

function baseName(path: string): string {
  return path.split(/[/\\]/).filter((part) => part !== "").at(-1) ?? path;
}
