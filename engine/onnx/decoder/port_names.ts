// What exporters call the inputs and outputs of language models, as data: the export scripts of the
// Transformer-Lite kind (TL-15), Optimum, and onnxruntime-genai. A name says the role and nothing else; which
// axis is which is read from the declared dims (ports.ts), so layouts need no table. To serve another
// exporter, add its names here.

/** What an input or output other than a cache is for. */
export type PortRole =
  | "tokens"
  | "hidden"
  | "mask"
  | "positions"
  | "cachePositions"
  | "lastKeys"
  | "totalLength"
  | "useCache"
  | "source";

/** Role of an input by name; `floats` tells apart what shares a name. */
export interface InputName {
  readonly name: string;
  readonly role: PortRole;
  /** True: only for inputs of floats; false: only for others; absent: for any. */
  readonly floats?: boolean;
}

/** Inputs that are no caches. */
export const INPUT_NAMES: readonly InputName[] = [
  { name: "input_ids", role: "tokens" },
  { name: "input", role: "tokens", floats: false },
  { name: "input", role: "hidden", floats: true },
  { name: "hidden_in", role: "hidden" },
  { name: "inputs_embeds", role: "hidden" },
  { name: "attention_mask", role: "mask" },
  { name: "position_ids", role: "positions" },
  { name: "cache_position", role: "cachePositions" },
  { name: "seqlens_k", role: "lastKeys" },
  { name: "total_sequence_length", role: "totalLength" },
  { name: "use_cache_branch", role: "useCache" },
  { name: "encoder_hidden_states", role: "source" },
];

/** Names of a cache before and after a step; `#` is the layer. */
export interface CacheName {
  readonly past: string;
  readonly present: string;
}

/** Caches of keys and values. */
export const CACHE_NAMES: readonly CacheName[] = [
  { past: "past_key_in#", present: "past_key#" },
  { past: "past_value_in#", present: "past_value#" },
  { past: "past_key_values.#.key", present: "present.#.key" },
  { past: "past_key_values.#.value", present: "present.#.value" },
  { past: "past_key_values.#.key", present: "present_key_values.#.key" },
  { past: "past_key_values.#.value", present: "present_key_values.#.value" },
  { past: "past_key_#", present: "present_key_#" },
  { past: "past_value_#", present: "present_value_#" },
  { past: "past_key_values.#.decoder.key", present: "present.#.decoder.key" },
  { past: "past_key_values.#.decoder.value", present: "present.#.decoder.value" },
  { past: "past_#_key", present: "present_#_key" },
  { past: "past_#_value", present: "present_#_value" },
];

/** Keys and values that a first step makes of what an encoder gives, and that the later ones take. */
export const MEMORY_NAMES: readonly CacheName[] = [
  { past: "past_key_values.#.encoder.key", present: "present.#.encoder.key" },
  { past: "past_key_values.#.encoder.value", present: "present.#.encoder.value" },
];

/** What a layer of a decoder looks at in its source, for times of words: f32[1, heads, tokens, positions]. */
export const LOOK_NAME = "cross_attentions.#";

/** Logits, or the hidden state that the next file of a split model takes; the first that is there. */
export const RESULT_NAMES: readonly string[] = ["lm_logits", "logits", "hidden_out", "output"];

/** The best tokens of a row, for models that give out no more: values and ids, or the best id alone. */
export const BEST_NAMES: readonly { readonly values?: string; readonly ids: string }[] = [
  { values: "logits_topk_value", ids: "logits_topk_idx" },
  { ids: "topk_indices" },
];

/** Names of the dim that is the number of sequences, which is 1 here. */
export const BATCH_NAMES: ReadonlySet<string> = new Set(["batch", "batch_size"]);

/** Ops that find the end of the past by the mask, so that a cache may have room behind it. */
export const BUFFERED_OPS: ReadonlySet<string> = new Set(["GroupQueryAttention"]);
