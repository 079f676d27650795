// What is measured of the GPU kernels: for each size the variants of its shader, the chosen one first. A case
// makes its dispatches when it is run, from the timer's memory.

import { CODE_LAYOUTS } from "../../gpu/code_layouts.ts";
import type { Capabilities, GpuSlice, Shader } from "../../gpu/kernel.ts";
import { ACTIVATIONS } from "../../gpu/kernels/activations.ts";
import { attentionMerge } from "../../gpu/kernels/attention_merge.ts";
import { causalRule, type SpanRule } from "../../gpu/kernels/attention_spans.ts";
import { type HeadShape, headTiles, partialVectors } from "../../gpu/kernels/attention_split.ts";
import {
  attentionTile,
  attentionTileBytes,
  attentionTileRows,
} from "../../gpu/kernels/attention_tile.ts";
import {
  ATTENTION_TUNING,
  type SplitChoice,
  splitChoice,
  tileSizes,
} from "../../gpu/kernels/attention_tuning.ts";
import { attentionWalk, walkBlock } from "../../gpu/kernels/attention_walk.ts";
import { gemmF32 } from "../../gpu/kernels/matmul_gemm_f32.ts";
import { gemmQ8 } from "../../gpu/kernels/matmul_gemm_q8.ts";
import { gemvF32 } from "../../gpu/kernels/matmul_gemv_f32.ts";
import { gemvQ8, gemvQ8Steps } from "../../gpu/kernels/matmul_gemv_q8.ts";
import { matmulReduce, REDUCE_RESULTS } from "../../gpu/kernels/matmul_reduce.ts";
import { workgroupOutputs } from "../../gpu/kernels/matmul_rows.ts";
import { tileOutputs, tileRows } from "../../gpu/kernels/matmul_tile.ts";
import { MATMUL_TUNING, type TeamChoice, teamsFor } from "../../gpu/kernels/matmul_tuning.ts";
import { gluQ8, QUANTIZE_QUADS } from "../../gpu/kernels/quantize_q8.ts";
import { rmsNormQ8 } from "../../gpu/kernels/rms_norm_q8.ts";
import { planeNames, quadReader } from "../../gpu/kernels/weight_reader.ts";
import { gpuLayoutOf } from "../../gpu/weight_layout.ts";
import { q8RowBytes } from "../../quant/q8_activation.ts";
import type { BenchDispatch, GpuTimer } from "./gpu_timer.ts";

/** One measurement. */
export interface BenchCase {
  readonly group: "gemv" | "gemm" | "attention" | "prefill" | "rows";
  /** Sizes. */
  readonly name: string;
  /** What is special about the shader; `chosen` is what the engine takes. */
  readonly variant: string;
  /** Bytes that are read at least, and operations, of one run. */
  readonly bytes?: number;
  readonly operations?: number;
  /** Runs that the dispatches are. */
  readonly runs: number;
  dispatches(timer: GpuTimer): readonly BenchDispatch[];
}

/** What to measure. */
export interface BenchChoice {
  readonly capabilities: Capabilities;
  readonly formats: readonly string[];
  /** All variants, not only the chosen ones. */
  readonly sweep: boolean;
  /** Small sizes, to try the bench on a software adapter. */
  readonly small: boolean;
}

/** Bytes over which weights rotate. */
const ROTATION = 256 * 2 ** 20;
/** Runs of the larger kernels in one timing. */
const RUNS = 4;

interface Planes {
  readonly bytes: number;
  take(timer: GpuTimer): Record<string, GpuSlice>;
}

function planesOf(format: string, columns: number, outputs: number): Planes {
  const layout = gpuLayoutOf(format, columns);
  const groups = Math.ceil(outputs / layout.rowGroup);
  const sizes = layout.planeBytes(columns).map((bytes) => bytes * groups);
  const names = planeNames(layout.id);
  return {
    bytes: sizes.reduce((sum, size) => sum + size, 0),
    take: (timer) => Object.fromEntries(names.map((name, i) => [name, timer.next(sizes[i]!)])),
  };
}

function rotations(bytes: number, small: boolean): number {
  return Math.max(4, Math.min(64, Math.ceil((small ? 2 ** 20 : ROTATION) / bytes)));
}

function isCodes(format: string): boolean {
  return format in CODE_LAYOUTS;
}

function rowBytes(format: string, columns: number): number {
  return isCodes(format) ? q8RowBytes(columns) : 4 * columns;
}

