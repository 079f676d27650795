// Layouts of caches, measured against each other: rows of all heads one behind the other (position-major), heads of all
// rows (head-major), each in pages of 64 rows and in one piece, and those of the paper on mobile GPUs (MD-13): keys
// head-major, and values with the rows of a channel one behind the other. A row alone, a row of each of eight sessions, and the
// last rows of a prompt. All but the last layout are read by the product's kernels; for that there are plain ones here, for
// scores, their softmax and the sums, since fused ones take values by rows.

import type { GpuSlice, Shader } from "../../gpu/kernel.ts";
import { type HeadShape, headTiles } from "../../gpu/kernels/attention/heads.ts";
import { attentionMerge } from "../../gpu/kernels/attention/merge.ts";
import { type HeadLayout, rowsRule, type SpanRule } from "../../gpu/kernels/attention/spans.ts";
import { partialVectors } from "../../gpu/kernels/attention/split.ts";
import { manyChoice, splitChoice } from "../../gpu/kernels/attention/tuning.ts";
import type { PageTable } from "../../gpu/kernels/cache_pages.ts";
import { wgsl } from "../../gpu/wgsl.ts";
import { type BenchRows, pagesOf, rowsAt } from "./attention_cases.ts";
import { type BenchCase, type BenchChoice, RUNS } from "./case.ts";
import type { BenchDispatch, GpuTimer } from "./timer.ts";

const SHAPES = [
  { model: "1B", heads: 32, kvHeads: 8, width: 64, valueWidth: 64, dtype: "f16" },
  { model: "8B", heads: 32, kvHeads: 8, width: 128, valueWidth: 128, dtype: "f16" },
] as const;

const CONTEXTS = [512, 4096, 16384];
const ROWS = [
  { what: "1 row", rows: 1, sessions: 1 },
  { what: "8 sessions", rows: 8, sessions: 8 },
  { what: "128 rows of a prompt", rows: 128, sessions: 1 },
];

/** What is measured: rows that end a context of so many positions, a power of 2. */
interface Setting {
  readonly shape: HeadShape;
  readonly context: number;
  readonly at: BenchRows;
  readonly capabilities: BenchChoice["capabilities"];
}

/** All layouts at all sizes. */
export function layoutCases({ capabilities, small }: BenchChoice): BenchCase[] {
  return SHAPES.flatMap(({ model, ...shape }) =>
    (small ? [128] : CONTEXTS).flatMap((context) =>
      ROWS.flatMap(({ what, rows, sessions }) => {
        const first = context - rows / sessions;
        const setting = { shape, context, capabilities, at: { first, rows, sessions } };
        const name = `${model} heads, context ${context}, ${what}`;
        const caches = 2 * sessions * context * shape.kvHeads * shape.width * 2;
        const common = { group: "layouts", name, bytes: caches, runs: RUNS } as const;
        return [
          ...Object.entries(layoutsOf(setting)).map(([variant, rule]): BenchCase => ({
            ...{ ...common, variant },
            dispatches: (timer) => attended(timer, setting, rule),
          })),
          { ...common, variant: "MD-13", dispatches: (timer) => apart(timer, setting) },
        ];
      })
    )
  );
}

function layoutsOf(
  { shape: { heads, kvHeads, width }, context, at }: Setting,
): Record<string, SpanRule> {
  const whole = { first: at.rows, perSlot: 1, rows: context }, paged = pagesOf(at);
  const rule = (pages: PageTable) => rowsRule({ positions: true, pages, scale: width ** -0.5 });
  const joined: HeadLayout["query"] = (row, head) => `${row} * ${heads}u + ${head}`;
  const byHead = (pages: PageTable): SpanRule => {
    const key: HeadLayout["key"] = (page, place, head) =>
      `${page} * ${kvHeads}u + ${head} * ${pages.rows}u + ${place}`;
    return { ...rule(pages), layout: { query: joined, result: joined, key, value: key } };
  };
  return {
    "position-major, pages": rule(paged),
    "position-major": rule(whole),
    "head-major, pages": byHead(paged),
    "head-major": byHead(whole),
  };
}

