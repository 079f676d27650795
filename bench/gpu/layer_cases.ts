// A layer's dispatches in turn, as in decoding one token: what changing shaders and waiting for each other cost
// shows only here. Variants take other sizes of teams and walks.

import { activationFunction } from "../../gpu/kernels/element_functions.ts";
import { rowsRule } from "../../gpu/kernels/attention/spans.ts";
import { headTiles } from "../../gpu/kernels/attention/heads.ts";
import { attentionWalk } from "../../gpu/kernels/attention/walk.ts";
import { gemvQ8, gemvQ8Steps } from "../../gpu/kernels/matmul/gemv_q8.ts";
import { gluWorkgroups, matmulGluQ8 } from "../../gpu/kernels/matmul/glu_q8.ts";
import { workgroupOutputs } from "../../gpu/kernels/matmul/rows.ts";
import { type TeamChoice, teamsFor } from "../../gpu/kernels/matmul/tuning.ts";
import { normMatmulQ8 } from "../../gpu/kernels/matmul/norm_matmul_q8.ts";
import { rmsNormQ8 } from "../../gpu/kernels/rms_norm_q8.ts";
import { gpuLayoutOf } from "../../gpu/weight_layout.ts";
import { q8RowBytes } from "../../quant/q8_activation.ts";
import { pagesOf, rowsAt } from "./attention_cases.ts";
import type { BenchCase, BenchChoice } from "./case.ts";
import { planesOf } from "./cases.ts";
import type { BenchDispatch, GpuTimer } from "./timer.ts";

interface LayerShape {
  readonly model: string;
  readonly hidden: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly feedForward: number;
}

const HEAD = 64;
const CONTEXT = 128;
const OWN_ROW = { first: CONTEXT - 1, rows: 1 };
const LAYERS = 8;
const MODELS: readonly LayerShape[] = [
  { model: "SmolLM2", hidden: 576, heads: 9, kvHeads: 3, feedForward: 1536 },
  { model: "1B", hidden: 2048, heads: 32, kvHeads: 8, feedForward: 8192 },
];

interface Sizes {
  readonly variant: string;
  /** Whether norms are in the prologue of products. */
  readonly norm: boolean;
  readonly gluLanes: number;
  readonly turn: number;
  readonly tileHeads: number;
  readonly walkWorkgroup: number;
  /** Changes to the teams of products. */
  readonly team: Partial<TeamChoice>;
}

const CHOSEN: Sizes = {
  variant: "chosen",
  ...{ norm: true, gluLanes: 16, turn: 2, tileHeads: 1, walkWorkgroup: 256, team: {} },
};

const VARIANTS: readonly Sizes[] = [
  CHOSEN,
  { ...CHOSEN, variant: "norms apart", norm: false },
  { ...CHOSEN, variant: "one output a team", team: { outputs: 1 } },
  { ...CHOSEN, variant: "one output, no unrolling", team: { outputs: 1, unroll: 1 } },
  { ...CHOSEN, variant: "one output, workgroups of 128", team: { outputs: 1, workgroup: 128 } },
  { ...CHOSEN, variant: "workgroups of 128", team: { workgroup: 128 } },
  { ...CHOSEN, variant: "glu lanes 8", gluLanes: 8 },
  { ...CHOSEN, variant: "turn 4, two heads", turn: 4, tileHeads: 2 },
  { ...CHOSEN, variant: "turn 1", turn: 1 },
  { ...CHOSEN, variant: "walk of 512", walkWorkgroup: 512 },
];

