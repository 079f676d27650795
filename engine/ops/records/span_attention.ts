// span_attention: each row attends to a span [start, end) of the rows of k and v. Encoders see their whole
// sequence among the rows of the step, decoders the output of their encoder in a session's cache; a table of
// summands by distance (T5) is for both. What a causal decoder without such a table needs is `attention`.

import { number } from "../attributes.ts";
import { CACHE_TYPES, checkCache, readableCache } from "../cache_rows.ts";
import { defineOp } from "../define_op.ts";
import { exactDiv, mul } from "../../graph/dim/mod.ts";
import type { StateType } from "../../graph/graph.ts";
import { getElement, type HostTensor, setElement } from "../host_tensor.ts";
import type { OpRecord } from "../op.ts";
import type { CaseInput, CaseRandom, OpCase } from "../op_case.ts";
import { checkInputCount, optionalInput, requireEqual, requireInput } from "../shape_rules.ts";

/**
 * (q f32[M, H, D], k [N, Hkv, D], v [N, Hkv, Dv], starts i32[M]?, ends i32[M]?, positions i32[M]?,
 * slots i32[M]?, bias f32[H, 2R+1]?) → f32[M, H·Dv].
 *
 * With `slots` k and v are states, else activations. Without `starts` spans begin at 0; without `ends` they
 * end behind the row's position. `bias[h, R + d]` is added to the score of a key whose distance from the
 * row, (key - start) - position, is d; d beyond ±R counts as ±R. An empty span gives zeros.
 */
export const spanAttention: OpRecord = defineOp({
  name: "span_attention",
  summary: "softmax(q·k·scale + bias)·v over a span of rows, of this step or of a slot's cache",
  attributes: { scale: number() },
  infer(inputs) {
    checkInputCount(inputs, 8);
    const q = requireInput(inputs, 0, "q", { rank: 3 });
    const slots = optionalInput(inputs, 6, "slots", { dtype: "i32", rank: 1 });
    const dtype = slots ? CACHE_TYPES : "f32";
    const k = requireInput(inputs, 1, "k", { dtype, rank: 3 });
    const v = requireInput(inputs, 2, "v", { dtype, rank: 3 });
    checkCache(k);
    checkCache(v);
    const starts = optionalInput(inputs, 3, "starts", { dtype: "i32", rank: 1 });
    const ends = optionalInput(inputs, 4, "ends", { dtype: "i32", rank: 1 });
    const positions = optionalInput(inputs, 5, "positions", { dtype: "i32", rank: 1 });
    const bias = optionalInput(inputs, 7, "bias", { rank: 2 });
    requireEqual(q.shape[2]!, k.shape[2]!, "the head widths of q and k");
    requireEqual(k.shape[0]!, v.shape[0]!, "the rows of k and v");
    requireEqual(k.shape[1]!, v.shape[1]!, "the heads of k and v");
    for (const [name, list] of Object.entries({ starts, ends, positions, slots })) {
      if (list) requireEqual(q.shape[0]!, list.shape[0]!, `the rows of q and the ${name}`);
    }
    if (!positions && (bias || !ends)) throw new TypeError("input 5 (positions) is missing");
    if (bias) requireEqual(bias.shape[0]!, q.shape[1]!, "the rows of bias and the heads of q");
    if (bias && (bias.shape[1] as number) % 2 !== 1) {
      throw new RangeError("bias must have an odd number of columns: distances -R to R");
    }
    if (exactDiv(q.shape[1]!, k.shape[1]!) === undefined) {
      throw new RangeError("the heads of q must be a multiple of the heads of k");
    }
    return [{ dtype: "f32", shape: [q.shape[0]!, mul(q.shape[1]!, v.shape[2]!)] }];
  },
  reference({ inputs, outputs: [out], attributes: { scale }, stateOf }) {
    const [q, k, v, starts, ends, positions, slots, bias] = inputs;
    const [rows, heads] = q!.shape as [number, number];
    const limit = k!.shape[0]!;
    for (let row = 0; row < rows; row++) {
      const position = positions ? getElement(positions, row) : 0;
      const start = starts ? getElement(starts, row) : 0;
      const end = ends ? getElement(ends, row) : position + 1;
      if (start < 0 || end > limit) {
        throw new RangeError(`Cannot attend to rows ${start} to ${end}: there are ${limit}`);
      }
      const slot = slots ? getElement(slots, row) : 0;
      const keys = slots ? readableCache(stateOf(1, slot), end) : k!;
      const values = slots ? readableCache(stateOf(2, slot), end) : v!;
      for (let head = 0; head < heads; head++) {
        attendHead({
          ...{ q: q!, keys, values, out: out!, row, head, start, end, scale },
          biasAt: (key) => bias ? biasAt(bias, head, key - start - position) : 0,
        });
      }
    }
  },
  cases: spanCases,
  tolerance: { ofLargest: 1e-4, reason: "float32 exponentials of long rows" },
});

function biasAt(bias: HostTensor, head: number, distance: number): number {
  const columns = bias.shape[1]!, reach = (columns - 1) / 2;
  return getElement(bias, head * columns + reach + Math.max(-reach, Math.min(reach, distance)));
}

interface HeadCall {
  readonly q: HostTensor;
  readonly keys: HostTensor;
  readonly values: HostTensor;
  readonly out: HostTensor;
  readonly row: number;
  readonly head: number;
  readonly start: number;
  readonly end: number;
  readonly scale: number;
  biasAt(key: number): number;
}

