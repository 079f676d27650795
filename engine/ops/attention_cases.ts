// Cases of attention, as rows of a step: caches of every type, contexts of one block and of several, rotated rows,
// spans. Those of tensors stand in attention_tensor_cases.ts.

import { type AttentionInputs, attentionInputs, attentionList } from "./attention_inputs.ts";
import { tensorCases } from "./attention_tensor_cases.ts";
import type { Attributes, StateType } from "../graph/graph.ts";
import type { CaseInput, CaseRandom, OpCase, Tolerance } from "./op_case.ts";
import { Q8_STEP } from "./q8_rows.ts";

/** All of them. */
export function attentionCases(random: CaseRandom): OpCase[] {
  const rows = [...cacheCases(random), ...rotatedCases(random)];
  const others = [...spanCases(random), ...tensorCases(random)], chunk = chunkCase(random);
  const long = longCases(random);
  return [
    ...[...rows, ...rows.flatMap(inEightBit), ...others, chunk, ...inEightBit(chunk)],
    ...[...long, ...long.flatMap(inEightBit)],
    ...packedCases(random),
    ...pickedCases(random),
  ];
}

/** Some of the rows of a step attend: none, few, and so many that they share keys, in any order. */
function pickedCases(random: CaseRandom): OpCase[] {
  const rows = Array.from({ length: 40 }, (_, i) => [i < 9 ? i : 31 + i, i < 9 ? 1 : 0] as const);
  const lists = [[], [38, 0, 9, 0], rows.map((_, i) => i).filter((i) => i % 3 > 0)];
  const heads = { heads: 4, kvHeads: 2, width: 32, valueWidth: 32 };
  const rotated = { ...heads, rotated: 32, style: "half", capacity: 80, dtype: "f16" } as const;
  return [
    ...(["f32", "f16"] as const).map((dtype) => cacheCase(random, heads, { rows, dtype })),
    rotatedCase(random, rotated, rows),
  ].flatMap((one) => lists.map((list) => picking(random, one, list))).concat(
    picking(random, rotatedCase(random, rotated, [[70, 1]]), [0]),
  );
}

function picking(random: CaseRandom, { name, inputs, ...one }: OpCase, rows: number[]): OpCase {
  const given = { ...attentionInputs(inputs), rows: random.indices(rows) };
  return { ...one, name: `${name}, of which ${rows.join(" ")}`, inputs: attentionList(given) };
}

/** A row from its product behind so many others that keys are split, and so many heads that a workgroup has several. */
function longCases(random: CaseRandom): OpCase[] {
  const shape = { heads: 32, capacity: 600, style: "half", dtype: "f16" } as const;
  return ([[299, 64, 8], [0, 32, 8], [599, 64, 8], [599, 16, 16]] as const).map((
    [position, width, kvHeads],
  ) => {
    const more = { width, kvHeads, rotated: width, norms: position > 300 };
    return rotatedCase(random, { ...shape, ...more }, [[position, 1]]);
  });
}

/** Rows of the step that have queries, keys and values side by side. */
function packedCases(random: CaseRandom): OpCase[] {
  return [
    { heads: 3, kvHeads: 3, width: 64, lengths: [11] },
    { heads: 4, kvHeads: 2, width: 12, lengths: [5, 1, 33] },
    { heads: 6, kvHeads: 1, width: 32, lengths: [50] },
    { heads: 2, kvHeads: 2, width: 16, lengths: [3, 4] },
    { heads: 2, kvHeads: 2, width: 32, lengths: [70, 65] },
  ].map(({ heads, kvHeads, width, lengths }) => {
    const sizes = { heads, kvHeads, width, valueWidth: width };
    const { inputs: [, , , ...rest], name } = stepCase(random, { sizes, lengths });
    const rows = lengths.reduce((a, b) => a + b, 0);
    return {
      name: `${name}, side by side`,
      inputs: [random.input([rows, heads + 2 * kvHeads, width]), undefined, undefined, ...rest],
      attributes: { scale: width ** -0.5, kv_heads: kvHeads },
    };
  });
}

/** The same with 8-bit rows as result, where no group of 32 is of two heads; of caches of blocks rotated rows do. */
function inEightBit({ name, inputs, attributes }: OpCase): OpCase[] {
  const [, , v] = inputs;
  if (v!.role !== "state" || v!.shape[2]! % 32 !== 0) return [];
  if (v!.dtype === "q8_0" && attributes?.style === undefined) return [];
  return [{
    ...{ name: `${name}, in 8 bit`, inputs, tolerance: Q8_STEP },
    attributes: { ...attributes, to: "q8" },
  }];
}