/** Memory of caches, queries and results. */
function memoryOf(timer: GpuTimer, { shape, context, at }: Setting) {
  const { heads, kvHeads, width } = shape, { rows, sessions = 1 } = at;
  const cache = () => timer.next(2 * sessions * context * kvHeads * width);
  return {
    cache,
    q: timer.room(4 * rows * heads * width),
    y: timer.room(4 * rows * heads * width),
  };
}

/** Runs of the product's kernels. */
function attended(timer: GpuTimer, setting: Setting, rule: SpanRule): BenchDispatch[] {
  const { shape, at, context, capabilities } = setting, { rows } = at;
  const { cache, q, y } = memoryOf(timer, setting), { set, storage } = rowsAt(timer, at);
  const runs = (make: () => BenchDispatch[]) => [set, ...Array.from({ length: RUNS }, make).flat()];
  if (rows > 8) {
    const { tileHeads, rows: tileRows, shader } = manyChoice(shape, {
      ...{ style: "subgroup", capabilities, isMasked: false },
    })!;
    return runs(() => [{
      shader: shader(rule, { sinks: false, quantize: false }),
      ...{ storage: { q, k: cache(), v: cache(), y, ...storage }, uniforms: { rows } },
      workgroups: [Math.ceil(rows / tileRows), headTiles({ ...shape, tileHeads })],
    }]);
  }
  const choice = splitChoice(shape, { style: "subgroup", capabilities, keys: context }) ??
    splitChoice(shape, { style: "workgroup", capabilities, keys: context })!;
  const { tileHeads, splits, block, run } = choice;
  const partial = timer.room(16 * rows * shape.heads * splits * partialVectors(shape.valueWidth));
  return runs(() => [
    {
      ...{ shader: choice.shader(rule), uniforms: {} },
      storage: { q, k: cache(), v: cache(), partial, ...storage },
      workgroups: [headTiles({ ...shape, tileHeads }), splits, rows],
    },
    {
      shader: attentionMerge({ ...shape, rule, block, run, splits, sinks: false }),
      ...{ storage: { partial, y, ...storage }, uniforms: {}, workgroups: [shape.heads, rows] },
    },
  ]);
}

/** Runs of plain kernels on MD-13's layout. */
function apart(timer: GpuTimer, setting: Setting): BenchDispatch[] {
  const { shape: { heads, kvHeads, width }, context, at } = setting, { rows } = at;
  const { cache, q, y } = memoryOf(timer, setting), { set, storage } = rowsAt(timer, at);
  const scores = timer.room(4 * rows * heads * context);
  const [score, soften, sum] = plainShaders(setting), uniforms = {};
  const places = (names: readonly ("positions" | "slots")[]): Record<string, GpuSlice> =>
    Object.fromEntries(names.map((name) => [name, storage[name]]));
  return [
    set,
    ...Array.from({ length: RUNS }, (): BenchDispatch[] => [
      {
        ...{ shader: score, storage: { q, k: cache(), scores, ...places(["slots"]) }, uniforms },
        workgroups: [context / LANES, kvHeads, rows],
      },
      {
        ...{ shader: soften, storage: { scores, ...places(["positions"]) }, uniforms },
        workgroups: [heads, rows],
      },
      {
        ...{ shader: sum, storage: { v: cache(), scores, y, ...places(["slots"]) }, uniforms },
        workgroups: [width / CHANNELS, kvHeads, rows],
      },
    ]).flat(),
  ];
}

const LANES = 64;
/** Channels of a workgroup of sums, of eight lanes each. */
const CHANNELS = LANES / 8;

const HALVES = wgsl`
  fn halves(pair: vec2<u32>) -> vec4<f32> {
    return vec4<f32>(unpack2x16float(pair.x), unpack2x16float(pair.y));
  }
`;

