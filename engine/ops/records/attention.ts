// attention: each row attends to the cached positions of its own slot up to its own position; with a
// window, to the last `window` of them, its own included. Query head h reads key-value head
// ⌊h / (H / Hkv)⌋ (grouped-query attention). Rows of one step may belong to different sessions. A head may
// have a sink, a score that takes part in the softmax and has no value, and a slope, by which scores fall with
// the distance of the key (ALiBi).

import { integer, number } from "../attributes.ts";
import { CACHE_TYPES, checkCache, readableCache } from "../cache_rows.ts";
import { defineOp } from "../define_op.ts";
import { exactDiv, mul } from "../../graph/dim/mod.ts";
import type { StateType } from "../../graph/graph.ts";
import { getElement, setElement } from "../host_tensor.ts";
import type { HostTensor, OpRecord } from "../op.ts";
import type { CaseInput, CaseRandom, OpCase } from "../op_case.ts";
import { checkInputCount, optionalInput, requireEqual, requireInput } from "../shape_rules.ts";

/**
 * (q f32[M, H, D], k state[C, Hkv, D], v state[C, Hkv, Dv], positions i32[M], slots i32[M], sinks f32[H]?,
 * slopes f32[H]?) → f32[M, H·Dv]. `window` 0 and `softcap` 0 mean none.
 */
export const attention: OpRecord = defineOp({
  name: "attention",
  summary: "softmax(q·k·scale)·v over the cached positions of a row's slot",
  attributes: { scale: number(), window: integer(0, 0), softcap: number(0) },
  infer(inputs) {
    checkInputCount(inputs, 7);
    const q = requireInput(inputs, 0, "q", { rank: 3 });
    const k = requireInput(inputs, 1, "k", { dtype: CACHE_TYPES, rank: 3 });
    const v = requireInput(inputs, 2, "v", { dtype: CACHE_TYPES, rank: 3 });
    const positions = requireInput(inputs, 3, "positions", { dtype: "i32", rank: 1 });
    const slots = requireInput(inputs, 4, "slots", { dtype: "i32", rank: 1 });
    checkCache(k);
    checkCache(v);
    requireEqual(q.shape[2]!, k.shape[2]!, "the head widths of q and k");
    requireEqual(k.shape[0]!, v.shape[0]!, "the capacities of k and v");
    requireEqual(k.shape[1]!, v.shape[1]!, "the heads of k and v");
    requireEqual(q.shape[0]!, positions.shape[0]!, "the rows of q and the positions");
    requireEqual(q.shape[0]!, slots.shape[0]!, "the rows of q and the slots");
    for (const [index, name] of [[5, "sinks"], [6, "slopes"]] as const) {
      const perHead = optionalInput(inputs, index, name, { rank: 1 });
      if (perHead) requireEqual(q.shape[1]!, perHead.shape[0]!, `the heads of q and the ${name}`);
    }
    if (exactDiv(q.shape[1]!, k.shape[1]!) === undefined) {
      throw new RangeError("the heads of q must be a multiple of the heads of k");
    }
    return [{ dtype: "f32", shape: [q.shape[0]!, mul(q.shape[1]!, v.shape[2]!)] }];
  },
  reference({ inputs, outputs: [out], attributes, stateOf }) {
    const [q, k, , positions, slots, sinks, slopes] = inputs;
    const [rows, heads] = q!.shape as [number, number];
    const capacity = k!.shape[0]!;
    for (let row = 0; row < rows; row++) {
      const position = getElement(positions!, row);
      if (position < 0 || position >= capacity) {
        throw new RangeError(`Cannot attend at position ${position}: the cache holds ${capacity}`);
      }
      const slot = getElement(slots!, row);
      const first = attributes.window === 0 ? 0 : Math.max(0, position - attributes.window + 1);
      const keys = readableCache(stateOf(1, slot), position + 1);
      const values = readableCache(stateOf(2, slot), position + 1);
      for (let head = 0; head < heads; head++) {
        const sink = sinks && getElement(sinks, head);
        const slope = slopes ? getElement(slopes, head) : 0;
        const seen = { row, head, first, position, sink, slope };
        attendHead({ q: q!, keys, values, out: out!, ...seen, ...attributes });
      }
    }
  },
  cases: attentionCases,
  tolerance: { ofLargest: 1e-4, reason: "float32 exponentials of long rows" },
});

interface HeadCall {
  readonly q: HostTensor;
  readonly keys: HostTensor;
  readonly values: HostTensor;
  readonly out: HostTensor;
  readonly row: number;
  readonly head: number;
  readonly first: number;
  readonly position: number;
  readonly scale: number;
  readonly softcap: number;
  readonly sink: number | undefined;
  readonly slope: number;
}