/** So many rows that keys are shared by a tile of them, in several blocks: of both sessions. */
function chunkCase(random: CaseRandom): OpCase {
  const rows = Array.from({ length: 23 }, (_, i) => [i < 5 ? i : 37 + i, i < 5 ? 1 : 0] as const);
  const shape = { heads: 4, kvHeads: 2, width: 32, valueWidth: 32 };
  return cacheCase(random, shape, { rows, dtype: "f16" });
}

interface HeadSizes {
  readonly heads: number;
  readonly kvHeads: number;
  readonly width: number;
  readonly valueWidth: number;
}

/** Position and slot of each row. */
type Rows = readonly (readonly [position: number, slot: number])[];

const CAPACITY = 150;
// One token, a chunk, two sessions at once, the cache's last row.
const STEPS: readonly Rows[] = [
  [],
  [[0, 0]],
  [[0, 0], [1, 0], [2, 0], [3, 0], [4, 0], [5, 0], [6, 0]],
  [[70, 1], [4, 0], [71, 1]],
  [[CAPACITY - 1, 1]],
];

function cacheCase(
  random: CaseRandom,
  { heads, kvHeads, width, valueWidth }: HeadSizes,
  given: {
    readonly rows: Rows;
    readonly dtype: StateType;
    readonly what?: string;
    readonly more?: AttentionInputs<CaseInput>;
    readonly attributes?: Attributes;
  },
): OpCase {
  const { rows, dtype, what = "", more = {}, attributes = {} } = given;
  const numbers = Object.entries(attributes).map(([name, value]) => `, ${name} ${value}`).join("");
  const [k, v] = caches(random, { kvHeads, width, valueWidth, dtype, capacity: CAPACITY });
  return {
    name: `${heads}/${kvHeads} heads of ${width}, ${dtype}${what}, rows at ${
      rows.map(([position]) => position).join(" ")
    }${numbers}`,
    inputs: attentionList({
      ...{ q: random.input([rows.length, heads, width]), k, v, ...more },
      positions: random.indices(rows.map(([position]) => position)),
      slots: random.indices(rows.map(([, slot]) => slot)),
    }),
    attributes: { scale: width ** -0.5, ...attributes },
  };
}

function caches(
  random: CaseRandom,
  { kvHeads, width, valueWidth, dtype, capacity }: Omit<HeadSizes, "heads"> & {
    readonly dtype: StateType;
    readonly capacity: number;
  },
): CaseInput[] {
  return [width, valueWidth].map((channels) => ({
    role: "state",
    dtype,
    shape: [capacity, kvHeads, channels],
    slots: [0, 1].map(() => random.normal(capacity * kvHeads * channels)),
  }));
}

function cacheCases(random: CaseRandom): OpCase[] {
  const shapes: readonly HeadSizes[] = [
    { heads: 8, kvHeads: 8, width: 16, valueWidth: 16 },
    { heads: 8, kvHeads: 2, width: 64, valueWidth: 64 },
    { heads: 3, kvHeads: 1, width: 20, valueWidth: 12 },
  ];
  const plain = shapes.flatMap((shape) =>
    STEPS.flatMap((rows) =>
      ([[0, 0, "f32"], [3, 0, "f16"], [64, 20, "f16"]] as const).map(([window, softcap, dtype]) =>
        cacheCase(random, shape, { rows, dtype, attributes: { window, softcap } })
      )
    )
  );
  return [...plain, ...halfCases(random), ...biasedCases(random), ...blockCases(random)];
}

// Keys and values in float16: every number of queries that has a loop of its own, groups of more, and sizes of whole
// and of broken steps of the channels that such a loop takes.
function halfCases(random: CaseRandom): OpCase[] {
  return ([[1, 64, 32], [2, 128, 20], [3, 80, 64], [4, 68, 72], [6, 64, 36], [9, 24, 8]] as const)
    .flatMap(([group, width, valueWidth]) =>
      STEPS.map((rows) => {
        const shape = { heads: 3 * group, kvHeads: 3, width, valueWidth };
        return cacheCase(random, shape, { rows, dtype: "f16" });
      })
    );
}

// Keys and values in blocks, for every number of queries that has a loop of its own.
function blockCases(random: CaseRandom): OpCase[] {
  return [1, 2, 3, 4, 6].flatMap((group) =>
    STEPS.flatMap((rows) =>
      ([[0, 0], [40, 20]] as const).map(([window, softcap]) => {
        const shape = { heads: 2 * group, kvHeads: 2, width: 64, valueWidth: 32 };
        return cacheCase(random, shape, { rows, dtype: "q8_0", attributes: { window, softcap } });
      })
    )
  );
}