/** Products for few rows. */
export function gemvCases({ capabilities, formats, sweep, small }: BenchChoice): BenchCase[] {
  const sizes = small ? [[256, 64]] : [
    ...[[576, 576], [2048, 2048], [2048, 3072], [2048, 16384], [8192, 2048], [4096, 4096]],
    ...[[11008, 4096], [4096, 28672], [4096, 32000], [2048, 128256]],
  ];
  const hasSubgroups = capabilities.subgroupSize >= MATMUL_TUNING.fewestSubgroupLanes;
  return formats.flatMap((format) =>
    (sizes as [number, number][]).flatMap(([columns, outputs]) =>
      [1, 4].flatMap((rows) => {
        const style = hasSubgroups ? "subgroup" : "workgroup";
        const steps = isCodes(format)
          ? gemvQ8Steps(columns)
          : Math.ceil(columns / quadReader(gpuLayoutOf(format, columns).id).unitColumns);
        const chosen = teamsFor(capabilities, style, {
          ...{ arithmetic: isCodes(format) ? "q8" : "f32", steps, lines: outputs, rows },
        });
        const variants = [
          { ...chosen, variant: "chosen" },
          ...sweep ? teamVariants(capabilities.subgroupSize, rows) : [],
        ];
        return variants.map(({ variant, ...shape }) =>
          gemvCase({
            format,
            columns,
            outputs,
            rows,
            variant,
            shape,
            packedDot: capabilities.packedDot,
            small,
          })
        );
      })
    )
  );
}

function teamVariants(
  subgroupSize: number,
  rows: number,
): (TeamChoice & { readonly variant: string })[] {
  return [16, 32, 64, 128].flatMap((lanes) =>
    [1, 2, 4].flatMap((outputs) =>
      [1, 2].flatMap((unroll) =>
        [64, 128, 256].filter((workgroup) => workgroup >= lanes)
          .filter((workgroup) => rows === 1 || workgroup === 128)
          .map((workgroup) => ({
            ...{ lanes, outputs, unroll, workgroup, subgroupSize },
            variant: `lanes ${lanes} outputs ${outputs} unroll ${unroll} workgroup ${workgroup}`,
          }))
      )
    )
  );
}

function gemvCase({ format, columns, outputs, rows, variant, shape, packedDot, small }: {
  readonly format: string;
  readonly columns: number;
  readonly outputs: number;
  readonly rows: number;
  readonly variant: string;
  readonly shape: TeamChoice;
  readonly packedDot: boolean;
  readonly small: boolean;
}): BenchCase {
  const planes = planesOf(format, columns, outputs);
  const runs = rotations(planes.bytes, small);
  const params = {
    ...shape,
    layout: gpuLayoutOf(format, columns).id,
    columns,
    rows,
    bias: false,
    packedDot,
  };
  return {
    group: "gemv",
    name: `${format} ${columns}×${outputs}, ${rows} rows`,
    variant,
    bytes: planes.bytes,
    operations: 2 * rows * columns * outputs,
    runs,
    dispatches(timer) {
      const shader = isCodes(format) ? gemvQ8(params) : gemvF32(params);
      const x = timer.room(rows * rowBytes(format, columns));
      const y = timer.room(4 * rows * outputs);
      return Array.from({ length: runs }, () => ({
        shader,
        storage: { x, ...planes.take(timer), y },
        uniforms: { lines: outputs, first: 0, outputs, rows },
        workgroups: [Math.ceil(outputs / workgroupOutputs(params))],
      }));
    },
  };
}

