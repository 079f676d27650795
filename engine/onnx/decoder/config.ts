// What the texts beside an ONNX decoder say of it: config.json (Hugging Face) and genai_config.json
// (onnxruntime-genai). All of them may be missing; the graph then speaks for itself.

import type { OnnxFile } from "../file/onnx_file.ts";
import type { MetadataValue } from "../../formats/source.ts";
import { TEXT, whole } from "../../record.ts";
import { asObject, idsOf, readJson } from "../../formats/strict_json.ts";
import { checkGenaiFields } from "./genai_fields.ts";

/** Facts that a graph does not state. */
export interface DecoderConfig {
  readonly architecture: string | undefined;
  /** Positions it was trained for. */
  readonly context: number | undefined;
  readonly vocabulary: number | undefined;
  readonly hidden: number | undefined;
  readonly heads: number | undefined;
  readonly feedForward: number | undefined;
  /** Tokens that end a text, beside those that Hugging Face's files name. */
  readonly endIds: readonly number[];
  /** What the files ask for and does not happen; one sentence each. */
  readonly warnings: readonly string[];
}

type Json = Readonly<Record<string, MetadataValue>>;

/** @throws {FormatError} If one of the files is not JSON. */
export async function readDecoderConfig(file: OnnxFile): Promise<DecoderConfig> {
  const config: Json = Object.fromEntries(file.metadata);
  const genai = asObject(await readJson(file, "genai_config.json")) ?? {};
  const model = asObject(genai.model) ?? {}, decoder = asObject(model.decoder) ?? {};
  const first = (...values: (MetadataValue | undefined)[]) => values.find(SIZE.accepts);
  const architecture = [config.model_type, model.type].find(TEXT.accepts);
  return {
    architecture,
    context: first(
      config.max_position_embeddings,
      config.n_positions,
      config.seq_length,
      config.max_target_positions,
      model.context_length,
    ),
    vocabulary: first(config.vocab_size, config.padded_vocab_size, model.vocab_size),
    hidden: first(config.hidden_size, config.n_embd, config.d_model, decoder.hidden_size),
    heads: first(
      ...[config.num_attention_heads, config.n_head, decoder.num_attention_heads],
      config.decoder_attention_heads,
    ),
    feedForward: first(config.intermediate_size, config.ffn_hidden_size, config.decoder_ffn_dim),
    endIds: idsOf(model.eos_token_id),
    warnings: checkGenaiFields(genai, file.name),
  };
}

const SIZE = whole("", { least: 1 });
