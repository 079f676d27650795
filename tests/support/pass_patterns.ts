// What each pass recognises, in graphs that have every op which it reads. tests/pass_patterns_test.ts makes every
// attribute, constant and result of them unusual.

import type { Attributes, Value } from "../../engine/graph/graph.ts";
import { attentionList } from "../../engine/ops/attention_inputs.ts";
import {
  ACTIVATIONS,
  ATTENTIONS,
  behind,
  CACHES,
  f,
  i,
  LAYOUTS,
  NORMS,
  WRITTEN_OUT,
} from "./exporter_patterns.ts";
import { built, onnx, type OnnxLine, type Pattern, type Writer } from "./pass_pattern.ts";

const WIDE = 64;

/** Two products of 8-bit rows, and what reads them. */
const GATED: readonly Pattern[] = [
  built("glu of two products", ({ op, input, weight }) => {
    const x = input([3, WIDE]);
    const [gate, up] = [0, 1].map(() => op("matmul", [x, weight("F32", 96, WIDE)]));
    return op("glu", [gate, up], { activation: "silu" });
  }),
  built("a product with a function of another one", ({ op, input, weight }) => {
    const x = input([3, WIDE]);
    const [gate, up] = [0, 1].map(() => op("matmul", [x, weight("F32", 96, WIDE)]));
    return op("binary", [up!, op("unary", [gate!], { kind: "gelu" })], { kind: "mul" });
  }),
  built("glu of two products, in 8 bit", ({ op, input, weight }) => {
    const x = op("quantize", [input([3, WIDE])]);
    const [gate, up] = [0, 1].map(() => op("matmul", [x, weight("Q8_0", 96, WIDE)]));
    const gated = op("glu", [gate, up], { activation: "gelu_tanh", to: "q8" });
    return op("matmul", [gated, weight("Q8_0", 32, 96)]);
  }),
];

function rotated(q8: boolean, normed: "no" | "keys" | "queries and keys"): Pattern {
  const name = `attention of rotated heads, ${normed} normed${q8 ? ", in 8 bit" : ""}`;
  return built(name, ({ op, input, state, constant, weight }) => {
    const given = input([3, 32]), x = q8 ? op("quantize", [given]) : given;
    const positions = input([3], "i32", "positions"), slots = input([3], "i32", "slots");
    const gain = weight("F32", 16), table = op("rope_table", [positions, constant(8)]);
    const heads = (count: number) => {
      const rows = op("matmul", [x, weight(q8 ? "Q8_0" : "F32", 16 * count, 32)]);
      return op("reshape", [rows], { shape: ["3", String(count), "16"] });
    };
    const turned = (count: number) => {
      const plain = heads(count);
      const isNormed = normed === "queries and keys" || (normed === "keys" && count === 2);
      const value = isNormed ? op("norm", [plain, gain], { epsilon: 0.1 }) : plain;
      return op("rope", [value, table], { style: "half" });
    };
    const append = (label: string, rows: Value) =>
      op("kv_append", [state(label, [4, 2, 16]), rows, positions, slots]);
    const q = turned(4), keys = append("keys", turned(2)), values = append("values", heads(2));
    const seen = attentionList({ q, k: keys, v: values, positions, slots });
    const mixed = op("attention", seen, { scale: 0.25, to: q8 ? "q8" : "f32" });
    return q8 ? op("matmul", [mixed, weight("Q8_0", 8, 64)]) : mixed;
  });
}

function normOf(op: Writer["op"], x: Value, gain: Value): Value {
  return op("norm", [x, gain], { epsilon: 0.1, to: "q8" });
}

const QUANTISED: readonly Pattern[] = [
  ["norm", { epsilon: 0.1 }],
  ["unary", { kind: "gelu" }],
].map(([kind, attributes]) =>
  built(`${kind} that is quantised`, ({ op, input, weight }) => {
    const made = op(kind as string, [input([3, 32])], attributes as Attributes);
    return op("matmul", [op("quantize", [made]), weight("Q8_0", 8, 32)]);
  })
);

