// rope_append: what stands between the joined product of queries, keys and values and their attention, in one
// (spec MD-10, TL-12, TL-13): heads are normalised if the model does that, queries and keys are rotated, keys and
// values go into the caches. Made by a pass (engine/plan/passes/fuse_attention_input.ts).

import { choice, number } from "../attributes.ts";
import { defineOp } from "../define_op.ts";
import { compare, type Dim, exactDiv, sub } from "../../graph/dim/mod.ts";
import { getElement, type HostTensor, setElement } from "../host_tensor.ts";
import type { OpRecord } from "../op.ts";
import type { CaseInput, CaseRandom, OpCase } from "../op_case.ts";
import {
  checkInputCount,
  lastDim,
  optionalInput,
  requireEqual,
  requireInput,
} from "../shape_rules.ts";
import { rmsNormRows } from "./rms_norm.ts";
import { rotateHeads } from "./rope.ts";

/**
 * (qkv f32[M, (H + 2G)·D], table f32[M, d], keys state[C, G, D], values state[C, G, D], positions i32[M],
 * slots i32[M], query_norm [D]?, key_norm [D]?, k f32[M, G·D]?, v f32[M, G·D]?) → (queries f32[M, H, D], keys,
 * values). A row of qkv has the queries of all heads, then the keys, then the values; or, where weights of different
 * formats could not be joined, the queries alone, and k and v are given.
 */
export const ropeAppend: OpRecord = defineOp({
  name: "rope_append",
  summary: "norms and rotates the heads of a joined product, and writes keys and values to caches",
  attributes: {
    style: choice(["half", "interleaved"]),
    epsilon: number(1e-6),
    base: number(0),
  },
  infer(inputs) {
    checkInputCount(inputs, 10);
    const qkv = requireInput(inputs, 0, "qkv", { rank: 2 });
    const table = requireInput(inputs, 1, "table", { rank: 2 });
    const keys = requireInput(inputs, 2, "keys", { dtype: ["f32", "f16"], rank: 3 });
    const values = requireInput(inputs, 3, "values", { dtype: [keys.dtype as "f32"], rank: 3 });
    const positions = requireInput(inputs, 4, "positions", { dtype: "i32", rank: 1 });
    const slots = requireInput(inputs, 5, "slots", { dtype: "i32", rank: 1 });
    const [capacity, groups, width] = keys.shape as [Dim, number, number];
    [capacity, groups, width].forEach((dim, i) =>
      requireEqual(dim, values.shape[i]!, "the dims of both caches")
    );
    for (const [name, { shape }] of Object.entries({ table, positions, slots })) {
      requireEqual(qkv.shape[0]!, shape[0]!, `the rows of qkv and the ${name}`);
    }
    for (const [index, name] of [[6, "query norm"], [7, "key norm"]] as const) {
      const norm = optionalInput(inputs, index, name, { rank: 1 });
      if (norm) requireEqual(width, norm.shape[0]!, `the width of a head and the ${name}`);
    }
    const k = optionalInput(inputs, 8, "k", { rank: 2 });
    const v = optionalInput(inputs, 9, "v", { rank: 2 });
    for (const [name, given] of [["k", k], ["v", v]] as const) {
      if (!given) continue;
      requireEqual(qkv.shape[0]!, given.shape[0]!, `the rows of the queries and of ${name}`);
      requireEqual(groups * width, lastDim(given), `the width of the cache and of ${name}`);
    }
    if (!k !== !v) throw new TypeError("k and v must be given together");
    const heads = exactDiv(sub(lastDim(qkv), k ? 0 : 2 * groups * width), width);
    if (heads === undefined || compare(heads, 0) !== ">") {
      throw new RangeError("qkv must have queries, keys and values of whole heads");
    }
    if (![">", ">=", "=="].includes(compare(width, lastDim(table)))) {
      throw new RangeError("the table must not be wider than a head");
    }
    return [
      { dtype: "f32", shape: [qkv.shape[0]!, heads, width] },
      { dtype: keys.dtype, shape: keys.shape },
      { dtype: values.dtype, shape: values.shape },
    ];
  },
  reference({ inputs, outputs: [out], attributes, stateOf }) {
    const [qkv, table, keys, , positions, slots, queryNorm, keyNorm, k, v] = inputs;
    const [capacity, groups, width] = keys!.shape as [number, number, number];
    const heads = out!.shape[1]!;
    const queries = headsOf(qkv!, 0, heads, width);
    const fresh = k ? headsOf(k, 0, groups, width) : headsOf(qkv!, heads, groups, width);
    if (queryNorm) rmsNormRows(queries, queryNorm, queries, attributes);
    if (keyNorm) rmsNormRows(fresh, keyNorm, fresh, attributes);
    rotateHeads(queries, table!, out!, attributes.style);
    rotateHeads(fresh, table!, fresh, attributes.style);
    const read = v ? headsOf(v, 0, groups, width) : headsOf(qkv!, heads + groups, groups, width);
    const sources = [fresh, read] as const;
    for (let row = 0; row < qkv!.shape[0]!; row++) {
      const position = getElement(positions!, row);
      if (position < 0 || position >= capacity) {
        throw new RangeError(`Cannot append at position ${position}: the cache holds ${capacity}`);
      }
      sources.forEach((source, i) => {
        const cache = stateOf(2 + i, getElement(slots!, row));
        for (let j = 0; j < groups * width; j++) {
          const value = getElement(source, row * groups * width + j);
          setElement(cache, position * groups * width + j, value);
        }
      });
    }
  },
  inPlace: { 1: 2, 2: 3 },
  cases: appendCases,
});

