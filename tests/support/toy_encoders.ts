// Toy encoders for tests: a tokenizer of words "w0", "w1", … whose number is their id, and a fixture with a
// classification head on top.

import { type TensorSpec, writeGguf } from "./write_gguf.ts";
import { createCaseRandom } from "../../engine/ops/case_random.ts";

const VOCABULARY = 128;
const CONTROL: Readonly<Record<string, number>> = {
  "[PAD]": 0,
  "[CLS]": 1,
  "[SEP]": 2,
  "[MASK]": 4,
};
const LANGUAGES: Readonly<Record<string, number>> = { "__w5__": 105, "__w6__": 106 };

/**
 * Writes tokenizer.json: [CLS] … [SEP], or with `isSource` … [SEP] and two languages, as M2M100 has them.
 */
export function writeWordTokenizer(folder: string, isSource = false): void {
  const control = isSource ? { ...CONTROL, ...LANGUAGES } : CONTROL;
  const named = Object.fromEntries(Object.entries(control).map(([token, id]) => [id, token]));
  const words = Array.from({ length: VOCABULARY }, (_, id) => [named[id] ?? `w${id}`, id]);
  const token = (id: string) => ({ SpecialToken: { id, type_id: 0 } });
  const special = (id: string) => [id, { id, ids: [control[id]], tokens: [id] }];
  const text = { Sequence: { id: "A", type_id: 0 } };
  const tokenizer = {
    version: "1.0",
    added_tokens: Object.entries(control).map(([content, id]) => ({
      ...{ id, content, special: true, normalized: false },
      ...{ single_word: false, lstrip: false, rstrip: false },
    })),
    pre_tokenizer: { type: "Whitespace" },
    normalizer: null,
    post_processor: {
      type: "TemplateProcessing",
      single: isSource ? [text, token("[SEP]")] : [token("[CLS]"), text, token("[SEP]")],
      pair: [text, token("[SEP]"), { Sequence: { id: "B", type_id: 1 } }, token("[SEP]")],
      special_tokens: Object.fromEntries(["[CLS]", "[SEP]"].map(special)),
    },
    decoder: { type: "WordPiece", prefix: "##", cleanup: false },
    model: {
      ...{ type: "WordPiece", unk_token: "w3", continuing_subword_prefix: "##" },
      ...{ max_input_chars_per_word: 100, vocab: Object.fromEntries(words) },
    },
  };
  Deno.writeTextFileSync(`${folder}/tokenizer.json`, JSON.stringify(tokenizer));
  const config = { eos_token: "[SEP]", cls_token: "[CLS]", tokenizer_class: "BertTokenizer" };
  Deno.writeTextFileSync(`${folder}/tokenizer_config.json`, JSON.stringify(config));
}

/** Names of BERT's tensors as GGUF writes them, by the middle part of their usual names. */
const GGUF_NAMES: readonly (readonly [RegExp, string])[] = [
  [/^bert\.embeddings\.word_embeddings/, "token_embd"],
  [/^bert\.embeddings\.position_embeddings/, "position_embd"],
  [/^bert\.embeddings\.token_type_embeddings/, "token_types"],
  [/^bert\.embeddings\.LayerNorm/, "token_embd_norm"],
  [/^bert\.encoder\.layer\.(\d+)\.attention\.self\.query/, "blk.$1.attn_q"],
  [/^bert\.encoder\.layer\.(\d+)\.attention\.self\.key/, "blk.$1.attn_k"],
  [/^bert\.encoder\.layer\.(\d+)\.attention\.self\.value/, "blk.$1.attn_v"],
  [/^bert\.encoder\.layer\.(\d+)\.attention\.output\.dense/, "blk.$1.attn_output"],
  [/^bert\.encoder\.layer\.(\d+)\.attention\.output\.LayerNorm/, "blk.$1.attn_output_norm"],
  [/^bert\.encoder\.layer\.(\d+)\.intermediate\.dense/, "blk.$1.ffn_up"],
  [/^bert\.encoder\.layer\.(\d+)\.output\.dense/, "blk.$1.ffn_down"],
  [/^bert\.encoder\.layer\.(\d+)\.output\.LayerNorm/, "blk.$1.layer_output_norm"],
];

