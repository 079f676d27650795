// Llamas of any size with random weights, as GGUF files: for tests that need whole blocks in every head or more
// memory than a fixture may have, and for benches. What a weight is does not matter, as long as sums stay
// finite: codes are random, scales are powers of two with a random sign and mantissa.

import { formatBytes, getFormat } from "../../quant/mod.ts";
import { getPolicy } from "../../quant/policies.ts";
import { chooseFormat, type QuantPolicy } from "../../quant/policy.ts";
import {
  describeStoredFormats,
  GGUF_HEADER_TENSOR,
  STORED_FORMATS_KEY,
} from "../../engine/formats/stored_formats.ts";
import {
  ggufHeader,
  paddedBytes,
  type TensorSpec,
  type Typed,
  writeSafetensors,
} from "./write_gguf.ts";

/** Sizes of a model. */
export interface LlamaShape {
  readonly layers: number;
  readonly hidden: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  readonly feedForward: number;
  /** At least 260: control tokens and bytes come first. */
  readonly vocabulary: number;
  readonly context: number;
  /** Whether the embedding is the output matrix too. Default false. */
  readonly tiedOutput?: boolean;
  /**
   * Whether every Q4_0 matrix has codes of its own, and those of layers are so large that an answer hangs on all tokens
   * before: a greedy one repeats one or two tokens otherwise. Default false.
   */
  readonly isLively?: boolean;
  /** Whether a file has no tokenizer. Default false. */
  readonly noTokenizer?: boolean;
}

/** Formats of the weights: where in a block the upper bytes of its scales are, and what they are. */
const SCALES: Readonly<Record<string, { readonly at: readonly number[]; readonly top: number }>> = {
  Q4_0: { at: [1], top: 0x18 },
  Q8_0: { at: [1], top: 0x08 },
  Q4_K: { at: [1, 3], top: 0x08 },
  Q5_K: { at: [1, 3], top: 0x04 },
  // Of a signed byte and six bits, so that it is subnormal, as in models.
  Q6_K: { at: [209], top: 0x02 },
  LF8: { at: [3], top: 0x38 },
};

/**
 * Writes a model, tensor by tensor.
 *
 * @param format That of all matrices, or the name of a mixture (quant/policies.ts).
 * @throws {RangeError} On formats other than Q4_0, Q8_0 and those of the K mixtures, which become GGUF files, and
 * LF8, which becomes a safetensors file (engine/formats/stored_formats.ts).
 */
export async function writeRandomLlama(
  path: string,
  shape: LlamaShape,
  format: string,
): Promise<void> {
  const policy = format in SCALES ? { name: format, format, rules: [] } : getPolicy(format);
  const all = tensors(shape, policy);
  using file = await Deno.open(path, { write: true, create: true, truncate: true });
  const writer = file.writable.getWriter();
  const isGguf = getFormat(policy.format).ggmlType !== undefined;
  await writer.write(isGguf ? ggufHeader(metadata(shape), all) : storedHeader(shape, all, format));
  for (const { data } of all) {
    await writer.write(data);
    if (isGguf) await writer.write(new Uint8Array(paddedBytes(data.length) - data.length));
  }
  await writer.close();
}

/** What stands before the tensors' bytes in a safetensors file, a GGUF header for the metadata included. */
function storedHeader(
  shape: LlamaShape,
  all: readonly TensorSpec[],
  format: string,
): Uint8Array<ArrayBuffer> {
  const own = ggufHeader(metadata(shape));
  const stored = new Map(
    all.filter(({ dims }) => dims.length > 1)
      .map(({ name, dims }) => [name, { format, shape: dims.toReversed() }]),
  );
  const header: Record<string, unknown> = {
    __metadata__: { [STORED_FORMATS_KEY]: describeStoredFormats(stored) },
    [GGUF_HEADER_TENSOR]: { dtype: "U8", shape: [own.length], data_offsets: [0, own.length] },
  };
  let at = own.length;
  for (const { name, dims, data } of all) {
    const isStored = stored.has(name);
    header[name] = {
      dtype: isStored ? "U8" : "F32",
      shape: isStored ? [dims[1], data.length / dims[1]!] : dims,
      data_offsets: [at, at += data.length],
    };
  }
  const text = JSON.stringify(header);
  // Elements are aligned where the bytes before them are.
  const padding = " ".repeat((8 - (text.length + own.length) % 8) % 8);
  return writeSafetensors(text + padding, own);
}

