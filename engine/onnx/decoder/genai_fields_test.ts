// A field of genai_config.json is read, harmless for a reason, or told, whatever its value; one that is in no table is told.

import { assertEquals } from "@std/assert";
import { checkGenaiFields } from "./genai_fields.ts";

const HARMLESS = {
  model: {
    ...{ type: "llama", context_length: 64, vocab_size: 11, eos_token_id: [3] },
    ...{ bos_token_id: 1, pad_token_id: 2, sep_token_id: 2, image_token_id: 5 },
    decoder: {
      ...{ hidden_size: 8, num_attention_heads: 2, head_size: 4, num_key_value_heads: 2 },
      ...{ num_hidden_layers: 2, filename: "model.onnx", session_options: { log_id: "x" } },
      ...{ run_options: { x: "y" }, inputs: { input_ids: "ids" }, outputs: { logits: "l" } },
    },
  },
  search: { do_sample: true, top_k: 50, max_length: 64, past_present_share_buffer: true },
  engine: { dynamic_batching: {} },
};

Deno.test("fields of genai_config.json that are read or harmless are no news", () => {
  assertEquals(checkGenaiFields(HARMLESS, "folder"), []);
});

Deno.test("fields that ask for what is not done are told by their path", () => {
  const { model } = HARMLESS;
  const told = (of: Record<string, unknown>) =>
    checkGenaiFields({ ...HARMLESS, model: { ...model, ...of } } as typeof HARMLESS, "folder")
      .map((one) => /^genai_config\.json: (\S+) /.exec(one)?.[1]);
  const decoder = (of: Record<string, unknown>) => told({ decoder: { ...model.decoder, ...of } });
  for (const field of ["encoder", "vision", "speech", "embedding", "joiner", "brand_new"]) {
    assertEquals(told({ [field]: { filename: "x.onnx" } }), [`model.${field}`]);
  }
  assertEquals(told({ decoder_start_token_id: 2 }), ["model.decoder_start_token_id"]);
  assertEquals(decoder({ pipeline: [{ a: {} }] }), ["model.decoder.pipeline"]);
  assertEquals(decoder({ sliding_window: { window_size: 4 } }), ["model.decoder.sliding_window"]);
  assertEquals(decoder({ brand_new: 3 }), ["model.decoder.brand_new"]);
  assertEquals(
    checkGenaiFields({ ...HARMLESS, brand_new: 3 }, "folder"),
    ["genai_config.json: brand_new is not understood and has no effect"],
  );
});