/** A BERT fixture as a GGUF file, which holds no head for masks. */
export function bertAsGguf(fixture: string, poolingType: number): Uint8Array<ArrayBuffer> {
  const bytes = Deno.readFileSync(`${fixture}/model.safetensors`);
  const size = Number(new DataView(bytes.buffer).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + size)));
  const config = JSON.parse(Deno.readTextFileSync(`${fixture}/config.json`));
  const tensors: TensorSpec[] = [];
  for (const [usual, entry] of Object.entries(header)) {
    const rule = GGUF_NAMES.find(([pattern]) => pattern.test(usual));
    if (!rule) continue;
    const { shape, data_offsets: [from, to] } = entry as SafetensorsEntry;
    const data = bytes.subarray(8 + size + from, 8 + size + to);
    const dims = shape.toReversed();
    tensors.push({ name: usual.replace(...rule), dims, type: 1, data }); // F16
  }
  return writeGguf({
    "general.architecture": ["string", "bert"],
    "bert.block_count": ["u32", config.num_hidden_layers],
    "bert.context_length": ["u32", config.max_position_embeddings],
    "bert.embedding_length": ["u32", config.hidden_size],
    "bert.feed_forward_length": ["u32", config.intermediate_size],
    "bert.attention.head_count": ["u32", config.num_attention_heads],
    "bert.attention.layer_norm_epsilon": ["f32", config.layer_norm_eps],
    "bert.attention.causal": ["bool", false],
    "bert.pooling_type": ["u32", poolingType],
    "tokenizer.ggml.token_type_count": ["u32", config.type_vocab_size],
  }, tensors);
}

interface SafetensorsEntry {
  readonly shape: readonly number[];
  readonly data_offsets: readonly [number, number];
}

/** A folder, and what its head gives for a first row. */
export interface ToyClassifier {
  readonly folder: string;
  expected(row: Float32Array): number[];
}

/** Adds a random head to a BERT fixture. */
export function writeToyClassifier(fixture: string, labels: number): ToyClassifier {
  const bytes = Deno.readFileSync(`${fixture}/model.safetensors`);
  const size = Number(new DataView(bytes.buffer).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + size)));
  const config = JSON.parse(Deno.readTextFileSync(`${fixture}/config.json`));
  const width: number = config.hidden_size;
  const random = createCaseRandom(5);
  const added = {
    "bert.pooler.dense.weight": { shape: [width, width], data: random.normal(width * width, 0.2) },
    "bert.pooler.dense.bias": { shape: [width], data: random.normal(width, 0.2) },
    "classifier.weight": { shape: [labels, width], data: random.normal(labels * width) },
    "classifier.bias": { shape: [labels], data: random.normal(labels) },
  };
  const body = bytes.subarray(8 + size);
  let end = body.length;
  for (const [name, { shape, data }] of Object.entries(added)) {
    header[name] = { dtype: "F32", shape, data_offsets: [end, end += data.byteLength] };
  }
  const folder = Deno.makeTempDirSync();
  const text = new TextEncoder().encode(JSON.stringify(header));
  const file = new Uint8Array(8 + text.length + end);
  new DataView(file.buffer).setBigUint64(0, BigInt(text.length), true);
  file.set(text, 8);
  file.set(body, 8 + text.length);
  let at = 8 + text.length + body.length;
  for (const { data } of Object.values(added)) {
    file.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), at);
    at += data.byteLength;
  }
  Deno.writeFileSync(`${folder}/model.safetensors`, file);
  const id2label = labels === 3 ? { 0: "low", 1: "middle", 2: "high" } : { 0: "LABEL_0" };
  Deno.writeTextFileSync(`${folder}/config.json`, JSON.stringify({ ...config, id2label }));

  const linear = (x: readonly number[], weight: Float32Array, bias: Float32Array) =>
    Array.from(
      bias,
      (start, row) => x.reduce((sum, value, i) => sum + value * weight[row * x.length + i]!, start),
    );
  const [dense, denseBias, out, outBias] = Object.values(added).map(({ data }) => data);
  return {
    folder,
    expected: (row) => linear(linear([...row], dense!, denseBias!).map(Math.tanh), out!, outBias!),
  };
}
