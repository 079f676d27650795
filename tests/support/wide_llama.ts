// A Llama of random weights whose rows are 256 long, so that formats with the longest blocks can store it.

import { randomValues } from "./weights.ts";
import { f32Bytes, type TensorSpec, type Typed, writeGguf } from "./write_gguf.ts";

const HIDDEN = 256, LAYERS = 1, HEADS = 4, FEED_FORWARD = 512, VOCABULARY = 260;

/** The bytes of the model as a GGUF file of float32. */
export function wideLlama(): Uint8Array {
  return writeGguf(METADATA, [
    matrix("token_embd", VOCABULARY, HIDDEN),
    norm("output_norm"),
    matrix("output", VOCABULARY, HIDDEN),
    ...Array.from({ length: LAYERS }, (_, i) => layer(`blk.${i}`)).flat(),
  ]);
}

function layer(at: string): TensorSpec[] {
  return [
    norm(`${at}.attn_norm`),
    ...["q", "k", "v", "output"].map((name) => matrix(`${at}.attn_${name}`, HIDDEN, HIDDEN)),
    norm(`${at}.ffn_norm`),
    matrix(`${at}.ffn_gate`, FEED_FORWARD, HIDDEN),
    matrix(`${at}.ffn_up`, FEED_FORWARD, HIDDEN),
    matrix(`${at}.ffn_down`, HIDDEN, FEED_FORWARD),
  ];
}

function matrix(name: string, rows: number, columns: number): TensorSpec {
  const seed = [...name].reduce((sum, letter) => 31 * sum + letter.charCodeAt(0) | 0, rows);
  const values = randomValues(rows * columns, seed);
  // Normal values alone: outliers would decide every token.
  const data = f32Bytes(
    Array.from(values, (value) => Math.abs(value) > 4 ? 0 : value * columns ** -0.5),
  );
  return { name: `${name}.weight`, dims: [columns, rows], type: 0, data };
}

function norm(name: string): TensorSpec {
  const data = f32Bytes(new Array<number>(HIDDEN).fill(1));
  return { name: `${name}.weight`, dims: [HIDDEN], type: 0, data };
}

/** Three control tokens, bytes, and a word, as SentencePiece has them. */
const TOKENS = Array.from({ length: VOCABULARY }, (_, id) => {
  if (id < 3) return ["<unk>", "<s>", "</s>"][id]!;
  return id < 259 ? `<0x${(id - 3).toString(16).toUpperCase().padStart(2, "0")}>` : "▁a";
});

const METADATA: Readonly<Record<string, Typed>> = {
  "general.architecture": ["string", "llama"],
  "llama.block_count": ["u32", LAYERS],
  "llama.context_length": ["u32", 64],
  "llama.embedding_length": ["u32", HIDDEN],
  "llama.feed_forward_length": ["u32", FEED_FORWARD],
  "llama.attention.head_count": ["u32", HEADS],
  "llama.attention.head_count_kv": ["u32", HEADS],
  "llama.attention.layer_norm_rms_epsilon": ["f32", 1e-5],
  "llama.rope.dimension_count": ["u32", HIDDEN / HEADS],
  "llama.rope.freq_base": ["f32", 10_000],
  "llama.vocab_size": ["u32", VOCABULARY],
  "tokenizer.ggml.model": ["string", "llama"],
  "tokenizer.ggml.tokens": ["array", TOKENS, "string"],
  "tokenizer.ggml.scores": ["array", TOKENS.map((_, id) => -id), "f32"],
  "tokenizer.ggml.token_type": [
    "array",
    TOKENS.map((_, id) => id === 0 ? 2 : id < 3 ? 3 : id < 259 ? 6 : 1),
    "i32",
  ],
  "tokenizer.ggml.bos_token_id": ["u32", 1],
  "tokenizer.ggml.eos_token_id": ["u32", 2],
  "tokenizer.ggml.unknown_token_id": ["u32", 0],
};