/** Scores of 64 keys; softmax of a row of a head; sums of eight channels: all query heads of a key head at once. */
function plainShaders({ shape, context }: Setting): [Shader, Shader, Shader] {
  const { heads, kvHeads, width } = shape, group = heads / kvHeads;
  const each = (text: (h: number) => string) => Array.from({ length: group }, (_, h) => text(h));
  const main = wgsl`
    @compute @workgroup_size(${LANES})
    fn main(
      @builtin(workgroup_id) id: vec3<u32>,
      @builtin(local_invocation_index) lane: u32,
    )
  `;
  const score: Shader = {
    name: "md13_scores",
    storage: {
      ...{ q: "array<vec4<f32>>", k: "array<vec4<u32>>", scores: "array<f32>" },
      slots: "array<u32>",
    },
    ...{ writes: ["scores"], uniforms: {} },
    code: wgsl`
      ${HALVES}
      ${main} {
        let key = id.x * ${LANES}u + lane;
        let line = ((slots[id.z] * ${kvHeads}u + id.y) * ${context}u + key) * ${width / 8}u;
        let query = (id.z * ${heads}u + id.y * ${group}u) * ${width / 4}u;
        ${each((h) => `var sum${h} = 0.0;`)}
        for (var i = 0u; i < ${width / 8}u; i++) {
          let packed = k[line + i];
          let low = halves(packed.xy);
          let high = halves(packed.zw);
          ${
      each((h) =>
        `sum${h} += dot(q[query + ${h * width / 4}u + 2u * i], low) +
            dot(q[query + ${h * width / 4}u + 2u * i + 1u], high);`
      )
    }
        }
        let at = (id.z * ${heads}u + id.y * ${group}u) * ${context}u + key;
        ${each((h) => `scores[at + ${h * context}u] = sum${h} * ${width ** -0.5};`)}
      }
    `,
  };
  const soften: Shader = {
    name: "md13_softmax",
    storage: { scores: "array<f32>", positions: "array<i32>" },
    ...{ writes: ["scores"], uniforms: {} },
    code: wgsl`
      var<workgroup> parts: array<f32, ${LANES}>;
      ${main} {
        let start = (id.y * ${heads}u + id.x) * ${context}u;
        let count = u32(positions[id.y]) + 1u;
        var most = -3e38;
        for (var i = lane; i < count; i += ${LANES}u) { most = max(most, scores[start + i]); }
        parts[lane] = most;
        workgroupBarrier();
        for (var i = 0u; i < ${LANES}u; i++) { most = max(most, parts[i]); }
        workgroupBarrier();
        var own = 0.0;
        for (var i = lane; i < count; i += ${LANES}u) { own += exp(scores[start + i] - most); }
        parts[lane] = own;
        workgroupBarrier();
        var all = 0.0;
        for (var i = 0u; i < ${LANES}u; i++) { all += parts[i]; }
        for (var i = lane; i < ${context}u; i += ${LANES}u) {
          scores[start + i] = select(0.0, exp(scores[start + i] - most) / all, i < count);
        }
      }
    `,
  };
  const sum: Shader = {
    name: "md13_sums",
    storage: {
      ...{ v: "array<vec4<u32>>", scores: "array<vec4<f32>>", y: "array<f32>" },
      slots: "array<u32>",
    },
    ...{ writes: ["y"], uniforms: {} },
    code: wgsl`
      ${HALVES}
      var<workgroup> parts: array<f32, ${LANES * group}>;
      ${main} {
        let channel = id.x * ${CHANNELS}u + lane / 8u;
        let line = ((slots[id.z] * ${kvHeads}u + id.y) * ${width}u + channel) * ${context / 8}u;
        let weights = (id.z * ${heads}u + id.y * ${group}u) * ${context / 4}u;
        ${each((h) => `var sum${h} = 0.0;`)}
        for (var i = lane % 8u; i < ${context / 8}u; i += 8u) {
          let packed = v[line + i];
          let low = halves(packed.xy);
          let high = halves(packed.zw);
          ${
      each((h) =>
        `sum${h} += dot(scores[weights + ${h * context / 4}u + 2u * i], low) +
            dot(scores[weights + ${h * context / 4}u + 2u * i + 1u], high);`
      )
    }
        }
        ${each((h) => `parts[${h * LANES}u + lane] = sum${h};`)}
        workgroupBarrier();
        if (lane % 8u > 0u) { return; }
        ${
      each((h) =>
        wgsl`
          var all${h} = 0.0;
          for (var i = 0u; i < 8u; i++) { all${h} += parts[${h * LANES}u + lane + i]; }
          y[(id.z * ${heads}u + id.y * ${group}u + ${h}u) * ${width}u + channel] = all${h};
        `
      )
    }
      }
    `,
  };
  return [score, soften, sum];
}