function attendHead(call: HeadCall): void {
  const { q, keys, values, out, row, head, start, end, scale, biasAt } = call;
  const [, heads, width] = q.shape as [number, number, number];
  const [, kvHeads, valueWidth] = values.shape as [number, number, number];
  const kvHead = Math.floor(head / (heads / kvHeads));
  const scores = new Float64Array(Math.max(0, end - start));
  for (let j = 0; j < scores.length; j++) {
    const key = ((start + j) * kvHeads + kvHead) * width;
    let dot = 0;
    for (let i = 0; i < width; i++) {
      dot += getElement(q, (row * heads + head) * width + i) * getElement(keys, key + i);
    }
    scores[j] = dot * scale + biasAt(start + j);
  }
  const largest = scores.reduce((a, b) => Math.max(a, b), -Infinity);
  const weights = scores.map((score) => Math.exp(score - largest));
  const total = weights.reduce((a, b) => a + b, 0);
  for (let i = 0; i < valueWidth; i++) {
    let sum = 0;
    for (let j = 0; j < weights.length; j++) {
      const value = ((start + j) * kvHeads + kvHead) * valueWidth + i;
      sum += weights[j]! * getElement(values, value);
    }
    setElement(out, (row * heads + head) * valueWidth + i, weights.length === 0 ? 0 : sum / total);
  }
}

interface SpanShape {
  readonly heads: number;
  readonly kvHeads: number;
  readonly width: number;
  readonly valueWidth: number;
}

const SHAPES: readonly SpanShape[] = [
  { heads: 4, kvHeads: 4, width: 32, valueWidth: 32 },
  { heads: 6, kvHeads: 2, width: 16, valueWidth: 12 },
  { heads: 3, kvHeads: 3, width: 6, valueWidth: 5 },
];
const CAPACITY = 80;
const REACH = 7;

function spanCases(random: CaseRandom): OpCase[] {
  return SHAPES.flatMap((shape) => [
    ...[[], [1], [5, 1, 33], [70]].map((lengths) => stepCase(random, shape, lengths, false)),
    stepCase(random, shape, [9, 40], true),
    ...(["f32", "f16", ...shape.width % 32 === 0 ? ["q8_0" as const] : []] as const).flatMap((
      dtype,
    ) => [
      crossCase(random, shape, dtype),
      causalCase(random, shape, dtype),
    ]),
  ]);
}

/** Whole sequences of some lengths among the rows of the step. */
function stepCase(
  random: CaseRandom,
  { heads, kvHeads, width, valueWidth }: SpanShape,
  lengths: readonly number[],
  biased: boolean,
): OpCase {
  const rows = lengths.reduce((a, b) => a + b, 0);
  const starts: number[] = [], ends: number[] = [], positions: number[] = [];
  for (const length of lengths) {
    const start = starts.length;
    for (let i = 0; i < length; i++) {
      starts.push(start);
      ends.push(start + length);
      positions.push(i);
    }
  }
  return {
    name: `${heads}/${kvHeads} heads of ${width}, sequences of ${lengths.join(" ")}${
      biased ? ", bias" : ""
    }`,
    inputs: [
      random.input([rows, heads, width]),
      random.input([rows, kvHeads, width]),
      random.input([rows, kvHeads, valueWidth]),
      random.indices(starts),
      random.indices(ends),
      ...biased ? [random.indices(positions), undefined, random.input([heads, 2 * REACH + 1])] : [],
    ],
    attributes: { scale: width ** -0.5 },
  };
}

function states(
  random: CaseRandom,
  { kvHeads, width, valueWidth }: SpanShape,
  dtype: StateType,
): CaseInput[] {
  return [width, valueWidth].map((channels) => ({
    role: "state" as const,
    dtype,
    shape: [CAPACITY, kvHeads, channels],
    slots: [0, 1].map(() => random.normal(CAPACITY * kvHeads * channels)),
  }));
}

/** Rows of two sessions that see the leading rows of a cache; one sees nothing. */
function crossCase(random: CaseRandom, shape: SpanShape, dtype: StateType): OpCase {
  const { heads, kvHeads, width } = shape;
  return {
    name: `${heads}/${kvHeads} heads of ${width}, cache of ${dtype}, ends`,
    inputs: [
      random.input([5, heads, width]),
      ...states(random, shape, dtype),
      undefined,
      random.indices([CAPACITY, 33, 33, 0, 1]),
      undefined,
      random.indices([1, 0, 0, 0, 1]),
    ],
    attributes: { scale: width ** -0.5 },
  };
}

/** Rows that see what is before them, by distance. */
function causalCase(random: CaseRandom, shape: SpanShape, dtype: StateType): OpCase {
  const { heads, kvHeads, width } = shape;
  return {
    name: `${heads}/${kvHeads} heads of ${width}, cache of ${dtype}, causal, bias`,
    inputs: [
      random.input([5, heads, width]),
      ...states(random, shape, dtype),
      undefined,
      undefined,
      random.indices([0, 40, 41, CAPACITY - 1, 3]),
      random.indices([0, 1, 1, 0, 0]),
      random.input([heads, 2 * REACH + 1]),
    ],
    attributes: { scale: 1 },
  };
}
