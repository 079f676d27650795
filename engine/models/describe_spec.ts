// The blocks that a model is built of, in words: what its spec says after the cases that hold for its file.

import type { WeightFile } from "../formats/source.ts";
import { readModelParts } from "./build.ts";
import type { Hyperparameters } from "./hparams.ts";
import { layerKinds } from "./layer_kinds.ts";
import { factorOf } from "./sizes.ts";
import type { ModelSpec } from "./spec.ts";
import { chooseSpec } from "./specs/mod.ts";

/** Names and descriptions of a model's blocks, in the order of computation. */
function describeSpec(spec: ModelSpec, params: Hyperparameters): [string, string][] {
  const { embedding, head = {} } = spec;
  return [
    ["spec", spec.name],
    ...spec.network ? [["network", spec.network] as [string, string]] : [],
    [
      "embedding",
      listed([
        times(factorOf(embedding.scale, { params, place: "embedding.scale" })),
        embedding.projection && params.embeddingDim !== params.hidden &&
        `projected from ${params.embeddingDim} to ${params.hidden}`,
        embedding.positions && "plus learnt positions",
        embedding.sinusoidal && "plus sines of positions",
        embedding.types && "plus token types",
        embedding.patches &&
        ["patches", ...embedding.patches.leading ?? []].join(" and "),
        embedding.patches?.positions && "plus learnt places",
        embedding.norm && "normed",
      ]),
    ],
    ["norm", `${spec.norm.kind}, epsilon ${params.normEpsilon}`],
    ...spec.encoder
      ? [["encoder", stream(spec.encoder.layer, spec, params)] as [string, string]]
      : [],
    ...layers(spec, params),
    ["attention", attention(spec, params)],
    ["feed-forward", feedForward(spec, params)],
    [
      "head",
      listed([
        spec.outputNorm && `norm of ${spec.outputNorm === "rows" ? "all rows" : "the pooled row"}`,
        spec.pool && `pooled (${spec.pool.rows})`,
        head.norm === false && "no norm",
        head.transform && `${head.transform.norm}(activation(dense x)) first`,
        head.unitRows && "rows of length 1",
        times(factorOf(head.scale, { params, place: "head.scale" })),
        params.logitCap !== undefined && `capped at ${params.logitCap}`,
      ]),
    ],
  ];
}

function listed(parts: readonly (string | false | undefined)[]): string {
  return parts.filter((part) => part).join(", ") || "plain";
}

function times(value: number): string | false {
  return value !== 1 && `times ${Number(value.toPrecision(6))}`;
}

function stream(layer: ModelSpec["layer"], spec: ModelSpec, params: Hyperparameters): string {
  return layer.map(({ block, before, after, scale: learnt, sum, from }) => {
    const inner = before === undefined ? "x" : `${before}(${from === "layer" ? "x₀" : "x"})`;
    const given = after === undefined ? `${block}(${inner})` : `${after}(${block}(${inner}))`;
    const branch = learnt === undefined ? given : `${learnt} · ${given}`;
    const scale = factorOf(spec.residual, { params, place: "residual" });
    const added = scale === 1 ? branch : `${Number(scale.toPrecision(6))} · ${branch}`;
    return sum === undefined ? `x += ${added}` : `x = ${sum}(x + ${added})`;
  }).join("; ");
}

function layers(spec: ModelSpec, params: Hyperparameters): [string, string][] {
  const groups = Map.groupBy(
    layerKinds(spec, { params, file: spec.name }).map((kind, layer) => ({ kind, layer })),
    ({ kind }) => kind,
  );
  return [
    ["layer", stream(spec.layer, spec, params)],
    ...[...groups].map(([kind, members]): [string, string] => {
      const { theta, window, alibi } = spec.attention.kinds[kind]!;
      const values = params as unknown as Readonly<Record<string, unknown>>;
      const seen = window && Number(values[window]) > 0 ? `window ${values[window]}` : "sees all";
      const place = theta
        ? `rotated, base ${values[theta]}`
        : alibi
        ? "linear bias"
        : "no rotation";
      return [
        `  ${kind}`,
        `${seen}, ${place}: layers ${ranges(members.map(({ layer }) => layer))}`,
      ];
    }),
  ];
}

/** 0-4, 6, 8-11 */
function ranges(numbers: readonly number[]): string {
  const runs: [number, number][] = [];
  for (const number of numbers) {
    const last = runs.at(-1);
    if (last && last[1] === number - 1) last[1] = number;
    else runs.push([number, number]);
  }
  return runs.map(([from, to]) => from === to ? `${from}` : `${from}-${to}`).join(", ");
}

function attention({ attention: spec }: ModelSpec, params: Hyperparameters): string {
  const { heads, kvHeads, headDim, valueDim, ropeDim, keyRank } = params;
  return listed([
    spec.kind === "latent"
      ? `latent of ${keyRank}, ${heads} heads`
      : `${heads} heads of ${headDim} over ${kvHeads}`,
    spec.kind !== "latent" && valueDim !== headDim && `values of ${valueDim}`,
    Object.values(spec.kinds).some(({ theta }) => theta) &&
    `rotary ${spec.ropeStyle}${ropeDim < headDim ? ` on ${ropeDim}` : ""}`,
    spec.headNorm && `query and key normed (${spec.headNorm})`,
    spec.bias !== "none" && `bias ${spec.bias}`,
    spec.sinks && "sinks",
    spec.relativeBias && "summands by distance",
    params.scoreCap !== undefined && `scores capped at ${params.scoreCap}`,
  ]);
}

function feedForward({ feedForward: spec }: ModelSpec, params: Hyperparameters): string {
  const { experts, expertsUsed, denseLayers } = params;
  return listed([
    spec.kind,
    spec.clamped ? "clamped" : spec.activation ?? params.activation,
    spec.kind === "mixture" && `${expertsUsed} of ${experts} experts by ${spec.router?.score}`,
    spec.kind === "mixture" && params.expertNormalize && "weights normalised",
    spec.shared && (spec.shared.gated ? "gated shared expert" : "shared expert"),
    spec.kind === "mixture" && (denseLayers ?? 0) > 0 && `first ${denseLayers} layers dense`,
    spec.bias !== "none" && `bias ${spec.bias}`,
  ]);
}

/**
 * The blocks of a model file, from its header alone.
 *
 * @throws {FormatError | UnsupportedError} If the file's model cannot be built.
 */
export function describeFile(file: WeightFile, given?: unknown): [string, string][] {
  const { resolved, architecture } = chooseSpec(file, given);
  const parts = readModelParts(resolved, { stored: file, architecture });
  return describeSpec(parts.resolved.spec, parts.params);
}