/** A copy of `count` heads of every row. */
function headsOf(qkv: HostTensor, first: number, count: number, width: number): HostTensor {
  const [rows, columns] = qkv.shape as [number, number];
  const data = new Float32Array(rows * count * width);
  for (let row = 0; row < rows; row++) {
    for (let i = 0; i < count * width; i++) {
      data[row * count * width + i] = getElement(qkv, row * columns + first * width + i);
    }
  }
  return { dtype: "f32", shape: [rows, count, width], data };
}

const CAPACITY = 12;

function appendCases(random: CaseRandom): OpCase[] {
  const shapes = [[8, 8, 16, 16], [8, 2, 64, 64], [9, 1, 20, 12], [2, 1, 6, 4]] as const;
  return shapes.flatMap(([heads, groups, width, rotated], i) =>
    (["half", "interleaved"] as const).flatMap((style) =>
      [[], [0], [3, 4, 5, 6, 7]].map((positions) => {
        const dtype = (i + positions.length) % 2 ? "f16" as const : "f32" as const;
        const hasNorms = i % 2 === 1;
        const isApart = i > 1 && style === "half";
        const rows = positions.length;
        const state = (): CaseInput => ({
          role: "state",
          dtype,
          shape: [CAPACITY, groups, width],
          slots: [0, 1].map(() => random.normal(CAPACITY * groups * width)),
        });
        return {
          name: `${heads}/${groups} heads of ${width}, ${rotated} rotated, ${style}, ${dtype}, ` +
            `positions ${positions.join(" ")}${hasNorms ? ", norms" : ""}${
              isApart ? ", apart" : ""
            }`,
          inputs: [
            random.input([rows, (heads + (isApart ? 0 : 2 * groups)) * width]),
            random.input([rows, rotated]),
            state(),
            state(),
            random.indices(positions),
            random.indices(positions.map((position) => position % 2)),
            ...[6, 7].map(() => hasNorms ? random.weight("F32", [width]) : undefined),
            ...[8, 9].map(() => isApart ? random.input([rows, groups * width]) : undefined),
          ],
          attributes: { style, epsilon: 1e-5, base: i === 1 ? 1 : 0 },
        };
      })
    )
  );
}