/** Products for many rows. */
export function gemmCases({ capabilities, formats, sweep, small }: BenchChoice): BenchCase[] {
  const sizes = small
    ? [[256, 128]]
    : [[2048, 2048], [2048, 3072], [2048, 16384], [8192, 2048], [4096, 4096], [4096, 28672]];
  const rows = small ? 64 : 512;
  const tiles = [
    { ...MATMUL_TUNING.tile, stepGroups: 1, variant: "chosen" },
    ...sweep
      ? [[4, 4, 16, 16], [8, 4, 16, 16], [4, 8, 16, 16], [8, 8, 16, 16], [8, 8, 16, 8], [
        8,
        8,
        8,
        8,
      ], [
        4,
        4,
        16,
        8,
      ], [4, 8, 8, 16]].flatMap(([blockRows, blockOutputs, across, down]) =>
        [1, 2].map((stepGroups) => ({
          ...{ blockRows, blockOutputs, across, down, stepGroups },
          variant: `block ${blockRows}×${blockOutputs} by ${down}×${across} step ${stepGroups}`,
        }))
      )
      : [],
  ] as {
    blockRows: number;
    blockOutputs: number;
    across: number;
    down: number;
    stepGroups: number;
    variant: string;
  }[];
  return formats.flatMap((format) =>
    (sizes as [number, number][]).flatMap(([columns, outputs]) =>
      tiles.flatMap(({ variant, ...tile }) =>
        (sweep ? [1, 2, 4] : [1, 2]).filter((splits) => splits === 1 || outputs <= 4096)
          .filter(() => isCodes(format) || tile.stepGroups === 1)
          .map((splits) =>
            gemmCase({
              ...{ format, columns, outputs, rows, tile, splits },
              variant: `${variant}${splits > 1 ? `, ${splits} splits` : ""}`,
              packedDot: capabilities.packedDot,
            })
          )
      )
    )
  );
}

function gemmCase({ format, columns, outputs, rows, tile, splits, variant, packedDot }: {
  readonly format: string;
  readonly columns: number;
  readonly outputs: number;
  readonly rows: number;
  readonly tile: {
    readonly blockRows: number;
    readonly blockOutputs: number;
    readonly across: number;
    readonly down: number;
    readonly stepGroups: number;
  };
  readonly splits: number;
  readonly variant: string;
  readonly packedDot: boolean;
}): BenchCase {
  const planes = planesOf(format, columns, outputs);
  const split = splits > 1;
  const params = {
    ...tile,
    layout: gpuLayoutOf(format, columns).id,
    columns,
    split,
    bias: false,
    packedDot,
  };
  const results = rows * outputs;
  return {
    group: "gemm",
    name: `${format} ${rows}×${columns}×${outputs}`,
    variant,
    bytes: planes.bytes,
    operations: 2 * rows * columns * outputs,
    runs: RUNS,
    dispatches(timer) {
      const shader = isCodes(format) ? gemmQ8(params) : gemmF32(params);
      const x = timer.room(rows * rowBytes(format, columns));
      const y = timer.room(4 * results);
      const partial = split ? timer.room(4 * results * splits) : y;
      const reduce: BenchDispatch = {
        shader: matmulReduce({ bias: false }),
        storage: { partial, y },
        uniforms: { results, outputs, splits },
        workgroups: [Math.ceil(results / REDUCE_RESULTS)],
      };
      return Array.from({ length: RUNS }, (): BenchDispatch[] => [{
        shader,
        storage: { x, ...planes.take(timer), y: partial },
        uniforms: { lines: outputs, first: 0, outputs, rows, ...split && { splits } },
        workgroups: [
          Math.ceil(rows / tileRows(params)),
          Math.ceil(outputs / tileOutputs(params)),
          splits,
        ],
      }, ...split ? [reduce] : []]).flat();
    },
  };
}

const HEADS = [
  { model: "1B", heads: 32, kvHeads: 8, width: 64, valueWidth: 64, dtype: "f16" },
  { model: "8B", heads: 32, kvHeads: 8, width: 128, valueWidth: 128, dtype: "f16" },
  { model: "SmolLM2", heads: 9, kvHeads: 3, width: 64, valueWidth: 64, dtype: "f16" },
] as const;

const positionShader: Shader = {
  name: "positions",
  storage: { positions: "array<i32>", slots: "array<u32>" },
  writes: ["positions", "slots"],
  uniforms: { first: "u32" },
  code: `@compute @workgroup_size(1)
fn main(@builtin(workgroup_id) id: vec3<u32>) {
  positions[id.x] = i32(params.first + id.x);
  slots[id.x] = 0u;
}`,
};

function rowsAt(timer: GpuTimer, first: number, rows: number): {
  readonly storage: Record<"positions" | "slots", GpuSlice>;
  readonly set: BenchDispatch;
} {
  const storage = { positions: timer.room(4 * rows), slots: timer.room(4 * rows) };
  return {
    storage,
    set: { shader: positionShader, storage, uniforms: { first }, workgroups: [rows] },
  };
}

