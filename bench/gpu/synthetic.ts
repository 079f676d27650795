// Models of known shapes with random weights, made while they are read: a bench of speed needs no download, and
// what a weight is does not matter as long as it is not zero. Weights are Q4_0 (4 bits, a scale per 32), as
// the peers' figures are.

import type { ByteSource } from "../../engine/byte_source.ts";
import type { MetadataValue, TensorInfo, WeightFile } from "../../engine/formats/source.ts";
import { formatBytes, getFormat } from "../../quant/mod.ts";

/** Sizes of a Llama. */
export interface LlamaShape {
  readonly name: string;
  readonly layers: number;
  readonly hidden: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  readonly feedForward: number;
  readonly vocabulary: number;
  /** Whether the head is the embedding. */
  readonly tied: boolean;
}

/** The shapes that the goals speak of, and one that runs on the software adapter. */
export const SHAPES: readonly LlamaShape[] = [
  {
    ...{ name: "smollm2", layers: 30, hidden: 576, heads: 9, kvHeads: 3, headDim: 64 },
    ...{ feedForward: 1536, vocabulary: 49152, tied: true },
  },
  {
    ...{ name: "1b", layers: 16, hidden: 2048, heads: 32, kvHeads: 8, headDim: 64 },
    ...{ feedForward: 8192, vocabulary: 128256, tied: true },
  },
  {
    ...{ name: "8b", layers: 32, hidden: 4096, heads: 32, kvHeads: 8, headDim: 128 },
    ...{ feedForward: 14336, vocabulary: 128256, tied: false },
  },
  {
    ...{ name: "tiny", layers: 2, hidden: 256, heads: 4, kvHeads: 2, headDim: 64 },
    ...{ feedForward: 512, vocabulary: 1000, tied: true },
  },
];

const PATTERN_BLOCKS = 1 << 14;
const CONTEXT = 131_072;

/** A file of that shape. */
export function syntheticLlama(shape: LlamaShape): WeightFile {
  const { layers, hidden, heads, kvHeads, headDim, feedForward, vocabulary, tied } = shape;
  const metadata = new Map<string, MetadataValue>(Object.entries({
    "general.architecture": "llama",
    "general.name": `random ${shape.name}`,
    "llama.block_count": layers,
    "llama.embedding_length": hidden,
    "llama.attention.head_count": heads,
    "llama.attention.head_count_kv": kvHeads,
    "llama.attention.key_length": headDim,
    "llama.attention.value_length": headDim,
    "llama.feed_forward_length": feedForward,
    "llama.vocab_size": vocabulary,
    "llama.context_length": CONTEXT,
    "llama.rope.freq_base": 500_000,
    "llama.rope.dimension_count": headDim,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
  }));
  const tensors = new Map<string, TensorInfo>();
  const add = (name: string, size: readonly number[]) => {
    tensors.set(name, size.length === 1 ? norm(name, size[0]!) : matrix(name, size));
  };
  add("token_embd.weight", [vocabulary, hidden]);
  add("output_norm.weight", [hidden]);
  if (!tied) add("output.weight", [vocabulary, hidden]);
  for (let layer = 0; layer < layers; layer++) {
    const at = `blk.${layer}`;
    add(`${at}.attn_norm.weight`, [hidden]);
    add(`${at}.attn_q.weight`, [heads * headDim, hidden]);
    add(`${at}.attn_k.weight`, [kvHeads * headDim, hidden]);
    add(`${at}.attn_v.weight`, [kvHeads * headDim, hidden]);
    add(`${at}.attn_output.weight`, [hidden, heads * headDim]);
    add(`${at}.ffn_norm.weight`, [hidden]);
    add(`${at}.ffn_gate.weight`, [feedForward, hidden]);
    add(`${at}.ffn_up.weight`, [feedForward, hidden]);
    add(`${at}.ffn_down.weight`, [hidden, feedForward]);
  }
  return { kind: "gguf", name: `random ${shape.name}`, metadata, tensors, close() {} };
}

function norm(name: string, width: number): TensorInfo {
  const bytes = new Uint8Array(new Float32Array(width).fill(1).buffer);
  const source = sourceOf(
    name,
    bytes.length,
    (offset, target) => target.set(bytes.subarray(offset, offset + target.length)),
  );
  return { name, shape: [width], format: "F32", source, offset: 0, byteLength: bytes.length };
}

function matrix(name: string, shape: readonly number[]): TensorInfo {
  const format = getFormat("Q4_0");
  const byteLength = formatBytes(format, shape.reduce((a, b) => a * b));
  // Every tensor begins elsewhere in the pattern.
  const start = [...name].reduce((sum, letter) => sum * 31 + letter.charCodeAt(0) >>> 0, 7) %
      PATTERN_BLOCKS * format.blockBytes;
  const source = sourceOf(name, byteLength, (offset, target) => {
    const bytes = pattern();
    for (let done = 0; done < target.length;) {
      const at = (start + offset + done) % bytes.length;
      const take = Math.min(bytes.length - at, target.length - done);
      target.set(bytes.subarray(at, at + take), done);
      done += take;
    }
  });
  return { name, shape, format: format.name, source, offset: 0, byteLength };
}

function sourceOf(
  name: string,
  size: number,
  readInto: (offset: number, target: Uint8Array) => void,
): ByteSource {
  return { name: `random ${name}`, size, readInto, close() {} };
}

let made: Uint8Array | undefined;

/** Random blocks of Q4_0, with scales that keep activations of the order of one. */
function pattern(): Uint8Array {
  if (made) return made;
  const { blockBytes } = getFormat("Q4_0");
  const bytes = new Uint8Array(PATTERN_BLOCKS * blockBytes);
  let state = 1;
  for (let i = 0; i < bytes.length; i++) {
    state = Math.imul(state, 1664525) + 1013904223 >>> 0;
    bytes[i] = state >>> 24;
  }
  for (let block = 0; block < PATTERN_BLOCKS; block++) {
    bytes[block * blockBytes + 1] = 0x18 | (bytes[block * blockBytes + 1]! & 0x80); // about ±0.002
  }
  return made = bytes;
}
