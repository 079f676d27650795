// rope: rotates pairs of channels of every head by angles. `half` pairs channel i with i + d/2 (Hugging Face order),
// `interleaved` pairs 2i with 2i + 1 (Llama and GPT-J order). Channels from d on pass through (partial rotary). Angles
// come as a rope_table, a row for each row of a step, or, for heads in tensors, as tables of cosines and sines that
// positions choose from.
//
// Su et al. 2021, "RoFormer", section 3.2.2.

import { heads, type Layout, rowAt } from "../attention_rows.ts";
import { choice, integer } from "../attributes.ts";
import { CASE_ROWS, ROWS } from "../case_sizes.ts";
import { defineOp } from "../define_op.ts";
import { compare, mul, product } from "../../graph/dim/mod.ts";
import type { TensorType } from "../../graph/graph.ts";
import { FLOATS, type Numbers, numbersOf } from "../host_numbers.ts";
import { getElement, type HostTensor, setElement } from "../host_tensor.ts";
import type { OpRecord } from "../op.ts";
import type { CaseInput, CaseRandom, OpCase } from "../op_case.ts";
import { rowsOfHeads } from "../row_cut.ts";
import {
  checkInputCount,
  lastDim,
  optionalInput,
  refuseMisfit,
  requireEqual,
  requireInput,
} from "../shape_rules.ts";

/**
 * (x f32[M, H, D], table f32[M, d]) → f32[M, H, D], d ≤ D; or, with `heads`,
 * (x [B, heads, S, D] or [B, S, heads · D], cos, sin, positions i32|i64[B, S] or [1]?) → like x.
 *
 * With positions cos and sin are [positions, d / 2], where one position is that of row 0; without, they are
 * [B, S, d / 2].
 */
export const rope: OpRecord = defineOp({
  name: "rope",
  summary: "rotates pairs of channels by angles",
  attributes: { style: choice(["half", "interleaved"]), heads: integer(0, 0) },
  infer: (inputs, { heads: count }) => [count > 0 ? inferTensor(inputs, count) : inferRows(inputs)],
  rowwise: ({ inputs: [x], attributes }) =>
    attributes.heads === 0 ? rowsOfHeads(x!, [0]) : undefined,
  reference({ inputs, outputs: [out], attributes: { style, heads: count } }) {
    const [x, table] = inputs;
    if (count > 0) {
      rotateTensor(inputs, { out: out!, layout: heads(x!.shape, count) as Layout<number>, style });
    } else rotateHeads(x!, { table: table!, out: out!, style });
  },
  cases: (random) => [...rowCases(random), ...tensorCases(random)],
});

type Inputs<T> = readonly (T | undefined)[];
type Style = "half" | "interleaved";

function inferRows(inputs: Inputs<TensorType>): TensorType {
  checkInputCount(inputs, 2);
  const x = requireInput(inputs, { index: 0, name: "x", rank: 3 });
  const table = requireInput(inputs, { index: 1, name: "table", rank: 2 });
  requireEqual(x.shape[0]!, { b: table.shape[0]!, what: "the rows of x and of the table" });
  if (![">", ">=", "=="].includes(compare(lastDim(x), lastDim(table)))) {
    throw new RangeError("the table must not be wider than a head");
  }
  return { dtype: "f32", shape: x.shape };
}

function inferTensor(inputs: Inputs<TensorType>, count: number): TensorType {
  checkInputCount(inputs, 4);
  const x = requireInput(inputs, { index: 0, name: "x", dtype: FLOATS, minRank: 3 });
  const cos = requireInput(inputs, { index: 1, name: "cos", dtype: FLOATS, minRank: 2 });
  const sin = requireInput(inputs, { index: 2, name: "sin", dtype: FLOATS, minRank: 2 });
  const positions = optionalInput(inputs, { index: 3, name: "positions", dtype: ["i32", "i64"] });
  if (x.shape.length > 4) throw new RangeError("x must have 3 or 4 dims");
  refuseMisfit(product(sin.shape), { sizes: [product(cos.shape)], what: "the size of sin" });
  const { batch, rows } = heads(x.shape, count);
  if (positions) {
    refuseMisfit(product(positions.shape), {
      sizes: [1, mul(batch, rows)],
      what: "the number of positions",
    });
  }
  return { dtype: x.dtype, shape: x.shape };
}

