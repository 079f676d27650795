// Attention of the GPU bench: one row at some contexts, and a prompt's chunk, at the heads of known models.

import type { GpuSlice, Shader } from "../../gpu/kernel.ts";
import { attentionMerge } from "../../gpu/kernels/attention/merge.ts";
import type { PageTable } from "../../gpu/kernels/cache_pages.ts";
import { rowsRule, type SpanRule } from "../../gpu/kernels/attention/spans.ts";
import { type HeadShape, headTiles } from "../../gpu/kernels/attention/heads.ts";
import { partialVectors } from "../../gpu/kernels/attention/split.ts";
import {
  attentionTeams,
  attentionTeamsBytes,
  attentionTeamsRows,
} from "../../gpu/kernels/attention/teams.ts";
import {
  ATTENTION_TUNING,
  type ManyChoice,
  manyChoice,
  type SplitChoice,
  splitChoice,
  type SplitStyle,
} from "../../gpu/kernels/attention/tuning.ts";
import { attentionWalk, walkBlock } from "../../gpu/kernels/attention/walk.ts";
import { type BenchCase, type BenchChoice, RUNS } from "./case.ts";
import type { BenchDispatch, GpuTimer } from "./timer.ts";

const HEADS = [
  { model: "1B", heads: 32, kvHeads: 8, width: 64, valueWidth: 64, dtype: "f16" },
  { model: "8B", heads: 32, kvHeads: 8, width: 128, valueWidth: 128, dtype: "f16" },
  { model: "SmolLM2", heads: 9, kvHeads: 3, width: 64, valueWidth: 64, dtype: "f16" },
] as const;

/** Sets positions from `first` on, in each of so many slots, and the table of their pages behind the slots. */
const positionShader: Shader = {
  name: "positions",
  storage: { positions: "array<i32>", slots: "array<u32>" },
  writes: ["positions", "slots"],
  uniforms: { first: "u32", rows: "u32", each: "u32", pages: "u32" },
  code: `@compute @workgroup_size(1)
fn main(@builtin(workgroup_id) id: vec3<u32>) {
  if (id.x < params.rows) {
    positions[id.x] = i32(params.first + id.x % params.each);
    slots[id.x] = id.x / params.each;
  }
  if (id.x < params.pages) { slots[params.rows + id.x] = id.x; }
}`,
};

/** Rows of a page, as in engine/run/pages/groups.ts. */
const PAGE_ROWS = 64;

/** Rows from a position on, and the pages of their caches, one behind the other. */
export interface BenchRows {
  readonly first: number;
  readonly rows: number;
  /** Slots that have as many of them each; default 1. */
  readonly sessions?: number;
}

/** Where kernels find the pages of caches that end with such rows. */
export function pagesOf({ first, rows, sessions = 1 }: BenchRows): PageTable {
  const perSlot = Math.ceil((first + rows / sessions) / PAGE_ROWS);
  return { first: rows, perSlot, rows: PAGE_ROWS };
}

/** Memory for rows, and what fills it. */
export function rowsAt(timer: GpuTimer, at: BenchRows): {
  readonly storage: Record<"positions" | "slots", GpuSlice>;
  readonly set: BenchDispatch;
} {
  const { first, rows, sessions = 1 } = at, pages = sessions * pagesOf(at).perSlot;
  const storage = { positions: timer.room(4 * rows), slots: timer.room(4 * (rows + pages)) };
  return {
    storage,
    set: {
      ...{
        shader: positionShader,
        storage,
        uniforms: { first, rows, each: rows / sessions, pages },
      },
      workgroups: [Math.max(rows, pages)],
    },
  };
}

