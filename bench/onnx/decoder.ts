// A language model as onnxruntime-genai writes it, with the shape of SmolLM2 135M and random weights in 4
// bit: MatMulNBits in blocks of 32, GroupQueryAttention with rotation and a past, skip norms. One step of
// decoding after 64 positions is what the bench measures.

import {
  floats,
  type NodeParts,
  type Port,
  type Tensor,
  writeOnnx,
} from "../../tests/support/write_onnx.ts";
import type { InputRule } from "./inputs.ts";

const HIDDEN = 576, INNER = 1536, LAYERS = 30, HEADS = 9, KV_HEADS = 3, HEAD = 64;
const VOCABULARY = 49152, BLOCK = 32, PAST = 64, CONTEXT = 256;
const FLOAT = 1, BYTE = 2, INT = 6, LONG = 7;
const CONTRIB = "com.microsoft";

/** The file and a step's inputs; without weights only the inputs. */
export function nbitsDecoder({ weights = true } = {}): {
  readonly bytes: Uint8Array;
  readonly inputs: readonly InputRule[];
} {
  const inputs: InputRule[] = [
    { name: "input_ids", type: "int64", dims: [1, 1], fill: "ids" },
    { name: "seqlens_k", type: "int32", dims: [1], fill: PAST },
    { name: "total_sequence_length", type: "int32", dims: [], fill: PAST + 1 },
    ...Array.from({ length: LAYERS }, (_, i) =>
      ["key", "value"].map((part): InputRule => ({
        ...{ name: `past_key_values.${i}.${part}`, type: "float32", fill: "wave" },
        dims: [1, KV_HEADS, PAST, HEAD],
      }))).flat(),
  ];
  return { inputs, bytes: weights ? file() : new Uint8Array() };
}

/** Bytes of a linear congruential generator; the same in every run. */
function randomBytes(length: number, seed: number): Uint8Array {
  const bytes = new Uint8Array(length);
  let state = seed * 2654435761 >>> 0;
  for (let i = 0; i < length; i++) {
    state = Math.imul(state, 1664525) + 1013904223 >>> 0;
    bytes[i] = state >>> 24;
  }
  return bytes;
}

function file(): Uint8Array {
  const nodes: NodeParts[] = [], initializers: Tensor[] = [];
  const outputs: Port[] = [["logits", FLOAT, ["batch", "N", VOCABULARY]]];
  const tensor = (name: string, type: number, dims: readonly number[], raw: Uint8Array): string => {
    initializers.push({ name, type, dims, raw });
    return name;
  };
  const ones = tensor("norm", FLOAT, [HIDDEN], floats(...Array<number>(HIDDEN).fill(1)));
  const node = (
    op: string,
    ins: readonly string[],
    outs: readonly string[],
    attributes: NodeParts["attributes"] = {},
  ) => nodes.push({ op, inputs: ins, outputs: outs, name: outs[0]!, domain: CONTRIB, attributes });

  function product(x: string, name: string, rows: number, columns: number): string {
    const blocks = columns / BLOCK, seed = initializers.length;
    const codes = randomBytes(rows * columns / 2, seed);
    const sizes = Float32Array.from(
      randomBytes(rows * blocks, seed + 1),
      (byte) => (1 + byte / 255) * 0.15 / Math.sqrt(columns),
    );
    node(
      "MatMulNBits",
      [
        x,
        tensor(`${name}.codes`, BYTE, [rows, blocks, BLOCK / 2], codes),
        tensor(`${name}.scales`, FLOAT, [rows * blocks], new Uint8Array(sizes.buffer)),
      ],
      [name],
      { K: { i: columns }, N: { i: rows }, bits: { i: 4 }, block_size: { i: BLOCK } },
    );
    return name;
  }

  const table = Float32Array.from(randomBytes(VOCABULARY * HIDDEN, 7), (byte) => byte / 128 - 1);
  tensor("embedding", FLOAT, [VOCABULARY, HIDDEN], new Uint8Array(table.buffer));
  const angles = (of: (angle: number) => number) =>
    floats(
      ...Array.from({ length: CONTEXT * HEAD / 2 }, (_, i) =>
        of(Math.floor(i / (HEAD / 2)) * 10000 ** (-2 * (i % (HEAD / 2)) / HEAD))),
    );
  const cos = tensor("cos", FLOAT, [CONTEXT, HEAD / 2], angles(Math.cos));
  const sin = tensor("sin", FLOAT, [CONTEXT, HEAD / 2], angles(Math.sin));
  nodes.push({ op: "Gather", inputs: ["embedding", "input_ids"], outputs: ["x0"], name: "embed" });
  nodes.push({
    ...{ op: "SimplifiedLayerNormalization", inputs: ["x0", ones], outputs: ["n0"], name: "norm0" },
    attributes: { epsilon: { f: 1e-5 }, axis: { i: -1 } },
  });
  let x = "x0", normed = "n0";
  const addNorm = (part: string, name: string) => {
    node("SkipSimplifiedLayerNormalization", [x, part, ones], [`${name}.n`, "", "", name], {
      epsilon: { f: 1e-5 },
    });
    [x, normed] = [name, `${name}.n`];
  };
  for (let i = 0; i < LAYERS; i++) {
    const at = `l${i}`;
    const q = product(normed, `${at}.q`, HEADS * HEAD, HIDDEN);
    const k = product(normed, `${at}.k`, KV_HEADS * HEAD, HIDDEN);
    const v = product(normed, `${at}.v`, KV_HEADS * HEAD, HIDDEN);
    const cache = ["key", "value"].map((part) => `past_key_values.${i}.${part}`);
    const present = ["key", "value"].map((part) => `present.${i}.${part}`);
    node(
      "GroupQueryAttention",
      [q, k, v, ...cache, "seqlens_k", "total_sequence_length", cos, sin],
      [
        `${at}.a`,
        ...present,
      ],
      { num_heads: { i: HEADS }, kv_num_heads: { i: KV_HEADS }, do_rotary: { i: 1 } },
    );
    for (const name of present) outputs.push([name, FLOAT, ["batch", KV_HEADS, "sum", HEAD]]);
    addNorm(product(`${at}.a`, `${at}.o`, HIDDEN, HEADS * HEAD), `${at}.x`);
    const gate = product(normed, `${at}.gate`, INNER, HIDDEN);
    const up = product(normed, `${at}.up`, INNER, HIDDEN);
    nodes.push({ op: "Sigmoid", inputs: [gate], outputs: [`${at}.s`], name: `${at}.s` });
    nodes.push({
      op: "Mul",
      inputs: [gate, `${at}.s`],
      outputs: [`${at}.silu`],
      name: `${at}.silu`,
    });
    nodes.push({ op: "Mul", inputs: [`${at}.silu`, up], outputs: [`${at}.g`], name: `${at}.g` });
    addNorm(product(`${at}.g`, `${at}.down`, HIDDEN, INNER), `${at}.y`);
  }
  product(normed, "logits", VOCABULARY, HIDDEN);
  const pasts = Array.from({ length: LAYERS }, (_, i) =>
    ["key", "value"].map((part): Port => [
      `past_key_values.${i}.${part}`,
      FLOAT,
      ["batch", KV_HEADS, "past", HEAD],
    ])).flat();
  return writeOnnx({
    ...{ name: "decoder", nodes, initializers, outputs },
    inputs: [
      ["input_ids", LONG, ["batch", "N"]],
      ["seqlens_k", INT, ["batch"]],
      ["total_sequence_length", INT, []],
      ...pasts,
    ],
  }, { opsets: { "": 17, [CONTRIB]: 1 } });
}