/** The patterns of each pass, by its name. Those of a pass together have every op that it reads. */
export const PATTERNS: Readonly<Record<string, readonly Pattern[]>> = {
  absorb_head_layout: LAYOUTS,
  attend_new_rows: CACHES,
  common_subexpressions: [
    onnx("two nodes of the same kind", {
      inputs: { x: [2, 3] },
      constants: { a: 0.5, b: 0.5, zero: 0, minus: -0 },
      nodes: [
        ["n", "LeakyRelu", "x", { alpha: f(0.25) }],
        ["m", "LeakyRelu", "x", { alpha: f(0.25) }],
        ["k", "Div", "n a"],
        ["l", "Div", "m b"],
        ["o", "Mul", "k l"],
        // Of these no two are the same.
        ["p", "LeakyRelu", "x", { alpha: f(0) }],
        ["q", "LeakyRelu", "x", { alpha: f(-0) }],
        ["r", "Div", "o p"],
        ["s", "Div", "o q"],
        ["t", "Div", "o zero"],
        ["u", "Div", "o minus"],
        ["v", "Max", "r s"],
        ["w", "Max", "t u"],
        ["y", "Add", "v w"],
      ],
    }),
  ],
  dead_code: [
    built("a result that nobody reads", ({ op, input }) => {
      const x = input([2, 3]);
      op("unary", [x], { kind: "elu" });
      return op("unary", [x], { kind: "neg" });
    }),
  ],
  fold_affine_after: ["Conv", "ConvTranspose"].map((conv) =>
    behind(
      conv,
      "scales and shifts",
      ["a", "Mul", "c scale"],
      ["b1", "Add", "shift a"],
      ["d", "Div", "b1 six"],
      ["y", "Mul", "half d"],
    )
  ).concat([
    onnx("a scale that a transposed convolution has none of", {
      inputs: { x: [1, 4, 3, 5] },
      constants: { w: [6, 4, 1, 1], scale: [6, 1, 1], two: 2 },
      nodes: [["c", "Conv", "x w"], ["a", "Mul", "c scale"], ["y", "Div", "a two"]],
    }),
  ]),
  fold_affine_before: [
    onnx("scales and shifts before a convolution of one place", {
      inputs: { x: [1, 4, 3, 5] },
      constants: { w: [6, 2, 1, 1], scale: [4, 1, 1], shift: [1, 4, 1, 1], six: 6 },
      nodes: [
        ["a", "Mul", "x scale"],
        ["b", "Add", "a shift"],
        ["c", "Div", "b six"],
        ["y", "Conv", "c w", { group: i(2) }],
      ],
    }),
  ],
  fold_batch_norm: [
    ...["Conv", "ConvTranspose"].map((conv) =>
      behind(conv, "BatchNormalization", [
        "y",
        "BatchNormalization",
        "c g b m v",
        { epsilon: f(0.125) },
      ])
    ),
  ],
  fold_up_sampling: [
    built("up-sampling before a convolution", ({ op, input, weight }) => {
      const x = input([2, 16, 11, 13]);
      const seen = op("resize", [x], { sizes: [2, 16, 22, 39], mode: "nearest" });
      return op("conv", [seen, weight("F32", 16, 16, 3, 3)], { pads: [1, 1, 1, 1] });
    }),
  ],
  fuse_activation: [
    ...ACTIVATIONS,
    onnx("InstanceNormalization and x · Sigmoid(x)", {
      inputs: { x: [1, 4, 3, 5] },
      constants: { g: [4], b: [4] },
      nodes: [
        ["c", "InstanceNormalization", "x g b", { epsilon: f(0.125) }],
        ["a", "Sigmoid", "c"],
        ["y", "Mul", "c a"],
      ],
    }),
  ],
  fuse_attention_input: [
    rotated(false, "no"),
    rotated(false, "keys"),
    rotated(true, "queries and keys"),
  ],
  fuse_bias: [
    onnx("a sum behind MatMul", {
      inputs: { x: [2, 3, 4] },
      constants: { w: [4, 5], b: [5] },
      nodes: [["m", "MatMul", "x w"], ["y", "Add", "b m"]],
    }),
  ],
  fuse_elementwise: [
    built("powers", ({ op, input, number }) => {
      const x = input([2, 3]),
        power = op("binary", [op("unary", [x], { kind: "abs" }), number(1.5)], { kind: "pow" });
      return op("binary", [power, number(2)], { kind: "sub" });
    }),
    onnx("a chain of functions", {
      inputs: { x: [2, 3], z: [2, 3] },
      constants: { half: 0.5, one: 1, two: 2, row: [3] },
      nodes: [
        ["a", "LeakyRelu", "x", { alpha: f(0.25) }],
        ["b", "HardSigmoid", "z", { alpha: f(0.3), beta: f(0.4) }],
        ["c", "Mul", "a b"],
        ["d", "Add", "c half"],
        ["e", "Sigmoid", "d"],
        ["g", "Pow", "e two"],
        ["h", "Div", "one g"],
        ["y", "Sub", "h row"],
      ],
    }),
    onnx("two zeros", {
      inputs: { x: [2, 3] },
      constants: { zero: 0, minus: -0 },
      nodes: [["a", "Div", "x zero"], ["b", "Div", "x minus"], ["y", "Max", "a b"]],
    }),
    onnx("numbers with dims", {
      inputs: { x: [] },
      constants: { a: [1], b: [1] },
      nodes: [["c", "Add", "x a"], ["d", "Exp", "c"], ["y", "Mul", "d b"]],
    }),
  ],
  fuse_gated: GATED,
  fuse_norm: [
    built("norm before a product", ({ op, input, weight }) => {
      const normed = normOf(op, input([3, WIDE]), weight("F32", WIDE));
      return op("matmul", [normed, weight("Q8_0", WIDE, WIDE)]);
    }),
    built("norm before a gated product", ({ op, input, weight }) => {
      const normed = normOf(op, input([3, WIDE]), weight("F32", WIDE));
      const attributes = { gate: "gelu", to: "q8" };
      const gated = op("matmul", [normed, weight("Q8_0", 2 * WIDE, WIDE)], attributes);
      return op("matmul", [gated, weight("Q8_0", 32, WIDE)]);
    }),
    built("layer norm before a product with a function", ({ op, input, weight }) => {
      const vectors = [weight("F32", 32), weight("F32", 32)];
      const normed = op("norm", [input([3, 32]), ...vectors], { centred: true, epsilon: 0.1 });
      const given = { activation: "silu", alpha: 1.702 };
      return op("matmul", [normed, weight("F32", 16, 32), weight("F32", 16)], given);
    }),
  ],
  fuse_quantized: [
    ...QUANTISED,
    built("glu that is quantised", ({ op, input, weight }) => {
      const parts = [input([3, 32], "f32", "gate"), input([3, 32], "f32", "up")];
      const made = op("quantize", [op("glu", parts, { activation: "gelu" })]);
      return op("matmul", [made, weight("Q8_0", 8, 32)]);
    }),
    built("attention that is quantised", ({ op, input, state, weight }) => {
      const positions = input([3], "i32", "positions"), slots = input([3], "i32", "slots");
      const append = (label: string) =>
        op("kv_append", [
          state(label, [4, 2, 32]),
          input([3, 2, 32], "f32", `${label}.rows`),
          positions,
          slots,
        ]);
      const heads = { q: input([3, 4, 32], "f32", "q"), k: append("keys"), v: append("values") };
      const mixed = op("attention", attentionList({ ...heads, positions, slots }), { scale: 0.25 });
      return op("matmul", [op("quantize", [mixed]), weight("Q8_0", 8, 128)]);
    }),
  ],
  fuse_function: ["silu", "gelu"].map((kind) =>
    built(`${kind} of a product`, ({ op, input, weight }) => {
      const made = op("matmul", [input([3, 32]), weight("F32", 16, 32), weight("F32", 16)]);
      return op("unary", [made], kind === "silu" ? { kind, alpha: 1.702 } : { kind });
    })
  ),
  fuse_norm_behind: [
    built("a norm of a product with a sum", ({ op, input, weight }) => {
      const x = input([3, 32]), added = input([3, 16], "f32", "added");
      const made = op("matmul", [x, weight("F32", 16, 32), weight("F32", 16), added]);
      const given = { centred: true, epsilon: 0.1 };
      const normed = op("norm", [made, weight("F32", 16), weight("F32", 16)], given);
      return op("binary", [made, normed], { kind: "mul" });
    }),
  ],
  fuse_branch: [
    built("a branch added to a convolution", ({ op, input, weight }) => {
      const x = input([2, 16, 5, 7]), made = op("conv", [x, weight("F32", 16, 16, 1, 1)]);
      return op("binary", [made, x], { kind: "add" });
    }),
  ],
  fuse_residual: ["floats", "8-bit rows"].map((rows) =>
    built(`a sum with a product of ${rows}`, ({ op, input, weight }) => {
      const given = input([3, 32]), isQ8 = rows === "8-bit rows";
      const x = isQ8 ? op("quantize", [given]) : given;
      const made = op("matmul", [x, weight(isQ8 ? "Q8_0" : "F32", 32, 32)]);
      return op("binary", [given, made], { kind: "add" });
    })
  ),
  join_attention_products: [
    ...[false, true].map((rounded) =>
      built(`attention of three products${rounded ? " in 7 bit" : ""}`, ({ op, input, weight }) => {
        const format = rounded ? "q8_low" : "q8";
        const x = op("quantize", [input([2, 3, 32])], { format });
        const rows = (count: number) =>
          op("reshape", [
            op("matmul", [x, weight(rounded ? "F32" : "Q8_0", count, 32)], { rounded }),
          ], {
            shape: [2, 3, count],
          });
        const attributes = { q_heads: 4, kv_heads: 2, scale: 0.25 };
        return op("attention", [rows(32), rows(16), rows(16)], attributes);
      })
    ),
    built("attention of three products, rows of a step", ({ op, input, weight }) => {
      const x = op("quantize", [input([5, 32])]);
      const heads = (count: number) =>
        op(
          "reshape",
          [op("matmul", [x, weight("Q8_0", 8 * count, 32), weight("F32", 8 * count)])],
          {
            shape: [5, count, 8],
          },
        );
      const list = (values: number[]) =>
        op("from_dims", [], { values, shape: [values.length], dtype: "i32" });
      const spans = { starts: list([0, 0, 0, 3, 3]), ends: list([2, 3, 3, 4, 4]) };
      const seen = attentionList({ q: heads(4), k: heads(2), v: heads(2), ...spans });
      return op("attention", seen, { scale: 0.25 });
    }),
  ],
  pick_rows_early: [
    built("rows picked behind ops on rows", ({ op, input, weight }) => {
      const x = input(["M", 32]), rows = input([2], "i32", "rows");
      const normed = op("norm", [x, weight("F32", 32)], { epsilon: 0.1 });
      const other = op("norm", [x, weight("F32", 32)], { centred: true, epsilon: 0.2 });
      const gate = op("matmul", [normed, weight("F32", 32, 32)]);
      const up = op("binary", [op("unary", [gate], { kind: "gelu" }), other], { kind: "mul" });
      const gated = op("glu", [op("glu", [gate, up], { activation: "silu" }), up], {
        ...{ activation: "clamped", limit: 2, alpha: 1.5 },
      });
      const down = op("unary", [op("unary", [gated], { kind: "softcap", alpha: 5 })], {
        kind: "scale",
        alpha: 0.5,
      });
      const summed = op("all_reduce", [down, other]);
      const last = op("select_rows", [op("binary", [x, summed], { kind: "add" }), rows]);
      return op("matmul", [last, weight("F32", 8, 32)]);
    }),
    built("rows picked behind an attention over a cache", ({ op, input, state, weight }) => {
      const x = input(["M", 32]), rows = input([2], "i32", "rows");
      const positions = input(["M"], "i32", "positions"), slots = input(["M"], "i32", "slots");
      const heads = (count: number) => {
        const made = op("matmul", [x, weight("F32", 8 * count, 32)]);
        return op("reshape", [made], { shape: ["M", String(count), "8"] });
      };
      const append = (label: string) =>
        op("kv_append", [state(label, [4, 2, 8]), heads(2), positions, slots]);
      const seen = { q: heads(4), k: append("keys"), v: append("values"), positions, slots };
      const mixed = op("attention", attentionList(seen), { scale: 0.35 });
      const summed = op("binary", [x, op("matmul", [mixed, weight("F32", 32, 32)])], {
        kind: "add",
      });
      return op("matmul", [op("select_rows", [summed, rows]), weight("F32", 8, 32)]);
    }),
  ],
  quantize_activations: [
    built("products, large and of experts", ({ all, op, input, weight }) => {
      const x = input([1, 32]), rows = op("reshape", [x], { shape: [1, 1, 32] });
      const scores = op("matmul", [x, weight("F32", 1024, 32)]);
      const [experts, shares] = all("route", [scores], { score: "softmax", count: 1 });
      const few = op("binary", [
        experts!,
        op("from_dims", [], { values: [4], shape: [], dtype: "i32" }),
      ], {
        kind: "mod",
      });
      const chosen = op("expert_matmul", [rows, weight("Q8_0", 4, 32, 32), few]);
      const large = op("matmul", [x, weight("F32", 1024, 32)]);
      return [op("matmul", [x, weight("Q8_0", 32, 32)]), large, chosen, shares!];
    }, 0.05),
  ],
  recognize_activations: WRITTEN_OUT,
  recognize_attention: ATTENTIONS,
  recognize_group_norm: [
    onnx("instances of a view, scaled and moved by channel", {
      inputs: { x: [2, 6, 3, 4] },
      constants: {
        ...{ view: { n: [0, 3, -1] }, back: { n: [2, 6, 3, 4] }, groups: { n: [3] } },
        ...{ one: 1, zero: 0, w: [6, 1, 1], b: [1, 6, 1, 1] },
      },
      nodes: [
        ["v", "Reshape", "x view"],
        ["ones", "Expand", "one groups"],
        ["zeros", "Expand", "zero groups"],
        ["i", "InstanceNormalization", "v ones zeros", { epsilon: f(0.125) }],
        ["r", "Reshape", "i back"],
        ["m", "Mul", "r w"],
        ["y", "Add", "m b"],
      ],
    }),
  ],
  recognize_norms: NORMS,
  strict_products: [
    built(
      "a product with LF8 weights",
      ({ op, input, weight }) => op("matmul", [input([3, 256]), weight("LF8", 8, 256)]),
      0.05,
    ),
  ],
  ungroup_heads: [
    onnx("Attention of repeated heads", {
      inputs: { q: [1, 4, 3, 4], k: [1, 2, 5, 4], v: [1, 2, 5, 4] },
      constants: {
        ...{
          one: { n: [1, 2, 1, 5, 4] },
          spread: { n: [1, 2, 2, 5, 4] },
          all: { n: [1, 4, 5, 4] },
        },
      },
      nodes: [
        ...["k", "v"].flatMap((name): OnnxLine[] => [
          [`${name}1`, "Reshape", `${name} one`],
          [`${name}2`, "Expand", `${name}1 spread`],
          [`${name}3`, "Reshape", `${name}2 all`],
        ]),
        ["y", "Attention", "q k3 v3"],
      ],
    }),
  ],
  widen_half: [
    // Results between casts are not rounded; pc-onnx-19 has what casts give.
    {
      tolerance: 0.01,
      ...onnx("casts to half precision and back", {
        inputs: { x: [2, 3] },
        nodes: [
          ["a", "Cast", "x", { to: i(10) }],
          ["b", "Neg", "a"],
          ["c", "Cast", "b", { to: i(16) }],
          ["y", "Cast", "c", { to: i(1) }],
        ],
      }),
    },
  ],
  write_out_attention: [
    onnx("Attention with a mask", {
      inputs: { q: [1, 4, 3, 4], k: [1, 2, 5, 4], v: [1, 2, 5, 6], mask: [3, 5] },
      nodes: [["y", "Attention", "q k v mask"]],
    }),
    onnx("Attention of rows of heads", {
      inputs: { q: [2, 3, 8], k: [2, 5, 8], v: [2, 5, 8] },
      nodes: [["y", "Attention", "q k v", { q_num_heads: i(2), kv_num_heads: i(2) }]],
    }),
  ],
};
