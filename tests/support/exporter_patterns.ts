// Patterns that exporters write, for tests/support/pass_patterns.ts.

import { built, onnx, type OnnxLine, type Pattern } from "./pass_pattern.ts";
import type { Attribute } from "./write_onnx.ts";

/** An integer of a file. */
export const i = (value: number): Attribute => ({ i: value });
/** A float of a file. */
export const f = (value: number): Attribute => ({ f: value });
const ints = (...values: number[]): Attribute => ({ ints: values });

/** Nodes behind a convolution's result `c`; the last gives `y`. */
export function behind(conv: string, name: string, ...nodes: readonly OnnxLine[]): Pattern {
  const attributes = { pads: ints(1, 1, 1, 1), group: i(2) };
  return onnx(`${name} behind ${conv}`, {
    inputs: { x: [1, 4, 3, 5] },
    constants: {
      w: [4, 2, 3, 3],
      ...{ zero: 0, three: 3, six: 6, half: 0.5 },
      ...{ scale: [4, 1, 1], shift: [1, 4, 1, 1], g: [4], b: [4], m: [4], v: [4] },
    },
    nodes: [["c", conv, "x w", attributes], ...nodes],
  });
}

const clipped = (from: string): readonly OnnxLine[] => [
  ["raised", "Add", `${from} three`],
  ["low", "Max", "raised zero"],
  ["high", "Min", "low six"],
];

/** Activations behind convolutions. */
export const ACTIVATIONS: readonly Pattern[] = ["Conv", "ConvTranspose"].flatMap((conv) => [
  behind(conv, "Relu", ["y", "Relu", "c"]),
  behind(conv, "Sigmoid", ["y", "Sigmoid", "c"]),
  behind(conv, "Swish", ["y", "Swish", "c"]),
  behind(conv, "QuickGelu", ["y", "com.microsoft.QuickGelu", "c", { alpha: f(1) }]),
  behind(conv, "HardSwish", ["y", "HardSwish", "c"]),
  behind(conv, "Clip", ["y", "Clip", "c zero six"]),
  behind(conv, "Max", ["y", "Max", "c zero"]),
  behind(conv, "Max and Min", ["a", "Max", "c zero"], ["y", "Min", "a six"]),
  behind(conv, "x · Sigmoid(x)", ["a", "Sigmoid", "c"], ["y", "Mul", "c a"]),
  behind(
    conv,
    "hard swish by parts",
    ...clipped("c"),
    ["a", "Mul", "c high"],
    ["y", "Div", "a six"],
  ),
  behind(
    conv,
    "hard swish, divided first",
    ...clipped("c"),
    ["a", "Div", "high six"],
    ["y", "Mul", "c a"],
  ),
]);

/** A norm over the last dim; `d` is what is divided. */
function norm(name: string, ...nodes: readonly OnnxLine[]): Pattern {
  return onnx(name, {
    inputs: { x: [2, 3, 6] },
    constants: { eps: 1e-3, two: 2, one: 1, w: [6], b: [6], axis: { n: [-1] } },
    nodes,
  });
}

const CENTRED: readonly OnnxLine[] = [["mu", "ReduceMean", "x axis"], ["d", "Sub", "x mu"]];
const rootOf = (squares: OnnxLine): readonly OnnxLine[] => [
  squares,
  ["mean", "ReduceMean", "s axis"],
  ["e", "Add", "mean eps"],
  ["r", "Sqrt", "e"],
];

/** Norms as means, squares and roots. */
export const NORMS: readonly Pattern[] = [
  norm(
    "layer norm by a power",
    ...CENTRED,
    ...rootOf(["s", "Pow", "d two"]),
    ...[["n", "Div", "d r"], ["h", "Mul", "n w"], ["y", "Add", "h b"]] as const,
  ),
  norm("layer norm alone", ...CENTRED, ...rootOf(["s", "Mul", "d d"]), ["y", "Div", "d r"]),
  norm(
    "RMS norm by a reciprocal",
    ...rootOf(["s", "Mul", "x x"]),
    ...[["i", "Reciprocal", "r"], ["n", "Mul", "x i"], ["y", "Mul", "w n"]] as const,
  ),
  norm(
    "RMS norm by one over the root",
    ...rootOf(["s", "Pow", "x two"]),
    ...[["i", "Div", "one r"], ["y", "Mul", "i x"]] as const,
  ),
  built("RMS norm by a power", ({ op, input, number }) => {
    const x = input([2, 3, 6]), squares = op("binary", [x, number(2)], { kind: "pow" });
    const mean = op("reduce", [squares], { kind: "mean", axes: [-1], keep: true });
    const root = op("unary", [op("binary", [mean, number(1e-3)], { kind: "add" })], {
      kind: "root",
    });
    return op("binary", [x, root], { kind: "div" });
  }),
];

function activation(name: string, ...nodes: readonly OnnxLine[]): Pattern {
  return onnx(name, {
    inputs: { x: [2, 7] },
    constants: {
      ...{ half: 0.5, one: 1, two: Math.SQRT2, three: 3, four: 0.044715 },
      five: Math.sqrt(2 / Math.PI),
    },
    nodes,
  });
}

/** Activations as sums and products. */
export const WRITTEN_OUT: readonly Pattern[] = [
  activation(
    "gelu by Erf",
    ["a", "Div", "x two"],
    ["b", "Erf", "a"],
    ["c", "Add", "b one"],
    ["d", "Mul", "x c"],
    ["y", "Mul", "d half"],
  ),
  activation(
    "gelu by Tanh",
    ["a", "Pow", "x three"],
    ["b", "Mul", "a four"],
    ["c", "Add", "x b"],
    ["d", "Mul", "c five"],
    ["e", "Tanh", "d"],
    ["g", "Add", "e one"],
    ["h", "Mul", "x half"],
    ["y", "Mul", "h g"],
  ),
  activation("x · Sigmoid(x)", ["a", "Sigmoid", "x"], ["y", "Mul", "x a"]),
];