function metadata(shape: LlamaShape): Record<string, Typed> {
  const { layers, hidden, heads, kvHeads, headDim, feedForward, vocabulary, context, noTokenizer } =
    shape;
  const sizes: Record<string, Typed> = {
    "general.architecture": ["string", "llama"],
    "general.name": ["string", "random weights"],
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
  };
  return noTokenizer ? sizes : { ...sizes, ...tokenizer(vocabulary) };
}

function tokenizer(vocabulary: number): Record<string, Typed> {
  const tokens = Array.from({ length: vocabulary }, (_, id) => {
    if (id < 3) return ["<unk>", "<s>", "</s>"][id]!;
    if (id < 259) return `<0x${(id - 3).toString(16).toUpperCase().padStart(2, "0")}>`;
    return `▁w${id}`;
  });
  const types = tokens.map((_, id) => id === 0 ? 2 : id < 3 ? 3 : id < 259 ? 6 : 1);
  return {
    "tokenizer.ggml.model": ["string", "llama"],
    "tokenizer.ggml.tokens": ["array", tokens, "string"],
    "tokenizer.ggml.scores": ["array", tokens.map((_, id) => -id), "f32"],
    "tokenizer.ggml.token_type": ["array", types, "i32"],
    "tokenizer.ggml.bos_token_id": ["u32", 1],
    "tokenizer.ggml.eos_token_id": ["u32", 2],
    "tokenizer.ggml.unknown_token_id": ["u32", 0],
  };
}

function tensors(shape: LlamaShape, policy: QuantPolicy): TensorSpec[] {
  const { layers, hidden, heads, kvHeads, headDim, feedForward, vocabulary, tiedOutput = false } =
    shape;
  const largest = hidden * Math.max(vocabulary, feedForward, heads * headDim);
  const blocks = new Map<string, Uint8Array>();
  const model = { layers, queryGroup: heads / kvHeads, tiedOutput };
  const matrix = (base: string, rows: number, columns: number): TensorSpec => {
    const name = `${base}.weight`;
    const format = chooseFormat(policy, { name, shape: [rows, columns] }, model).format!;
    const bytes = blocks.get(format.name) ?? randomBlocks(format.name, largest);
    blocks.set(format.name, bytes);
    const own = formatBytes(format, rows * columns);
    return {
      ...{ name, dims: [columns, rows], type: format.ggmlType ?? 0 },
      data: shape.isLively && format.name === "Q4_0"
        ? lively(name, bytes, own)
        : bytes.subarray(0, own),
    };
  };
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
    ...tiedOutput ? [] : [matrix("output", vocabulary, hidden)],
    ...Array.from({ length: layers }, (_, index) => layer(index)).flat(),
  ];
}

/** Blocks of Q4_0 from a place of random ones that goes by a name; those of layers with scales 8 times as large. */
function lively(name: string, blocks: Uint8Array, length: number): Uint8Array {
  const { blockBytes } = getFormat("Q4_0"), count = Math.floor(blocks.length / blockBytes);
  const hash = [...name].reduce((sum, letter) => sum * 31 + letter.charCodeAt(0) >>> 0, 7);
  const start = hash % count * blockBytes, bytes = new Uint8Array(length);
  const head = Math.min(length, count * blockBytes - start);
  bytes.set(blocks.subarray(start, start + head));
  bytes.set(blocks.subarray(0, length - head), head);
  if (!name.startsWith("blk.")) return bytes;
  for (let at = 1; at < length; at += blockBytes) bytes[at] = 0x24 | (bytes[at]! & 0x83);
  return bytes;
}

/** Random codes; scales of a block are little-endian, with a random sign and mantissa. */
function randomBlocks(format: string, values: number): Uint8Array {
  const scales = SCALES[format];
  if (!scales) throw new RangeError(`No random weights in ${format}`);
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
  for (const first of scales.at) {
    for (let at = first; at < bytes.length; at += blockBytes) {
      bytes[at] = scales.top | (bytes[at]! & 0x80);
    }
  }
  return bytes;
}
