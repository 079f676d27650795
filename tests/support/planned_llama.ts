// Models of a shape alone: what is planned of them needs no bytes.

import { formatBytes, getFormat } from "../../quant/mod.ts";
import type { MetadataValue, TensorInfo, WeightFile } from "../../engine/formats/source.ts";
import { prepareModel } from "../../engine/models/prepare.ts";
import type { Plan } from "../../engine/plan/plan.ts";
import { openDevice } from "../../engine/run/devices.ts";

/** A Llama whose tensors have no bytes. */
export async function planLlama(
  { layers, hidden, heads, kvHeads, feedForward, vocabulary, formatOf }: {
    readonly layers: number;
    readonly hidden: number;
    readonly heads: number;
    readonly kvHeads: number;
    readonly feedForward: number;
    readonly vocabulary: number;
    readonly formatOf: (name: string) => string;
  },
): Promise<Plan> {
  const metadata = new Map<string, MetadataValue>(Object.entries({
    "general.architecture": "llama",
    "llama.block_count": layers,
    "llama.embedding_length": hidden,
    "llama.attention.head_count": heads,
    "llama.attention.head_count_kv": kvHeads,
    "llama.feed_forward_length": feedForward,
    "llama.vocab_size": vocabulary,
    "llama.context_length": 256,
    "llama.rope.dimension_count": hidden / heads,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
  }));
  const tensors = new Map<string, TensorInfo>();
  const source = { name: "none", file: "none", size: 2 ** 40, readInto() {}, close() {} };
  let offset = 0;
  const add = (name: string, ...shape: number[]) => {
    const format = shape.length === 1 ? "F32" : formatOf(name);
    const byteLength = formatBytes(getFormat(format), shape.reduce((a, b) => a * b));
    tensors.set(name, { name, shape, format, source, offset, byteLength });
    offset += byteLength;
  };
  const kv = hidden / heads * kvHeads;
  add("token_embd.weight", vocabulary, hidden);
  add("output_norm.weight", hidden);
  add("output.weight", vocabulary, hidden);
  for (let layer = 0; layer < layers; layer++) {
    const at = `blk.${layer}`;
    add(`${at}.attn_norm.weight`, hidden);
    add(`${at}.attn_q.weight`, hidden, hidden);
    add(`${at}.attn_k.weight`, kv, hidden);
    add(`${at}.attn_v.weight`, kv, hidden);
    add(`${at}.attn_output.weight`, hidden, hidden);
    add(`${at}.ffn_norm.weight`, hidden);
    add(`${at}.ffn_gate.weight`, feedForward, hidden);
    add(`${at}.ffn_up.weight`, feedForward, hidden);
    add(`${at}.ffn_down.weight`, hidden, feedForward);
  }
  const file: WeightFile = { kind: "gguf", name: "none", metadata, tensors, close() {} };
  const kernels = await openDevice("wasm", {});
  return (await prepareModel(file, { options: {}, kernels })).plan;
}

/** TinyLlama in the INT8 of LlamaF [LF-8]. */
export const LLAMAF_TINY = {
  ...{ layers: 22, hidden: 2048, heads: 32, kvHeads: 4, feedForward: 5632, vocabulary: 32_000 },
  formatOf: () => "LF8",
};

/** Weights in memory are as in their file, and loaded beside the rest. */
export const IN_FILE = {
  bytesOf: ({ tensor }: { readonly tensor?: TensorInfo }) => tensor!.byteLength,
  loadsAside: () => true,
};
