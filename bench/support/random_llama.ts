// The shape of TinyLlama 1.1B with random weights, as a GGUF file that every engine reads: nothing should be
// tuned to models that fit a cache, and a bench should not fetch a gigabyte. Made where temporary files go,
// deleted by the caller. What a weight is does not matter, as long as sums stay finite.

import { formatBytes, getFormat } from "../../quant/mod.ts";
import { type TensorSpec, type Typed, writeGguf } from "../../tests/support/write_gguf.ts";

const SHAPE = {
  ...{ layers: 22, hidden: 2048, heads: 32, kvHeads: 4, headDim: 64 },
  ...{ feedForward: 5632, vocabulary: 32000, context: 8192 },
} as const;

/** Formats of the weights, with the upper byte of the float16 scale that all blocks have. */
const FORMATS: Readonly<Record<string, number>> = { Q4_0: 0x18, Q8_0: 0x08 };
const IDS = 8192;

/** A file that was made, with ids that are no control tokens. */
export interface RandomModel {
  readonly name: string;
  readonly path: string;
  readonly ids: readonly number[];
  readonly isTemporary: true;
}

/** Names under which benches know these models. */
export const RANDOM_MODELS: readonly string[] = Object.keys(FORMATS).map(nameOf);

function nameOf(format: string): string {
  return `tinyllama-${format.toLowerCase()}`;
}

/** Writes the model of that name into the folder for temporary files. */
export async function makeRandomModel(name: string): Promise<RandomModel> {
  const format = Object.keys(FORMATS).find((candidate) => nameOf(candidate) === name);
  if (!format) throw new RangeError(`No random model ${name}: there are ${RANDOM_MODELS}`);
  const path = await Deno.makeTempFile({ prefix: `${name}-`, suffix: ".gguf" });
  await Deno.writeFile(path, writeGguf(metadata(), tensors(format)));
  // Bytes and control tokens come first in the vocabulary.
  const ids = Array.from({ length: IDS }, (_, i) => 300 + i * 7919 % (SHAPE.vocabulary - 300));
  return { name, path, ids, isTemporary: true };
}

function metadata(): Record<string, Typed> {
  const { layers, hidden, heads, kvHeads, headDim, feedForward, vocabulary, context } = SHAPE;
  const tokens = Array.from({ length: vocabulary }, (_, id) => {
    if (id < 3) return ["<unk>", "<s>", "</s>"][id]!;
    if (id < 259) return `<0x${(id - 3).toString(16).toUpperCase().padStart(2, "0")}>`;
    return `▁w${id}`;
  });
  const types = tokens.map((_, id) => id === 0 ? 2 : id < 3 ? 3 : id < 259 ? 6 : 1);
  return {
    "general.architecture": ["string", "llama"],
    "general.name": ["string", "random weights in the shape of TinyLlama 1.1B"],
    "llama.block_count": ["u32", layers],
    "llama.context_length": ["u32", context],
    "llama.embedding_length": ["u32", hidden],
    "llama.feed_forward_length": ["u32", feedForward],
    "llama.attention.head_count": ["u32", heads],
    "llama.attention.head_count_kv": ["u32", kvHeads],
    "llama.attention.layer_norm_rms_epsilon": ["f32", 1e-5],
    "llama.rope.dimension_count": ["u32", headDim],
    "llama.rope.freq_base": ["f32", 10_000],
    "llama.vocab_size": ["u32", vocabulary],
    "tokenizer.ggml.model": ["string", "llama"],
    "tokenizer.ggml.tokens": ["array", tokens, "string"],
    "tokenizer.ggml.scores": ["array", tokens.map((_, id) => -id), "f32"],
    "tokenizer.ggml.token_type": ["array", types, "i32"],
    "tokenizer.ggml.bos_token_id": ["u32", 1],
    "tokenizer.ggml.eos_token_id": ["u32", 2],
    "tokenizer.ggml.unknown_token_id": ["u32", 0],
  };
}

function tensors(format: string): TensorSpec[] {
  const { layers, hidden, heads, kvHeads, headDim, feedForward, vocabulary } = SHAPE;
  const blocks = randomBlocks(format, hidden * vocabulary);
  const matrix = (name: string, rows: number, columns: number): TensorSpec => ({
    name: `${name}.weight`,
    dims: [columns, rows],
    type: getFormat(format).ggmlType!,
    data: blocks.subarray(0, formatBytes(getFormat(format), rows * columns)),
  });
  const ones = new Uint8Array(new Float32Array(hidden).fill(1).buffer);
  const norm = (name: string): TensorSpec => ({
    ...{ name: `${name}.weight`, dims: [hidden], type: 0, data: ones },
  });
  const layer = (index: number): TensorSpec[] => {
    const at = `blk.${index}`;
    return [
      norm(`${at}.attn_norm`),
      matrix(`${at}.attn_q`, heads * headDim, hidden),
      matrix(`${at}.attn_k`, kvHeads * headDim, hidden),
      matrix(`${at}.attn_v`, kvHeads * headDim, hidden),
      matrix(`${at}.attn_output`, hidden, heads * headDim),
      norm(`${at}.ffn_norm`),
      matrix(`${at}.ffn_gate`, feedForward, hidden),
      matrix(`${at}.ffn_up`, feedForward, hidden),
      matrix(`${at}.ffn_down`, hidden, feedForward),
    ];
  };
  return [
    matrix("token_embd", vocabulary, hidden),
    norm("output_norm"),
    matrix("output", vocabulary, hidden),
    ...Array.from({ length: layers }, (_, index) => layer(index)).flat(),
  ];
}

/** Random codes; the scale stands first in a block, little-endian, with a random sign and mantissa. */
function randomBlocks(format: string, values: number): Uint8Array {
  const { blockBytes } = getFormat(format);
  const words = new Uint32Array(Math.ceil(formatBytes(getFormat(format), values) / 4));
  let state = 1;
  for (let i = 0; i < words.length; i++) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    words[i] = state;
  }
  const bytes = new Uint8Array(words.buffer);
  for (let at = 1; at < bytes.length; at += blockBytes) {
    bytes[at] = FORMATS[format]! | (bytes[at]! & 0x80);
  }
  return bytes;
}
