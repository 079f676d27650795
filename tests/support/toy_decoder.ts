// A small Llama-like decoder graph with seeded float32 weights, for tests of the planner, the passes and
// the backends. It has what a real one has: grouped-query attention, a rope table shared by the layers,
// gated feed-forward blocks, tied embeddings, logits for chosen rows only.

import { createGraphBuilder } from "../../engine/graph/builder.ts";
import { attentionList } from "../../engine/ops/attention_inputs.ts";
import { createCaseRandom } from "../../engine/ops/case_random.ts";
import { symbol } from "../../engine/graph/dim/mod.ts";
import type { Graph, Value } from "../../engine/graph/graph.ts";
import { getOp } from "../../engine/ops/mod.ts";
import type { RankedWish } from "../../engine/run/backend.ts";
import { tensorInMemory } from "../../engine/run/case_graph.ts";
import { formatBytes, getFormat } from "../../quant/mod.ts";

/** Sizes of the toy. */
export const TOY = {
  layers: 2,
  width: 64,
  heads: 4,
  kvHeads: 2,
  headWidth: 16,
  hidden: 96,
  vocabulary: 50,
  capacity: 32,
} as const;

/** Asks for so many of the best logits of each row (0: all of them), and for runs that may follow. */
export function wishFor(best: number, repeats = 0): RankedWish {
  return { best: new Int32Array(TOY_LIMITS.L).fill(best), repeats };
}

/** Largest step of the toy: `M` rows, `L` rows with logits. */
export const TOY_LIMITS: Readonly<Record<"M" | "L", number>> = { M: 8, L: 2 };

/**
 * Builds the toy with keys and values stored as `kv`; matrices are of one format, or of one by name. A session holds
 * `capacity` rows, of which a row sees those of its layer's window, by default all.
 */
export function toyDecoder(
  kv: "f16" | "f32" = "f16",
  format: string | ((name: string) => string) = "F32",
  {
    layers = TOY.layers,
    heads = TOY.heads,
    kvHeads = TOY.kvHeads,
    capacity = TOY.capacity,
    windows = [],
    rows = 8,
  }: {
    readonly layers?: number;
    readonly heads?: number;
    readonly kvHeads?: number;
    readonly capacity?: number;
    readonly windows?: readonly number[];
    /** Most of a step. */
    readonly rows?: number;
  } = {},
): Graph {
  const builder = createGraphBuilder("toy", getOp);
  const random = createCaseRandom(7);
  const { width, hidden, vocabulary } = TOY, headWidth = width / heads;
  const M = symbol("M", { max: rows }), L = symbol("L", { max: 8 });
  const tokens = builder.input("tokens", [M], "i32");
  const positions = builder.input("positions", [M], "i32");
  const slots = builder.input("slots", [M], "i32");
  const logitRows = builder.input("logit_rows", [L], "i32");

  function weight(name: string, ...shape: number[]): Value {
    const chosen = typeof format === "string" ? format : format(name);
    const record = getFormat(shape.length === 1 ? "F32" : chosen);
    const count = shape.reduce((product, size) => product * size, 1);
    const bytes = new Uint8Array(formatBytes(record, count));
    // Scaled so that activations stay near 1, as in trained models.
    record.encode!(random.normal(count, shape.length === 1 ? 1 : shape[1]! ** -0.5), bytes);
    return builder.weight(name, tensorInMemory(name, { format: record.name, shape, bytes }));
  }

  const table = weight("embedding", vocabulary, width);
  const half = headWidth / 2;
  const frequencies = builder.constant(
    "frequencies",
    Float32Array.from({ length: half }, (_, i) => 10000 ** (-i / half)),
  );
  let x = builder.op("embed", [tokens, table], {}, "embed")[0]!;
  for (let layer = 0; layer < layers; layer++) {
    const path = `layers.${layer}`;
    const op = (
      name: string,
      inputs: readonly (Value | undefined)[],
      attributes: Parameters<typeof builder.op>[2],
      label: string,
    ) => builder.op(name, inputs, attributes, `${path}.${label}`)[0]!;
    const matmul = (input: Value, label: string, rows: number, columns: number) =>
      op("matmul", [input, weight(`${path}.${label}.weight`, rows, columns)], {}, label);
    const norm = (input: Value, label: string) =>
      op("norm", [input, weight(`${path}.${label}.weight`, width)], { epsilon: 1e-5 }, label);
    const split = (input: Value, count: number, label: string) =>
      op("reshape", [input], { shape: ["M", String(count), String(headWidth)] }, label);
    // Every layer makes its table; common_subexpressions leaves one.
    const angles = op("rope_table", [positions, frequencies], {}, "rope_table");
    const rotate = (input: Value, label: string) =>
      op("rope", [input, angles], { style: "half" }, label);
    const cache = (label: string) =>
      builder.state(`${path}.${label}`, [capacity, kvHeads, headWidth], kv);

    const n = norm(x, "norm1");
    const q = rotate(split(matmul(n, "q", width, width), heads, "q_heads"), "q_rope");
    const kWidth = kvHeads * headWidth;
    const k = rotate(split(matmul(n, "k", kWidth, width), kvHeads, "k_heads"), "k_rope");
    const v = split(matmul(n, "v", kWidth, width), kvHeads, "v_heads");
    const keys = op("kv_append", [cache("keys"), k, positions, slots], {}, "k_append");
    const values = op("kv_append", [cache("values"), v, positions, slots], {}, "v_append");
    const scale = headWidth ** -0.5;
    const mixed = op("attention", attentionList({ q: q, k: keys, v: values, positions, slots }), {
      scale,
      window: windows[layer] ?? 0,
    }, "attention");
    x = op("binary", [x, matmul(mixed, "o", width, width)], { kind: "add" }, "add1");
    const m = norm(x, "norm2");
    const gate = matmul(m, "gate", hidden, width), up = matmul(m, "up", hidden, width);
    const gated = op("glu", [gate, up], { activation: "silu" }, "glu");
    x = op("binary", [x, matmul(gated, "down", width, hidden)], { kind: "add" }, "add2");
  }
  const last = builder.op("select_rows", [x, logitRows], {}, "last_rows")[0]!;
  builder.output("logits", builder.op("matmul", [last, table], {}, "head")[0]!);
  return builder.build();
}