// Sinks, slopes and both, where they matter: over several blocks and segments, with windows.
function biasedCases(random: CaseRandom): OpCase[] {
  const shape = { heads: 6, kvHeads: 2, width: 16, valueWidth: 8 };
  const slopes: CaseInput = {
    ...{ role: "constant", dtype: "f32", shape: [shape.heads] },
    data: Float32Array.from({ length: shape.heads }, (_, h) => 2 ** -(h + 1)),
  };
  return STEPS.flatMap((rows) =>
    ([["sinks", "f32", 0], ["slopes", "f16", 0], ["both", "f16", 40]] as const).map((
      [name, dtype, window],
    ) =>
      cacheCase(random, shape, {
        ...{ rows, dtype, what: `, ${name}`, attributes: { window } },
        more: {
          sinks: name === "slopes" ? undefined : random.weight("F32", [shape.heads]),
          slopes: name === "sinks" ? undefined : slopes,
        },
      })
    )
  );
}

interface Rotated {
  readonly heads: number;
  readonly kvHeads: number;
  readonly width: number;
  readonly rotated: number;
  readonly capacity: number;
  readonly style: "half" | "interleaved";
  readonly dtype: StateType;
  readonly norms?: boolean;
  readonly apart?: boolean;
  readonly biased?: boolean;
  readonly window?: number;
}

// Heads of a part of a subgroup and of more; contexts of one workgroup and of many.
const ROTATED: readonly Rotated[] = [
  {
    ...{ heads: 4, kvHeads: 2, width: 64, rotated: 64, capacity: 40 },
    ...{ style: "half", dtype: "f16" },
  },
  {
    ...{ heads: 9, kvHeads: 3, width: 32, rotated: 24, capacity: 600 },
    ...{ style: "half", dtype: "f16", norms: true },
  },
  {
    ...{ heads: 6, kvHeads: 1, width: 64, rotated: 64, capacity: 600 },
    ...{ style: "interleaved", dtype: "f32", apart: true },
  },
  {
    ...{ heads: 2, kvHeads: 2, width: 32, rotated: 20, capacity: 40 },
    ...{ style: "interleaved", dtype: "f16", biased: true, window: 5 },
  },
  {
    ...{ heads: 3, kvHeads: 1, width: 12, rotated: 6, capacity: 40 },
    ...{ style: "half", dtype: "f32", apart: true, norms: true },
  },
];

function rotatedCases(random: CaseRandom): OpCase[] {
  const known = ROTATED.flatMap((shape) =>
    [[], [0], [shape.capacity - 1], [7], [3, 4, 5, 2], Array.from({ length: 11 }, (_, i) => i)]
      .map((positions) => rotatedCase(random, shape, positions.map((position) => [position, 1])))
  );
  const small = [[8, 8, 16, 16], [8, 2, 64, 64], [9, 1, 20, 12], [2, 1, 6, 4]] as const;
  const stored = small.flatMap(([heads, kvHeads, width, rotated], i) =>
    (["half", "interleaved"] as const).flatMap((style) =>
      [[], [0], [3, 4, 5, 6, 7]].map((positions) => {
        const shape: Rotated = {
          ...{ heads, kvHeads, width, rotated, style, capacity: 12 },
          dtype: (i + positions.length) % 2 ? "f16" : "f32",
          ...{ norms: i % 2 === 1, apart: i > 1 && style === "half" },
        };
        return rotatedCase(random, shape, positions.map((position) => [position, position % 2]));
      })
    )
  );
  const blocks = ([[6, 2, 64, true], [2, 1, 32, false], [4, 2, 128, false]] as const).flatMap((
    [heads, kvHeads, width, norms],
  ) =>
    [[0], [70], [3, 4, 5, 6, 7]].map((positions) => {
      const shape: Rotated = {
        ...{ heads, kvHeads, width, rotated: width, style: "half", capacity: 80, norms },
        dtype: "q8_0",
      };
      return rotatedCase(random, shape, positions.map((position) => [position, position % 2]));
    })
  );
  return [...known, ...stored, ...blocks];
}

/** A key between two float16 whose rotation is another in its last bit may be rounded to the other one. */
const F16_STEP: Tolerance = { ofLargest: 2 ** -10, reason: "a float16 step of a rotated key" };