const QKV = { q: [1, 2, 3, 4], k: [1, 2, 5, 4], v: [1, 2, 5, 4], mask: [1, 1, 3, 5] };

/** Attention as products and a softmax. */
export const ATTENTIONS: readonly Pattern[] = [
  onnx("attention with scales and a mask", {
    inputs: QKV,
    constants: { half: 0.5, two: 2 },
    nodes: [
      ["t", "Transpose", "k", { perm: ints(0, 1, 3, 2) }],
      ["a", "Mul", "q half"],
      ["s", "MatMul", "a t"],
      ["b", "Div", "s two"],
      ["m", "Add", "b mask"],
      ["p", "Softmax", "m", { axis: i(-1) }],
      ["y", "MatMul", "p v"],
    ],
  }),
  onnx("attention with a safe softmax of heads as matrices", {
    inputs: { q: [2, 2, 3, 4], k: [2, 2, 5, 4], v: [2, 2, 5, 4] },
    constants: { zero: 0, flat: { n: [4, 5, 4] }, apart: { n: [2, 2, 4, 5] } },
    nodes: [
      ["k3", "Reshape", "k flat"],
      ["t3", "Transpose", "k3", { perm: ints(0, 2, 1) }],
      ["t", "Reshape", "t3 apart"],
      ["s", "MatMul", "q t"],
      ["p", "Softmax", "s", { axis: i(3) }],
      ["n", "IsNaN", "p"],
      ["w", "Where", "n zero p"],
      ["y", "MatMul", "w v"],
    ],
  }),
  onnx("attention of repeated heads", {
    inputs: { q: [1, 4, 3, 4], k: [1, 2, 5, 4], v: [1, 2, 5, 4] },
    constants: {
      ...{ one: { n: [1, 2, 1, 5, 4] }, spread: { n: [1, 2, 2, 5, 4] }, all: { n: [1, 4, 5, 4] } },
    },
    nodes: [
      ...["k", "v"].flatMap((name): OnnxLine[] => [
        [`${name}1`, "Reshape", `${name} one`],
        [`${name}2`, "Expand", `${name}1 spread`],
        [`${name}3`, "Reshape", `${name}2 all`],
      ]),
      ["t", "Transpose", "k3", { perm: ints(0, 1, 3, 2) }],
      ["s", "MatMul", "q t"],
      ["p", "Softmax", "s", { axis: i(-1) }],
      ["y", "MatMul", "p v3"],
    ],
  }),
];

const HEADS_FIRST = { perm: ints(0, 2, 1, 3) };

/** Heads that are split and joined by transposes. */
export const LAYOUTS: readonly Pattern[] = [
  onnx("Attention between transposes", {
    inputs: { q: [2, 3, 4, 8], k: [2, 5, 4, 8], v: [2, 5, 4, 8] },
    nodes: [
      ["q1", "Transpose", "q", HEADS_FIRST],
      ["k1", "Transpose", "k", HEADS_FIRST],
      ["v1", "Transpose", "v", HEADS_FIRST],
      ["a", "Attention", "q1 k1 v1"],
      ["y", "Transpose", "a", HEADS_FIRST],
    ],
  }),
  onnx("Attention of one sequence whose rows are outermost", {
    inputs: { q: [1, 2, 3, 4], k: [5, 1, 2, 4], v: [5, 1, 2, 4] },
    nodes: [
      ["k1", "Transpose", "k", { perm: ints(1, 2, 0, 3) }],
      ["v1", "Transpose", "v", { perm: ints(1, 2, 0, 3) }],
      ["y", "Attention", "q k1 v1"],
    ],
  }),
];

/** Caches that are copied to be appended to. */
export const CACHES: readonly Pattern[] = [
  onnx("Attention behind Concat of planes", {
    inputs: {
      q: [1, 2, 2, 4],
      pk: [1, 2, 3, 4],
      pv: [1, 2, 3, 4],
      k: [1, 2, 2, 4],
      v: [1, 2, 2, 4],
    },
    nodes: [
      ["ks", "Concat", "pk k", { axis: i(2) }],
      ["vs", "Concat", "pv v", { axis: i(2) }],
      ["y", "Attention", "q ks vs"],
    ],
  }),
  onnx("Attention behind Concat of rows", {
    inputs: { q: [1, 2, 8], pk: [1, 3, 2, 4], pv: [1, 3, 2, 4], k: [1, 2, 2, 4], v: [1, 2, 2, 4] },
    constants: { rows: { n: [1, 5, 8] } },
    nodes: [
      ["k4", "Concat", "pk k", { axis: i(1) }],
      ["v4", "Concat", "pv v", { axis: i(1) }],
      ["ks", "Reshape", "k4 rows"],
      ["vs", "Reshape", "v4 rows"],
      ["y", "Attention", "q ks vs", { q_num_heads: i(2), kv_num_heads: i(2) }],
    ],
  }),
  built("attention behind append_rows", ({ op, input }) => {
    const counts = input([1], "i32", "counts");
    const append = (name: string) =>
      op("append_rows", [
        input([1, 2, 8], "f32", `new_${name}`),
        input([1, 2, 6, 4], "f32", `past_${name}`),
        counts,
      ], { heads: 2, capacity: 6 });
    const q = input([1, 2, 8], "f32", "q"), k = append("k"), v = append("v");
    return op("attention", [q, k, v, undefined, counts], {
      ...{ q_heads: 2, kv_heads: 2, scale: 0.5, causal: true, from_end: true },
    });
  }),
];