/** Attention of one row at some contexts. */
export function attentionCases({ capabilities, sweep, small }: BenchChoice): BenchCase[] {
  const { subgroupSize } = capabilities;
  const contexts = small ? [100] : [128, 1024, 4096, 32768];
  return HEADS.flatMap(({ model, ...shape }) =>
    contexts.flatMap((context) => {
      const name = `${model} heads, context ${context}`;
      const chosen = splitChoice(shape, "subgroup", capabilities, context) ??
        splitChoice(shape, "workgroup", capabilities, context)!;
      const variants = sweep
        ? [1, 2, 4].flatMap((tileHeads) =>
          [2, 4, 8].flatMap((turn) =>
            [16, 32, 64, 128].flatMap((splits) =>
              [64, 128, 256].map((workgroup) => {
                const sizes = { ...shape, tileHeads, turn, splits, workgroup, subgroupSize };
                return {
                  variant:
                    `heads ${tileHeads} turn ${turn} splits ${splits} workgroup ${workgroup}`,
                  choice: {
                    ...{ tileHeads, splits, block: walkBlock(sizes) },
                    shader: (rule: SpanRule) => attentionWalk({ ...sizes, rule }),
                  },
                };
              })
            )
          )
        )
        : [];
      return [
        ...[{ variant: "chosen", choice: chosen }, ...variants].map(({ variant, choice }) =>
          decodeCase({ name, variant, context, shape, choice })
        ),
        ...context > 8192
          ? []
          : [1, 2, 4].flatMap((tileHeads) =>
            [256, 512, 1024].filter((workgroup) => (workgroup === 512 && tileHeads === 2) || sweep)
              .map((workgroup) =>
                directCase({ name, context, shape, tileHeads, workgroup, subgroupSize })
              )
          ),
      ];
    })
  );
}

function decodeCase({ name, variant, context, shape, choice }: {
  readonly name: string;
  readonly variant: string;
  readonly context: number;
  readonly shape: HeadShape;
  readonly choice: SplitChoice;
}): BenchCase {
  const { heads, kvHeads, width, valueWidth } = shape;
  const { tileHeads, splits, block } = choice;
  const cacheBytes = 2 * context * kvHeads * width;
  const runs = 4 * RUNS;
  const rule = causalRule({
    capacity: context,
    scale: width ** -0.5,
    window: 0,
    softcap: 0,
    slopes: false,
  });
  return {
    group: "attention",
    name,
    variant,
    bytes: 2 * cacheBytes,
    runs,
    dispatches(timer) {
      const rows = rowsAt(timer, context - 1, 1);
      const partial = timer.room(16 * heads * splits * partialVectors(valueWidth));
      const q = timer.room(4 * heads * width);
      const y = timer.room(4 * heads * valueWidth);
      const shader = choice.shader(rule);
      const merge = attentionMerge({ ...shape, rule, block, splits, sinks: false });
      return [
        rows.set,
        ...Array.from({ length: runs }, (): BenchDispatch[] => [
          {
            shader,
            storage: {
              ...{ q, k: timer.next(cacheBytes), v: timer.next(cacheBytes), partial },
              ...rows.storage,
            },
            uniforms: {},
            workgroups: [headTiles({ ...shape, tileHeads }), splits, 1],
          },
          {
            shader: merge,
            storage: { partial, y, ...rows.storage },
            uniforms: {},
            workgroups: [heads, 1],
          },
        ]).flat(),
      ];
    },
  };
}

/** Attention in one dispatch. */
function directCase({ name, context, shape, tileHeads, workgroup, subgroupSize }: {
  readonly name: string;
  readonly context: number;
  readonly shape: HeadShape;
  readonly tileHeads: number;
  readonly workgroup: number;
  readonly subgroupSize: number;
}): BenchCase {
  const { heads, kvHeads, width, valueWidth } = shape;
  const cacheBytes = 2 * context * kvHeads * width;
  const runs = 4 * RUNS;
  const rule = causalRule({
    capacity: context,
    scale: width ** -0.5,
    window: 0,
    softcap: 0,
    slopes: false,
  });
  const direct = { sinks: false, quantize: false };
  const size = { tileHeads, turn: ATTENTION_TUNING.walkTurn, splits: 1, workgroup, subgroupSize };
  return {
    group: "attention",
    name,
    variant: `direct heads ${tileHeads} workgroup ${workgroup}`,
    bytes: 2 * cacheBytes,
    runs,
    dispatches(timer) {
      const rows = rowsAt(timer, context - 1, 1);
      const q = timer.room(4 * heads * width);
      const y = timer.room(4 * heads * valueWidth);
      const shader = attentionWalk({ ...shape, ...size, rule, direct });
      return [
        rows.set,
        ...Array.from({ length: runs }, (): BenchDispatch => ({
          shader,
          storage: { q, k: timer.next(cacheBytes), v: timer.next(cacheBytes), y, ...rows.storage },
          uniforms: {},
          workgroups: [headTiles({ ...shape, tileHeads }), 1, 1],
        })),
      ];
    },
  };
}

