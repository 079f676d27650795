// Attention over float32 heads in tensors, online over blocks of keys (Milakov & Gimelshein 2018), so that no matrix of
// scores is ever written. A workgroup takes a tile of rows of one head. Scores are products over chunks of the width
// through workgroup memory; values are read where they lie, by 16 neighbours at a time. Heads may lie in any order,
// side by side in one tensor too, and new keys in a tensor of their own behind the others.

import type { Shader } from "../../kernel.ts";
import { mainOf, wgsl } from "../../wgsl.ts";
import { ELEMENTS, type ElementType, readElement } from "../element_types.ts";
import { unaryFunction } from "../element_functions.ts";

/** Rows of a workgroup. */
export const TENSOR_ROWS = 32;

const SIZE = 256, KEYS = 64, CHUNK = 16, PITCH = CHUNK + 1;
/** Threads of a row while weights are made, and keys of each. */
const TEAM = SIZE / TENSOR_ROWS, OWN = KEYS / TEAM;

/** Inputs that are heads. */
export const HEAD_INPUTS = ["q", "k", "v", "new_k", "new_v"] as const;

/** Name of an input that is heads. */
export type HeadInput = typeof HEAD_INPUTS[number];

/** What is attended with. */
export interface TensorAttention {
  readonly width: number;
  readonly valueWidth: number;
  /** The storage that each has its heads in, which may be another's. */
  readonly heads: Readonly<Partial<Record<HeadInput, string>>>;
  readonly mask?: "f32" | "bool" | undefined;
  readonly counts?: "i32" | "pair" | undefined;
  readonly hasSinks: boolean;
}

const storageOf = (type: ElementType) => `array<${ELEMENTS[type].memory}>`;

/**
 * Uniforms: `rows`, `keys` in all, `held` of them in k and v, `group` heads that share one of k; `<input>_at`, `_batch`,
 * `_head` and `_row` of each that is heads, and of y; `mask_batch`, `_head`, `_row`, `_key` and `_columns`; what rows see:
 * `causal`, `from_end`, `offset`, `window`; `scale`, `softcap`; bits of -∞ as `least`, and of a row that sees nothing
 * as `blind`.
 */