function rotatedCase(random: CaseRandom, shape: Rotated, places: Rows): OpCase {
  const { heads, kvHeads, width, rotated, style, dtype } = shape;
  const { capacity, norms = false, apart = false, biased = false, window = 0 } = shape;
  const rows = places.length;
  const norm = () => norms ? random.weight("F32", [width]) : undefined;
  const fresh = () => apart ? random.input([rows, kvHeads * width]) : undefined;
  const perHead = () => biased ? random.weight("F32", [heads]) : undefined;
  const [k, v] = caches(random, { kvHeads, width, valueWidth: width, dtype, capacity });
  return {
    name: `${heads}/${kvHeads} heads of ${width}, ${rotated} rotated, ${style}, ${dtype}, ` +
      `${capacity} positions, rows at ${places.map(([position]) => position).join(" ")}`,
    inputs: attentionList({
      q: random.input([rows, (heads + (apart ? 0 : 2 * kvHeads)) * width]),
      ...{ k, v, table: random.input([rows, rotated]) },
      positions: random.indices(places.map(([position]) => position)),
      slots: random.indices(places.map(([, slot]) => slot)),
      ...{ query_norm: norm(), key_norm: norm(), new_k: fresh(), new_v: fresh() },
      ...{ sinks: perHead(), slopes: perHead() },
    }),
    attributes: {
      ...{ style, epsilon: 1e-5, base: norms ? 1 : 0 },
      ...{ scale: width ** -0.5, window, softcap: biased ? 10 : 0 },
    },
    // A rotated key that is another in its last bit may be rounded to another code.
    ...dtype === "q8_0" && { tolerance: Q8_STEP },
    ...dtype === "f16" && { tolerance: F16_STEP },
  };
}

const SPANNED: readonly HeadSizes[] = [
  { heads: 4, kvHeads: 4, width: 32, valueWidth: 32 },
  { heads: 6, kvHeads: 2, width: 16, valueWidth: 12 },
  { heads: 3, kvHeads: 3, width: 6, valueWidth: 5 },
];
const SPAN_CAPACITY = 80;
const REACH = 7;

function spanCases(random: CaseRandom): OpCase[] {
  return SPANNED.flatMap((shape) => [
    ...[[], [1], [5, 1, 33], [70]].map((lengths) => stepCase(random, { sizes: shape, lengths })),
    stepCase(random, { sizes: shape, lengths: [9, 40], biased: true }),
    ...(["f32", "f16", ...shape.width % 32 === 0 ? ["q8_0" as const] : []] as const).flatMap((
      dtype,
    ) => [crossCase(random, shape, dtype), causalCase(random, shape, dtype)]),
  ]);
}

/** Whole sequences of some lengths among the rows of the step. */
function stepCase(
  random: CaseRandom,
  { sizes: { heads, kvHeads, width, valueWidth }, lengths, biased = false }: {
    readonly sizes: HeadSizes;
    readonly lengths: readonly number[];
    readonly biased?: boolean | undefined;
  },
): OpCase {
  const rows = lengths.flatMap((length, n) => {
    const start = lengths.slice(0, n).reduce((a, b) => a + b, 0);
    return Array.from({ length }, (_, position) => ({ start, end: start + length, position }));
  });
  return {
    name: `${heads}/${kvHeads} heads of ${width}, sequences of ${lengths.join(" ")}${
      biased ? ", bias" : ""
    }`,
    inputs: attentionList({
      q: random.input([rows.length, heads, width]),
      k: random.input([rows.length, kvHeads, width]),
      v: random.input([rows.length, kvHeads, valueWidth]),
      starts: random.indices(rows.map(({ start }) => start)),
      ends: random.indices(rows.map(({ end }) => end)),
      positions: biased ? random.indices(rows.map(({ position }) => position)) : undefined,
      bias: biased ? random.input([heads, 2 * REACH + 1]) : undefined,
    }),
    attributes: { scale: width ** -0.5 },
  };
}

/** Rows of two sessions that see the leading rows of a cache; one sees nothing. */
function crossCase(random: CaseRandom, shape: HeadSizes, dtype: StateType): OpCase {
  const { heads, kvHeads, width } = shape;
  const [k, v] = caches(random, { ...shape, dtype, capacity: SPAN_CAPACITY });
  return {
    name: `${heads}/${kvHeads} heads of ${width}, cache of ${dtype}, ends`,
    inputs: attentionList({
      ...{ q: random.input([5, heads, width]), k, v },
      ends: random.indices([SPAN_CAPACITY, 33, 33, 0, 1]),
      slots: random.indices([1, 0, 0, 0, 1]),
    }),
    attributes: { scale: width ** -0.5 },
  };
}

/** Rows that see what is before them, by distance. */
function causalCase(random: CaseRandom, shape: HeadSizes, dtype: StateType): OpCase {
  const { heads, kvHeads, width } = shape;
  const [k, v] = caches(random, { ...shape, dtype, capacity: SPAN_CAPACITY });
  return {
    name: `${heads}/${kvHeads} heads of ${width}, cache of ${dtype}, causal, bias`,
    inputs: attentionList({
      ...{ q: random.input([5, heads, width]), k, v },
      positions: random.indices([0, 40, 41, SPAN_CAPACITY - 1, 3]),
      slots: random.indices([0, 1, 1, 0, 0]),
      bias: random.input([heads, 2 * REACH + 1]),
    }),
    attributes: { scale: 1 },
  };
}