/** Layers of one token. */
export function layerCases({ capabilities, small, formats: [format] }: BenchChoice): BenchCase[] {
  const { subgroupSize, packedDot } = capabilities;
  if (subgroupSize < 8) return [];
  const variants = small ? [CHOSEN] : VARIANTS;
  return MODELS.flatMap((shape) =>
    variants.map((sizes): BenchCase => ({
      group: "layer",
      name: `${shape.model} layer`,
      variant: sizes.variant,
      runs: LAYERS,
      dispatches: (timer) =>
        Array.from(
          { length: LAYERS },
          (_, index) =>
            layer(timer, shape, {
              ...{ ...sizes, ...small && { gluLanes: 8, walkWorkgroup: 64 } },
              isFirst: index === 0,
            }),
        ).flat(),
    }))
  );

  function layer(
    timer: GpuTimer,
    shape: LayerShape,
    sizes: Sizes & { readonly isFirst: boolean },
  ): BenchDispatch[] {
    const { hidden, heads, kvHeads, feedForward } = shape;
    const qkv = (heads + 2 * kvHeads) * HEAD;
    timer.reset();
    const x = timer.room(4 * hidden), gain = timer.room(4 * hidden);
    const wide = timer.room(4 * qkv), row = timer.room(q8RowBytes(hidden));
    const gated = timer.room(q8RowBytes(feedForward));
    const norm = { weight: true, epsilon: 1e-5, base: 0, subgroupSize };
    const apart: BenchDispatch[] = sizes.norm ? [] : [{
      shader: rmsNormQ8({ ...norm, columns: hidden, workgroup: 256 }),
      storage: { x, y: row, gain },
      uniforms: { rows: 1 },
      workgroups: [1],
    }];
    const product = (
      columns: number,
      outputs: number,
      input: typeof x,
      y: typeof x,
      first = false,
    ) => {
      const planes = planesOf(format!, columns, outputs);
      const isNormed = first && sizes.norm;
      const params = {
        ...teamsFor(capabilities, "subgroup", {
          ...{ kind: "q8", steps: gemvQ8Steps(columns), lines: outputs, rows: 1 } as const,
        }),
        ...sizes.team,
        ...{ layout: gpuLayoutOf(format!, columns).id, columns, rows: 1, bias: false, packedDot },
      };
      return {
        shader: isNormed ? normMatmulQ8({ ...params, norm }) : gemvQ8(params),
        storage: {
          x: first ? (isNormed ? x : row) : input,
          ...planes.take(timer),
          y,
          ...isNormed && { gain },
        },
        uniforms: { lines: outputs, first: 0, outputs, rows: 1 },
        workgroups: [Math.ceil(outputs / workgroupOutputs(params))],
      };
    };
    const rule = rowsRule({
      positions: true,
      pages: pagesOf(OWN_ROW),
      scale: 0.125,
      window: 0,
      softcap: 0,
      slopes: false,
      leavesOwnKey: true,
    });
    const walk = {
      ...{
        heads,
        kvHeads,
        width: HEAD,
        valueWidth: HEAD,
        dtype: "f16" as const,
        rule,
        subgroupSize,
      },
      ...{ tileHeads: Math.min(sizes.tileHeads, heads / kvHeads), turn: sizes.turn, splits: 1 },
      ...{ workgroup: sizes.walkWorkgroup, direct: { sinks: false, quantize: true } },
      fresh: {
        ...{ pairs: HEAD / 2, interleaved: false, epsilon: 0, base: 0 },
        ...{ hasQueryNorm: false, hasKeyNorm: false, isApart: false },
      },
    };
    const cacheBytes = 2 * CONTEXT * kvHeads * HEAD;
    const table = timer.room(4 * HEAD);
    const { storage: at, set } = rowsAt(timer, OWN_ROW);
    const glu = {
      ...{ layout: gpuLayoutOf(format!, hidden).id, columns: hidden, results: feedForward },
      ...{
        lanes: sizes.gluLanes,
        unroll: 2,
        bias: false,
        packedDot,
        activation: activationFunction("silu"),
      },
      ...sizes.norm && { norm },
    };
    return [
      ...sizes.isFirst ? [set] : [],
      ...apart,
      product(hidden, qkv, row, wide, true),
      {
        shader: attentionWalk(walk),
        storage: {
          ...{ qkv: wide, table, k: timer.room(cacheBytes), v: timer.room(cacheBytes), y: row },
          ...at,
        },
        uniforms: {},
        workgroups: [headTiles(walk), 1, 1],
      },
      product(heads * HEAD, hidden, row, x),
      ...apart,
      {
        shader: matmulGluQ8(glu),
        storage: {
          x: sizes.norm ? x : row,
          ...planesOf(format!, hidden, 2 * feedForward).take(timer),
          y: gated,
          ...sizes.norm && { gain },
        },
        uniforms: {},
        workgroups: [gluWorkgroups({ results: feedForward })],
      },
      product(feedForward, hidden, gated, x),
    ];
  }
}
