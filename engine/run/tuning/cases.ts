// What `troodon tune` measures: nodes as networks have them of the ops that several kernels of a device take.

import { createQuickRandom } from "../../ops/case_random.ts";
import type { OpCase } from "../../ops/op_case.ts";

/** One node to measure. */
export interface TuneCase {
  readonly op: string;
  readonly opCase: OpCase;
}

/** Windows of pictures: sizes of the plane, of the filters, and how they lie. */
const CONVOLUTIONS = [
  [[1, 3, 64, 64], [32, 3, 3, 3], {}],
  [[1, 32, 48, 48], [32, 32, 3, 3], {}],
  [[1, 64, 32, 32], [64, 64, 3, 3], {}],
  [[1, 64, 16, 16], [64, 64, 3, 3], {}],
  [[1, 128, 24, 24], [128, 128, 3, 3], {}],
  [[1, 128, 24, 24], [128, 128, 3, 3], { strides: [2, 2] }],
  [[1, 64, 32, 32], [128, 64, 1, 1], {}],
  [[1, 64, 48, 48], [64, 1, 3, 3], { groups: 64 }],
] as const;

/** The same with weights as they lie in files, which kernels read packed. */
const PACKED_CONVOLUTIONS = [
  [[1, 64, 32, 32], [64, 64, 3, 3]],
  [[1, 128, 16, 16], [128, 128, 3, 3]],
  [[1, 64, 32, 32], [128, 64, 1, 1]],
] as const;

/** Format, rows, outputs and columns of products. */
const PRODUCTS = [["F16", 1, 512, 512], ["F16", 64, 512, 512], ["Q4_0", 64, 512, 512]] as const;

/** Rows of queries and keys, heads, and width of a head. */
const ATTENTIONS = [[77, 77, 12, 64], [197, 197, 6, 64], [256, 77, 8, 40], [256, 256, 1, 512]];

/** All of them, in the order of their ops. */
export function tuneCases(): TuneCase[] {
  const random = createQuickRandom(1);
  const conv = CONVOLUTIONS.map(([x, w, attributes]): TuneCase => ({
    op: "conv",
    opCase: {
      name: `[${x}] by [${w}]`,
      inputs: [random.input([...x]), constant(random.normal(product(w)), w)],
      attributes: { ...attributes, pads: Array(4).fill((w[3] - 1) / 2) },
    },
  }));
  const packed = PACKED_CONVOLUTIONS.map(([x, w]): TuneCase => ({
    op: "conv",
    opCase: {
      name: `[${x}] by packed [${w}]`,
      inputs: [random.input([...x]), random.weight("F16", w)],
      attributes: { pads: Array(4).fill((w[3] - 1) / 2) },
    },
  }));
  const products = PRODUCTS.map(([format, rows, outputs, columns]): TuneCase => ({
    op: "matmul",
    opCase: {
      name: `${rows} rows of ${columns} by ${format} [${outputs}, ${columns}]`,
      inputs: [random.input([rows, columns]), random.weight(format, [outputs, columns])],
    },
  }));
  const attention = ATTENTIONS.map(([rows, keys, heads, width]): TuneCase => ({
    op: "attention",
    opCase: {
      name: `${heads} heads of ${width}, ${rows} rows on ${keys}`,
      inputs: [rows!, keys!, keys!].map((count) => random.input([1, count, heads! * width!])),
      attributes: { q_heads: heads!, kv_heads: heads!, scale: width! ** -0.5 },
    },
  }));
  return [...conv, ...packed, ...attention, ...products, {
    op: "conv_transpose",
    opCase: {
      name: "[1, 32, 28, 28] by [32, 16, 2, 2]",
      inputs: [
        random.input([1, 32, 28, 28]),
        constant(random.normal(32 * 16 * 4), [32, 16, 2, 2]),
      ],
      attributes: { strides: [2, 2] },
    },
  }];
}

function product(shape: readonly number[]): number {
  return shape.reduce((a, b) => a * b, 1);
}

function constant(data: Float32Array, shape: readonly number[]): OpCase["inputs"][number] {
  return { role: "constant", dtype: "f32", shape, data };
}