/** Attention of one row at some contexts. */
export function attentionCases({ capabilities, sweep, small }: BenchChoice): BenchCase[] {
  const { subgroupSize } = capabilities;
  const contexts = small ? [100] : [128, 1024, 4096, 32768];
  return HEADS.flatMap(({ model, ...shape }) =>
    contexts.flatMap((context) => {
      const name = `${model} heads, context ${context}`;
      const chosen = splitChoice(shape, { style: "subgroup", capabilities, keys: context }) ??
        splitChoice(shape, { style: "workgroup", capabilities, keys: context })!;
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
                    ...{ tileHeads, splits, block: walkBlock(sizes), run: turn },
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
  const { tileHeads, splits, block, run } = choice;
  const at = { first: context - 1, rows: 1 }, pages = pagesOf(at);
  const cacheBytes = 2 * pages.perSlot * pages.rows * kvHeads * width;
  const runs = 4 * RUNS;
  const rule = rowsRule({
    positions: true,
    pages,
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
      const rows = rowsAt(timer, at);
      const partial = timer.room(16 * heads * splits * partialVectors(valueWidth));
      const q = timer.room(4 * heads * width);
      const y = timer.room(4 * heads * valueWidth);
      const shader = choice.shader(rule);
      const merge = attentionMerge({ ...shape, rule, block, run, splits, sinks: false });
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
  const at = { first: context - 1, rows: 1 }, pages = pagesOf(at);
  const cacheBytes = 2 * pages.perSlot * pages.rows * kvHeads * width;
  const runs = 4 * RUNS;
  const rule = rowsRule({
    positions: true,
    pages,
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
      const rows = rowsAt(timer, at);
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

/** Attention of a prompt's chunk of 512, at its beginning and behind 1,536 others. */
export function prefillCases({ capabilities, sweep, small }: BenchChoice): BenchCase[] {
  const rows = small ? 32 : 512;
  return HEADS.flatMap(({ model, ...shape }) => {
    const variants = [
      { variant: "chosen", ...prefillChoice(shape, { style: "subgroup", capabilities }) },
      { variant: "tiles", ...prefillChoice(shape, { style: "workgroup", capabilities }) },
      ...sweep ? teamVariants(shape, capabilities) : [],
    ];
    const { heads, kvHeads, width, valueWidth } = shape;
    const at = (first: number) => ({ first, rows });
    const ruleOf = (first: number) =>
      rowsRule({
        positions: true,
        pages: pagesOf(at(first)),
        scale: width ** -0.5,
        window: 0,
        softcap: 0,
        slopes: false,
      });
    return [0, small ? 32 : 1536].flatMap((first) =>
      variants.map(({ variant, tileHeads, rows: tileRows, shader }): BenchCase => ({
        group: "prefill",
        name: `${model} heads, ${rows} rows behind ${first}`,
        variant,
        operations: 2 * heads * rows * (first + rows / 2) * (width + valueWidth),
        runs: RUNS,
        dispatches(timer) {
          const placed = rowsAt(timer, at(first));
          const cacheBytes = 2 * PAGE_ROWS * Math.ceil((first + rows) / PAGE_ROWS) * kvHeads *
            width;
          const dispatch: BenchDispatch = {
            shader: shader(ruleOf(first), { sinks: false, quantize: false }),
            storage: {
              q: timer.room(4 * rows * heads * width),
              k: timer.next(cacheBytes),
              v: timer.next(cacheBytes),
              y: timer.room(4 * rows * heads * valueWidth),
              ...placed.storage,
            },
            uniforms: { rows },
            workgroups: [Math.ceil(rows / tileRows), headTiles({ ...shape, tileHeads })],
          };
          return [placed.set, ...Array.from({ length: RUNS }, () => dispatch)];
        },
      }))
    );
  });
}

function prefillChoice(
  shape: HeadShape,
  { style, capabilities }: Pick<BenchChoice, "capabilities"> & { readonly style: SplitStyle },
): ManyChoice {
  return manyChoice(shape, { style, capabilities, isMasked: false })!;
}

/** Teams of other sizes than the chosen ones. */
function teamVariants(
  shape: HeadShape,
  { subgroupSize, maxWorkgroupBytes }: BenchChoice["capabilities"],
): (ManyChoice & { readonly variant: string })[] {
  const tileHeads = shape.heads / shape.kvHeads;
  return [4, 8].flatMap((lanes) =>
    [2, 4, 8].filter((each) => each <= lanes).flatMap((each) =>
      [64, 128].flatMap((invocations) =>
        [4, 8].flatMap((turn) =>
          [16, 32].map((block) => ({ lanes, each, invocations, turn, block, tileHeads }))
        )
      )
    )
  ).filter((size) => attentionTeamsBytes({ ...shape, ...size }) <= maxWorkgroupBytes)
    .map((size) => ({
      variant: Object.entries(size).map(([name, value]) => `${name} ${value}`).join(" "),
      ...{ tileHeads, rows: attentionTeamsRows(size) },
      shader: (rule, result) =>
        attentionTeams({ ...shape, ...size, subgroupSize, rule, ...result }),
    }));
}