/** Angles of a head: where its cosines and its sines begin. */
interface Angles {
  readonly cos: Numbers;
  readonly sin: Numbers;
  readonly cosAt: number;
  readonly sinAt: number;
  /** Pairs that are turned. */
  readonly pairs: number;
}

/** One head, the channels from `at` on; `x` and `out` may be one tensor. */
function turnHead(
  x: HostTensor,
  out: HostTensor,
  { at, width, style }: { readonly at: number; readonly width: number; readonly style: Style },
  { cos, sin, cosAt, sinAt, pairs }: Angles,
): void {
  for (let i = 0; i < pairs; i++) {
    const first = at + (style === "half" ? i : 2 * i);
    const second = first + (style === "half" ? pairs : 1);
    const c = cos[cosAt + i]!, s = sin[sinAt + i]!;
    const a = getElement(x, first), b = getElement(x, second);
    setElement(out, { index: first, value: a * c - b * s });
    setElement(out, { index: second, value: b * c + a * s });
  }
  for (let i = 2 * pairs; i < width; i++) {
    setElement(out, { index: at + i, value: getElement(x, at + i) });
  }
}

/** The definition, for attention too; `x` and `out` may be one tensor. */
export function rotateHeads(
  x: HostTensor,
  { table, out, style }: {
    readonly table: HostTensor;
    readonly out: HostTensor;
    readonly style: Style;
  },
): void {
  const [rows, count, width] = x.shape as [number, number, number];
  const rotated = table.shape[1]!, pairs = rotated / 2, cos = numbersOf(table), sin = cos;
  for (let head = 0; head < rows * count; head++) {
    const cosAt = Math.floor(head / count) * rotated;
    const angles = { cos, sin, cosAt, sinAt: cosAt + pairs, pairs };
    turnHead(x, out, { at: head * width, width, style }, angles);
  }
}

function rotateTensor(
  [x, cosines, sines, positions]: Inputs<HostTensor>,
  { out, layout, style }: {
    readonly out: HostTensor;
    readonly layout: Layout<number>;
    readonly style: Style;
  },
): void {
  const { batch, rows, width, heads: count } = layout;
  const cos = numbersOf(cosines!), sin = numbersOf(sines!);
  const pairs = cosines!.shape.at(-1)!, entries = cos.length / pairs;
  if (2 * pairs > width) throw new RangeError(`tables of ${pairs} angles: a head has ${width / 2}`);
  const isSingle = positions?.data.length === 1;
  for (let row = 0; row < batch * rows; row++) {
    const entry = !positions
      ? row % entries
      : isSingle
      ? getElement(positions, 0) + row % rows
      : getElement(positions, row);
    if (entry < 0 || entry >= entries) {
      throw new RangeError(`Cannot turn by position ${entry}: the tables hold ${entries}`);
    }
    const angles = { cos, sin, cosAt: entry * pairs, sinAt: entry * pairs, pairs };
    for (let head = 0; head < count; head++) {
      const at = rowAt(layout, { batch: Math.floor(row / rows), head, row: row % rows });
      turnHead(x!, out, { at, width, style }, angles);
    }
  }
}

const STYLES = ["half", "interleaved"] as const;

function rowCases(random: CaseRandom): OpCase[] {
  return STYLES.flatMap((style) =>
    [[2, 2], [8, 8], [10, 10], [16, 6], [64, 64], [20, 16]].flatMap(([width, rotated]) =>
      CASE_ROWS.map((rows) => ({
        name: `${style}, ${rotated} of ${width} channels, ${rows} rows`,
        inputs: [
          random.input([ROWS, 3, width!], { M: rows }),
          random.input([ROWS, rotated!], { M: rows }),
        ],
        attributes: { style },
        bindings: { M: rows },
      }))
    )
  );
}

function tensorCases(random: CaseRandom): OpCase[] {
  return STYLES.flatMap((style) =>
    [[2, 3, 5, 16], [2, 5, 48], [1, 3, 4, 20]].map((shape) => {
      const sizes = [shape[0]!, shape.length === 4 ? shape[2]! : shape[1]!];
      const positions = Array.from({ length: sizes[0]! * sizes[1]! }, () => random.integer(0, 8));
      return {
        name: `[${shape}], ${style}`,
        inputs: [
          ...[random.input(shape), random.input([9, 8]), random.input([9, 8])],
          { ...random.indices(positions), shape: sizes } as CaseInput,
        ],
        attributes: { style, heads: 3 },
      };
    })
  );
}