/** Attention of a prompt's chunk of 512. */
export function prefillCases({ capabilities, sweep, small }: BenchChoice): BenchCase[] {
  const { maxWorkgroupBytes } = capabilities;
  const rows = small ? 32 : 512;
  return HEADS.flatMap(({ model, ...shape }) => {
    const chosen = tileSizes(shape, maxWorkgroupBytes)!;
    const variants = [
      { ...chosen, variant: "chosen" },
      ...sweep
        ? [16, 32, 64].flatMap((queries) =>
          [16, 32, 64].map((block) => ({
            ...{ ...chosen, queries, block },
            variant: `queries ${queries} block ${block}`,
          }))
        ).filter((size) => attentionTileBytes({ ...shape, ...size }) <= maxWorkgroupBytes)
        : [],
    ];
    const { heads, kvHeads, width, valueWidth } = shape;
    const rule = causalRule({
      capacity: rows,
      scale: width ** -0.5,
      window: 0,
      softcap: 0,
      slopes: false,
    });
    return variants.map(({ variant, ...size }): BenchCase => ({
      group: "prefill",
      name: `${model} heads, ${rows} rows`,
      variant,
      operations: 2 * heads * (rows * rows / 2) * (width + valueWidth),
      runs: RUNS,
      dispatches(timer) {
        const at = rowsAt(timer, 0, rows);
        const cacheBytes = 2 * rows * kvHeads * width;
        const params = { ...shape, ...size, rule, sinks: false };
        const dispatch: BenchDispatch = {
          shader: attentionTile(params),
          storage: {
            q: timer.room(4 * rows * heads * width),
            k: timer.next(cacheBytes),
            v: timer.next(cacheBytes),
            y: timer.room(4 * rows * heads * valueWidth),
            ...at.storage,
          },
          uniforms: { rows },
          workgroups: [Math.ceil(rows / attentionTileRows(params)), headTiles(params)],
        };
        return [at.set, ...Array.from({ length: RUNS }, () => dispatch)];
      },
    }));
  });
}

/** Kernels between the products. */
export function rowCases({ capabilities, small }: BenchChoice): BenchCase[] {
  const rows = small ? [1] : [1, 512];
  const subgroupSize = capabilities.subgroupSize >= 8 ? capabilities.subgroupSize : 0;
  const subgroups = subgroupSize > 0;
  return rows.flatMap((count): BenchCase[] => [
    ...[576, 2048, 4096].flatMap((columns) =>
      [64, 128, 256, 512].map((workgroup): BenchCase => ({
        group: "rows",
        name: `rms_norm_q8 ${count}×${columns}`,
        variant: `workgroup ${workgroup}`,
        bytes: 4 * count * columns,
        runs: 32,
        dispatches(timer) {
          const shader = rmsNormQ8({
            ...{ columns, weight: true, epsilon: 1e-5, base: 0, workgroup, subgroupSize },
          });
          const storage = {
            x: timer.room(4 * count * columns),
            y: timer.room(count * q8RowBytes(columns)),
            gain: timer.room(4 * columns),
          };
          return Array.from({ length: 32 }, () => ({
            shader,
            storage,
            uniforms: { rows: count },
            workgroups: [count],
          }));
        },
      }))
    ),
    ...[1536, 8192, 14336].map((columns): BenchCase => ({
      group: "rows",
      name: `glu_q8 ${count}×${columns}`,
      variant: "chosen",
      bytes: 8 * count * columns,
      runs: 32,
      dispatches(timer) {
        const quads = count * columns / 4;
        const storage = {
          gate: timer.room(4 * count * columns),
          up: timer.room(4 * count * columns),
          y: timer.room(count * q8RowBytes(columns)),
        };
        return Array.from({ length: 32 }, () => ({
          shader: gluQ8({ columns, subgroups }, ACTIVATIONS.silu!),
          storage,
          uniforms: { quads },
          workgroups: [Math.ceil(quads / QUANTIZE_QUADS)],
        }));
      },
    })),
  ]);
}
