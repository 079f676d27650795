// A Whisper of the size of whisper-tiny with random weights in float16, as a folder that transformers would have
// written: what a weight is does not matter for time.

import { writeSafetensors } from "../../tests/support/write_gguf.ts";

const SIZES = { hidden: 384, inner: 1536, layers: 4, heads: 6, words: 51865, mels: 80 } as const;
/** Rows of the encoder, and of the decoder. */
const POSITIONS = { encoder: 1500, decoder: 448 } as const;

/** Shapes by name. */
function tensors(): [name: string, shape: readonly number[]][] {
  const { hidden, inner, layers, words, mels } = SIZES;
  const found: [string, readonly number[]][] = [];
  const linear = (name: string, rows: number, columns: number, hasBias = true) => {
    found.push([`${name}.weight`, [rows, columns]]);
    if (hasBias) found.push([`${name}.bias`, [rows]]);
  };
  const norm = (name: string) =>
    found.push([`${name}.weight`, [hidden]], [`${name}.bias`, [hidden]]);
  const attention = (name: string) => {
    for (const part of ["q_proj", "k_proj", "v_proj", "out_proj"]) {
      linear(`${name}.${part}`, hidden, hidden, part !== "k_proj");
    }
    norm(`${name}_layer_norm`);
  };
  for (const half of ["encoder", "decoder"] as const) {
    for (let layer = 0; layer < layers; layer++) {
      const path = `model.${half}.layers.${layer}`;
      attention(`${path}.self_attn`);
      if (half === "decoder") attention(`${path}.encoder_attn`);
      linear(`${path}.fc1`, inner, hidden);
      linear(`${path}.fc2`, hidden, inner);
      norm(`${path}.final_layer_norm`);
    }
    norm(`model.${half}.layer_norm`);
    found.push([`model.${half}.embed_positions.weight`, [POSITIONS[half], hidden]]);
  }
  found.push(["model.encoder.conv1.weight", [hidden, mels, 3]], ["model.encoder.conv1.bias", [
    hidden,
  ]]);
  found.push(["model.encoder.conv2.weight", [hidden, hidden, 3]], ["model.encoder.conv2.bias", [
    hidden,
  ]]);
  found.push(["model.decoder.embed_tokens.weight", [words, hidden]]);
  return found;
}

/** Writes the folder. */
export function writeRandomWhisper(folder: string): void {
  const { hidden, inner, layers, heads, words, mels } = SIZES;
  const header: Record<string, object> = {};
  let end = 0;
  for (const [name, shape] of tensors()) {
    const start = end;
    end += 2 * shape.reduce((a, b) => a * b, 1);
    header[name] = { dtype: "F16", shape, data_offsets: [start, end] };
  }
  const data = new Uint8Array(end);
  // Halves of 2^-7 to 2^-5, of either sign.
  let state = 1;
  for (let i = 0; i < end; i += 2) {
    state = Math.imul(state, 1664525) + 1013904223 | 0;
    data[i] = state >>> 8;
    data[i + 1] = (state >>> 16 & 0x80) | 0x20 | state >>> 24 & 7;
  }
  Deno.writeFileSync(`${folder}/model.safetensors`, writeSafetensors(header, data));
  const write = (name: string, json: object) =>
    Deno.writeTextFileSync(`${folder}/${name}`, JSON.stringify(json));
  write("config.json", {
    ...{ model_type: "whisper", d_model: hidden, vocab_size: words, num_mel_bins: mels },
    ...{ encoder_layers: layers, encoder_attention_heads: heads, encoder_ffn_dim: inner },
    ...{ decoder_layers: layers, decoder_attention_heads: heads, decoder_ffn_dim: inner },
    ...{ max_source_positions: POSITIONS.encoder, max_target_positions: POSITIONS.decoder },
    ...{ activation_function: "gelu", decoder_start_token_id: 50258 },
  });
  write("preprocessor_config.json", {
    ...{ feature_extractor_type: "WhisperFeatureExtractor", feature_size: mels },
    ...{ sampling_rate: 16000, n_fft: 400, hop_length: 160 },
  });
}