function attendHead(call: HeadCall): void {
  const { q, keys, values, out, row, head, first, position, scale, softcap, sink, slope } = call;
  const [, heads, width] = q.shape as [number, number, number];
  const [, kvHeads, valueWidth] = values.shape as [number, number, number];
  const kvHead = Math.floor(head / (heads / kvHeads));
  const scores = new Float64Array(position - first + 1);
  for (let j = 0; j < scores.length; j++) {
    const key = ((first + j) * kvHeads + kvHead) * width;
    let dot = 0;
    for (let i = 0; i < width; i++) {
      dot += getElement(q, (row * heads + head) * width + i) * getElement(keys, key + i);
    }
    const score = softcap === 0 ? dot * scale : softcap * Math.tanh(dot * scale / softcap);
    scores[j] = score - slope * (position - first - j);
  }
  const largest = scores.reduce((a, b) => Math.max(a, b), sink ?? -Infinity);
  const weights = scores.map((score) => Math.exp(score - largest));
  const total = weights.reduce((a, b) => a + b, sink === undefined ? 0 : Math.exp(sink - largest));
  for (let i = 0; i < valueWidth; i++) {
    let sum = 0;
    for (let j = 0; j < weights.length; j++) {
      const value = ((first + j) * kvHeads + kvHead) * valueWidth + i;
      sum += weights[j]! * getElement(values, value);
    }
    setElement(out, (row * heads + head) * valueWidth + i, sum / total);
  }
}

interface AttentionShape {
  readonly heads: number;
  readonly kvHeads: number;
  readonly width: number;
  readonly valueWidth: number;
}

const CAPACITY = 150;
// [position, slot] of each row: one token, a chunk, two sessions at once, the cache's last row.
const STEPS = [
  [],
  [[0, 0]],
  [[0, 0], [1, 0], [2, 0], [3, 0], [4, 0], [5, 0], [6, 0]],
  [[70, 1], [4, 0], [71, 1]],
  [[CAPACITY - 1, 1]],
] as const;

function attentionCases(random: CaseRandom): OpCase[] {
  const shapes: readonly AttentionShape[] = [
    { heads: 8, kvHeads: 8, width: 16, valueWidth: 16 },
    { heads: 8, kvHeads: 2, width: 64, valueWidth: 64 },
    { heads: 3, kvHeads: 1, width: 20, valueWidth: 12 },
  ];
  const plain = shapes.flatMap((shape) =>
    STEPS.flatMap((rows) =>
      ([[0, 0, "f32"], [3, 0, "f16"], [64, 20, "f16"]] as const).map((
        [window, softcap, dtype],
      ) => ({
        name: `${shape.heads}/${shape.kvHeads} heads of ${shape.width}, ${dtype}, rows at ${
          rows.map(([position]) => position).join(" ")
        }, window ${window}, softcap ${softcap}`,
        inputs: attentionInputs(random, shape, rows, dtype),
        attributes: { scale: shape.width ** -0.5, window, softcap },
      }))
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
        return {
          name: `${3 * group}/3 heads of ${width}, f16, rows at ${
            rows.map(([position]) => position).join(" ")
          }`,
          inputs: attentionInputs(random, shape, rows, "f16"),
          attributes: { scale: width ** -0.5, window: 0, softcap: 0 },
        };
      })
    );
}

// Keys and values in blocks, for every number of queries that has a loop of its own.
function blockCases(random: CaseRandom): OpCase[] {
  return [1, 2, 3, 4, 6].flatMap((group) =>
    STEPS.flatMap((rows) =>
      ([[0, 0], [40, 20]] as const).map(([window, softcap]) => {
        const shape = { heads: 2 * group, kvHeads: 2, width: 64, valueWidth: 32 };
        return {
          name: `${2 * group}/2 heads, q8_0, rows at ${
            rows.map(([position]) => position).join(" ")
          }, window ${window}, softcap ${softcap}`,
          inputs: attentionInputs(random, shape, rows, "q8_0"),
          attributes: { scale: shape.width ** -0.5, window, softcap },
        };
      })
    )
  );
}

// Sinks, slopes and both, where they matter: over several blocks and segments, with windows.
function biasedCases(random: CaseRandom): OpCase[] {
  const shape = { heads: 6, kvHeads: 2, width: 16, valueWidth: 8 };
  return STEPS.flatMap((rows) =>
    ([["sinks", "f32", 0], ["slopes", "f16", 0], ["both", "f16", 40]] as const).map((
      [name, dtype, window],
    ) => ({
      name: `${name}, ${dtype}, rows at ${rows.map(([position]) => position).join(" ")}`,
      inputs: [
        ...attentionInputs(random, shape, rows, dtype),
        name === "slopes" ? undefined : random.weight("F32", [shape.heads]),
        name === "sinks" ? undefined : {
          role: "constant" as const,
          dtype: "f32" as const,
          shape: [shape.heads],
          data: Float32Array.from({ length: shape.heads }, (_, h) => 2 ** -(h + 1)),
        },
      ],
      attributes: { scale: shape.width ** -0.5, window, softcap: 0 },
    }))
  );
}

function attentionInputs(
  random: CaseRandom,
  { heads, kvHeads, width, valueWidth }: AttentionShape,
  rows: readonly (readonly [number, number])[],
  dtype: StateType,
): CaseInput[] {
  const state = (channels: number): CaseInput => ({
    role: "state",
    dtype,
    shape: [CAPACITY, kvHeads, channels],
    slots: [0, 1].map(() => random.normal(CAPACITY * kvHeads * channels)),
  });
  return [
    random.input([rows.length, heads, width]),
    state(width),
    state(valueWidth),
    random.indices(rows.map(([position]) => position)),
    random.indices(rows.map(([, slot]) => slot)),
  ];
}
