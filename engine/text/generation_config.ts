// generation_config.json: how transformers' generate() goes about it. What a model's answers need is read; what a
// caller chooses here by options of its own is not taken over in silence: settings that would make other tokens
// likely, or forbid some, are told.

import { checkFields, type FieldTable, rows } from "../formats/field_table.ts";
import type { WeightFile } from "../formats/source.ts";
import { asObject, idsOf, readJson } from "../formats/strict_json.ts";

const FILE = "generation_config.json";

const choice = { harmless: "how tokens are chosen is the caller's option" };
const effort = { harmless: "how it is computed, not what" };
const output = { harmless: "what is given back is the caller's choice" };
const draft = { harmless: "drafts change no token" };
const unbuilt = { idle: "it is not built; generate() has logitBias, penalties and stop texts" };

/** Every field of transformers' GenerationConfig, and two of Baichuan's own. */
export const GENERATION_FIELDS: FieldTable = {
  eos_token_id: "read",
  decoder_start_token_id: "read",
  bos_token_id: { harmless: "the tokenizer says what a text begins with" },
  pad_token_id: { harmless: "nothing is padded" },
  ...rows(choice, "do_sample", "temperature", "top_k", "top_p", "min_p", "top_h", "typical_p"),
  ...rows(choice, "epsilon_cutoff", "eta_cutoff", "repetition_penalty", "num_beams"),
  ...rows(choice, "length_penalty"),
  ...rows(choice, "early_stopping", "max_length", "max_new_tokens", "max_time", "chat_format"),
  ...rows(choice, "num_return_sequences", "num_beam_groups", "diversity_penalty"),
  ...rows(effort, "use_cache", "cache_implementation", "cache_config", "max_cache_len"),
  ...rows(effort, "low_memory"),
  ...rows(effort, "compile_config", "disable_compile", "prefill_chunk_size"),
  ...rows(effort, "continuous_batching_config", "renormalize_logits", "remove_invalid_values"),
  ...rows(output, "output_*", "return_dict_in_generate"),
  ...rows(draft, "assistant_*", "is_assistant", "num_assistant_tokens*"),
  ...rows(draft, "prompt_lookup_num_tokens"),
  ...rows(draft, "max_matching_ngram_size", "target_lookbehind", "speculation_type", "use_mtp"),
  ...rows({ harmless: "who wrote it" }, "transformers_version", "_from_model_config"),
  ...rows(
    { harmless: "Inferflow's configuration reads it" },
    "user_token_id",
    "assistant_token_id",
  ),
  ...rows(unbuilt, "bad_words_ids", "suppress_tokens", "begin_suppress_tokens", "sequence_bias"),
  ...rows(unbuilt, "forced_bos_token_id", "forced_eos_token_id", "forced_decoder_ids"),
  ...rows(unbuilt, "constraints"),
  ...rows(unbuilt, "force_words_ids", "no_repeat_ngram_size", "encoder_no_repeat_ngram_size"),
  ...rows(unbuilt, "encoder_repetition_penalty", "exponential_decay_length_penalty"),
  ...rows(unbuilt, "min_length", "min_new_tokens", "guidance_scale", "penalty_alpha"),
  ...rows(unbuilt, "dola_layers"),
  ...rows(unbuilt, "watermarking_config", "token_healing", "stop_strings"),
};

/** Fields of speech recognisers, which transcribe() reads (formats/media/speech_config.ts) or has options for. */
const SPEECH_FIELDS: FieldTable = {
  ...rows("read", "lang_to_id", "task_to_id", "is_multilingual", "no_timestamps_token_id"),
  ...rows("read", "prev_sot_token_id", "max_initial_timestamp_index", "alignment_heads"),
  ...rows("read", "suppress_tokens", "begin_suppress_tokens"),
  forced_decoder_ids: { harmless: "language and task are options of transcribe()" },
  ...rows({ harmless: "transcribe() has options for it" }, "return_timestamps", "language", "task"),
  ...rows({ harmless: "transcribe() has options for it" }, "condition_on_prev_tokens"),
  ...rows({ harmless: "transcribe() has options for it" }, "*_threshold"),
};

/** What the files of a model say of its answers. */
export interface GenerationFacts {
  /** Ids that end an answer, beside those of the tokenizer. */
  readonly endIds: readonly number[];
  /** Token with which the target of an encoder-decoder begins. */
  readonly targetStart: number | undefined;
  /** One sentence for each setting that has no effect. */
  readonly warnings: readonly string[];
}

/**
 * Reads it. A token that it does not name is taken from config.json, as transformers does.
 *
 * @throws {FormatError} If it is not JSON.
 */
export async function readGenerationConfig(
  file: Pick<WeightFile, "name" | "metadata" | "readText">,
): Promise<GenerationFacts> {
  const own = asObject(await readJson(file, FILE)) ?? {};
  const config = Object.fromEntries(file.metadata);
  const text = asObject(config.text_config) ?? {};
  const first = (key: string) => [own, config, text].find((json) => json[key] != null)?.[key];
  return {
    endIds: idsOf(first("eos_token_id")),
    targetStart: idsOf(first("decoder_start_token_id"))[0],
    warnings: checkFields(own, {
      ...GENERATION_FIELDS,
      ...own.no_timestamps_token_id !== undefined && SPEECH_FIELDS,
    }, { file: file.name, place: FILE }),
  };
}
