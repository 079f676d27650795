// Fields of genai_config.json, as onnxruntime-genai reads them, and what becomes of each. Those of config.json change
// nothing of a graph, which computes what they say; decoder/config.ts reads the facts among them.

import { checkFields, type FieldTable, rows } from "../../formats/field_table.ts";
import type { MetadataValue } from "../../formats/source.ts";
import { asObject } from "../../formats/strict_json.ts";

const graph = { harmless: "the graph itself says it" };
const choice = { harmless: "how tokens are chosen is the caller's option" };
const device = { harmless: "how it is computed, not what" };
const other = { idle: "only the decoder of a text is run" };

const ROOT: FieldTable = { model: "read", search: choice, engine: device };
const MODEL: FieldTable = {
  ...rows("read", "type", "context_length", "vocab_size", "eos_token_id", "decoder"),
  ...rows({ harmless: "no text is encoded by it" }, "bos_token_id", "pad_token_id"),
  ...rows({ harmless: "no text is encoded by it" }, "sep_token_id", "*_token_id"),
  ...rows(other, "encoder", "encoder_decoder_init", "embedding", "vision", "speech", "joiner"),
  decoder_start_token_id: { idle: "a text begins as its tokenizer says" },
};
const DECODER: FieldTable = {
  ...rows("read", "hidden_size", "num_attention_heads"),
  ...rows(graph, "head_size", "num_key_value_heads", "num_hidden_layers", "inputs", "outputs"),
  filename: { harmless: "the file that is loaded is the caller's choice" },
  ...rows(device, "session_options", "run_options", "compile_options"),
  pipeline: { idle: "the file that was given is run alone" },
  sliding_window: { idle: "prompts are computed whole, and the graph says how far a token sees" },
};

type Json = Readonly<Record<string, MetadataValue>>;

/** One sentence for each field that asks for something that is not done. */
export function checkGenaiFields(json: Json, file: string): string[] {
  const model = asObject(json.model) ?? {}, decoder = asObject(model.decoder) ?? {};
  const levels = [
    ["", json, ROOT],
    ["model.", model, MODEL],
    ["model.decoder.", decoder, DECODER],
  ] as const;
  return levels.flatMap(([prefix, fields, table]) =>
    checkFields(fields, table, { file, place: "genai_config.json" })
      .map((told) => told.replace(": ", `: ${prefix}`))
  );
}