export function tensorAttentionShader(shape: TensorAttention): Shader {
  const { valueWidth, heads, mask, counts, hasSinks } = shape;
  const inputs = HEAD_INPUTS.filter((input) => heads[input]);
  const columns = Math.ceil(valueWidth / CHUNK);
  const isCut = valueWidth % CHUNK !== 0;
  const owns = [0, 1].map((row) => `own${row}`);
  return {
    name: "tensor_attention",
    storage: {
      ...Object.fromEntries(inputs.map((input) => [heads[input], "array<f32>"])),
      ...mask && { mask: storageOf(mask) },
      ...counts && { counts: storageOf(counts) },
      ...hasSinks && { sinks: "array<f32>" },
      y: "array<f32>",
    },
    writes: ["y"],
    uniforms: {
      ...{ rows: "u32", keys: "u32", held: "u32", group: "u32" },
      ...Object.fromEntries(
        [...inputs, "y"].flatMap((name) =>
          ["at", "batch", "head", "row"].map((step) => [`${name}_${step}`, "u32" as const])
        ),
      ),
      ...{ mask_batch: "u32", mask_head: "u32", mask_row: "u32" },
      ...{ mask_key: "u32", mask_columns: "u32" },
      ...{ causal: "u32", from_end: "u32", offset: "i32", window: "u32" },
      ...{ scale: "f32", softcap: "f32", least: "u32", blind: "u32" },
    },
    code: wgsl`
      var<workgroup> scores: array<f32, ${TENSOR_ROWS * KEYS}>;
      var<workgroup> queries: array<f32, ${TENSOR_ROWS * PITCH}>;
      var<workgroup> chunk: array<f32, ${KEYS * PITCH}>;
      var<workgroup> parts: array<f32, ${SIZE}>;
      var<workgroup> factors: array<f32, ${TENSOR_ROWS}>;
      var<workgroup> span: vec2<i32>;

      ${unaryFunction("softcap", "float")!}

      ${scoresOf(shape)}

      @compute @workgroup_size(${SIZE})
      ${mainOf({ group: "group", lane: "lane" })}
        let b = group.z;
        let h = group.y;
        let kv = h / params.group;
        let first = group.x * ${TENSOR_ROWS}u;
        let least = bitcast<f32>(params.least);
        if (lane == 0u) {
          let last = min(first + ${TENSOR_ROWS}u, params.rows) - 1u;
          span = vec2<i32>(seen_by(b, first).x, seen_by(b, last).y);
        }
        let range = workgroupUniformLoad(&span);
        // Two rows and every 16th key or column of the tile, then a row's share of weights.
        let pair = lane / 16u * 2u;
        let x = lane % 16u;
        let row = lane / ${TEAM}u;
        let member = lane % ${TEAM}u;
        ${owns.map((own) => `var ${own}: array<f32, ${columns}>;`)}
        var most = ${hasSinks ? "sinks[h]" : "least"};
        var total = ${hasSinks ? "select(1.0, 0.0, most == least)" : "0.0"};
        for (var block = range.x; block < range.y; block += ${KEYS}) {
          let start = u32(block);
          let count = u32(min(range.y - block, ${KEYS}));
          ${productsOf(shape)}
          ${WEIGHTS}
          for (var c = 0u; c < ${columns}u; c++) {
            ${owns.map((own, i) => `${own}[c] *= factors[pair + ${i}u];`)}
          }
          for (var i = 0u; i < count; i++) {
            let weights = vec2<f32>(scores[pair * ${KEYS}u + i], scores[(pair + 1u) * ${KEYS}u + i]);
            // What is not seen may be anything.
            if (all(weights == vec2<f32>(0.0))) { continue; }
            for (var c = 0u; c < ${columns}u; c++) {
              let column = 16u * c + x;
              ${isCut ? `if (column >= ${valueWidth}u) { break; }` : ""}
              let element = value(b, kv, start + i, column);
              own0[c] += weights.x * element;
              own1[c] += weights.y * element;
            }
          }
        }
        workgroupBarrier();
        if (member == 0u) { factors[row] = total; }
        workgroupBarrier();
        let blind = select(bitcast<f32>(params.blind), 0.0, params.keys == 0u);
        for (var c = 0u; c < ${columns}u; c++) {
          let column = 16u * c + x;
          let at = params.y_at + b * params.y_batch + h * params.y_head + column;
          ${
      owns.map((own, i) =>
        wgsl`
            if (first + pair + ${i}u < params.rows && column < ${valueWidth}u) {
              let all = factors[pair + ${i}u];
              y[at + (first + pair + ${i}u) * params.y_row] = select(${own}[c] / all, blind, all == 0.0);
            }
          `
      )
    }
        }
      }
    `,
  };
}

/** What a row sees, and the scores of it; `key` and `value` of any place. */
function scoresOf({ heads, mask, counts }: TensorAttention): string {
  return wgsl`
    // The first key that a row sees, and the one behind the last.
    fn seen_by(b: u32, row: u32) -> vec2<i32> {
      let keys = i32(params.keys);
      let count = ${counts ? countAt(counts) : "keys"};
      let back = max(0, count - i32(params.rows));
      let own = i32(row) + select(params.offset, back, params.from_end != 0u);
      let first = select(0, max(0, own - i32(params.window) + 1), params.window > 0u);
      return vec2<i32>(first, min(min(count, keys), select(keys, own + 1, params.causal != 0u)));
    }

    ${reader(heads, { name: "key", before: "k", fresh: "new_k" })}

    ${reader(heads, { name: "value", before: "v", fresh: "new_v" })}

    // A score of a row's product with a key.
    fn score(b: u32, h: u32, row: u32, key: u32, product: f32) -> f32 {
      let least = bitcast<f32>(params.least);
      let seen = seen_by(b, row);
      if (row >= params.rows || i32(key) < seen.x || i32(key) >= seen.y) { return least; }
      let scaled = product * params.scale;
      let capped = select(scaled, unary(scaled, params.softcap, 0.0), params.softcap > 0.0);
      ${mask ? masked(mask) : "return capped;"}
    }
  `;
}

/** Scores of a block of keys, into workgroup memory: two rows and four keys an invocation. */
function productsOf({ width, heads: { q } }: TensorAttention): string {
  return wgsl`
        var products = array<vec4<f32>, 2>();
        for (var at = 0u; at < ${width}u; at += ${CHUNK}u) {
          let d = at + x;
          workgroupBarrier();
          for (var i = lane / 16u; i < ${TENSOR_ROWS}u; i += ${SIZE / CHUNK}u) {
            let q_row = first + i;
            var element = 0.0;
            if (q_row < params.rows && d < ${width}u) {
              element = ${q!}[params.q_at + b * params.q_batch + h * params.q_head + q_row * params.q_row + d];
            }
            queries[i * ${PITCH}u + x] = element;
          }
          for (var i = lane / 16u; i < ${KEYS}u; i += ${SIZE / CHUNK}u) {
            var element = 0.0;
            if (i < count && d < ${width}u) { element = key(b, kv, start + i, d); }
            chunk[i * ${PITCH}u + x] = element;
          }
          workgroupBarrier();
          for (var i = 0u; i < ${CHUNK}u; i++) {
            let keys = vec4<f32>(
              chunk[x * ${PITCH}u + i],
              chunk[(x + 16u) * ${PITCH}u + i],
              chunk[(x + 32u) * ${PITCH}u + i],
              chunk[(x + 48u) * ${PITCH}u + i],
            );
            products[0] += queries[pair * ${PITCH}u + i] * keys;
            products[1] += queries[(pair + 1u) * ${PITCH}u + i] * keys;
          }
        }
        for (var i = 0u; i < 8u; i++) {
          let own = pair + i / 4u;
          let key = x + 16u * (i % 4u);
          scores[own * ${KEYS}u + key] = score(b, h, first + own, start + key, products[i / 4u][i % 4u]);
        }
  `;
}

/** Weights in the place of scores, by the running maximum of each row; sums so far fade by `factors`. */
const WEIGHTS = wgsl`
  workgroupBarrier();
  var top = most;
  for (var i = 0u; i < ${OWN}u; i++) { top = max(top, scores[row * ${KEYS}u + member + ${TEAM}u * i]); }
  parts[lane] = top;
  workgroupBarrier();
  for (var i = 0u; i < ${TEAM}u; i++) { top = max(top, parts[row * ${TEAM}u + i]); }
  let shift = select(top, 0.0, top == least);
  let factor = exp(most - shift);
  most = top;
  var part = 0.0;
  for (var i = 0u; i < ${OWN}u; i++) {
    let at = row * ${KEYS}u + member + ${TEAM}u * i;
    let weight = exp(scores[at] - shift);
    scores[at] = weight;
    part += weight;
  }
  workgroupBarrier();
  parts[lane] = part;
  if (member == 0u) { factors[row] = factor; }
  workgroupBarrier();
  total *= factor;
  for (var i = 0u; i < ${TEAM}u; i++) { total += parts[row * ${TEAM}u + i]; }
`;

function countAt(type: "i32" | "pair"): string {
  return type === "i32" ? "counts[b]" : "bitcast<i32>(counts[b].x)";
}

/** `name(b, kv, row, column)`: an element of keys or of values. */
function reader(
  heads: TensorAttention["heads"],
  { name, before, fresh }: {
    readonly name: string;
    readonly before: HeadInput;
    readonly fresh: HeadInput;
  },
): string {
  const place = (input: HeadInput, row: string) => {
    const [at, batch, head, step] = ["at", "batch", "head", "row"].map((what) =>
      `params.${input}_${what}`
    );
    return `${heads[input]}[${at} + b * ${batch} + kv * ${head} + ${row} * ${step} + column]`;
  };
  const own = `if (row >= params.held) { return ${place(fresh, "(row - params.held)")}; }`;
  return wgsl`
    fn ${name}(b: u32, kv: u32, row: u32, column: u32) -> f32 {
      ${heads[fresh] ? own : ""}
      return ${place(before, "row")};
    }
  `;
}

/** The end of `score`: a mask hides keys, those behind its last column too, or is added. */
function masked(type: "f32" | "bool"): string {
  const place = "b * params.mask_batch + h * params.mask_head + row * params.mask_row + column";
  return wgsl`
    if (key >= params.mask_columns) { return least; }
    let column = key * params.mask_key;
    let added = ${readElement(type, { variable: "mask", place: `(${place})` })};
    ${
    type === "bool"
      ? "return select(least, capped, added);"
      : "return select(capped + added, least, added == least);"
  }
  `;
}
