// Transformer-Lite (arXiv 2403.20041): prefill and decode for prompts of 128, 1,024 and 2,048 tokens, without sparsity
// or drafts, and how far E0M4 is from the weights beside INT4.

import { quantError } from "../../engine/quantize/quantization.ts";
import { pullModel } from "../../engine/formats/hub/pull.ts";
import {
  loadFor,
  type PaperBench,
  type PaperOptions,
  row,
  speedsOf,
  type Stated,
} from "./paper.ts";
import type { Figure } from "../support/figures.ts";

const SNAPDRAGON = "Snapdragon 8 Gen 3, Adreno 750, int4 g128";
const DIMENSITY = "Dimensity 9300, Mali-G720, int4 g128";

/** What the paper's text and tables state for a prompt of 128; other lengths are in its plots alone. */
const STATED:
  readonly (Stated & { readonly model: string; readonly unit: "prefill" | "decode" })[] = [
    { model: "Gemma 2B", unit: "prefill", value: 330, on: SNAPDRAGON },
    { model: "Gemma 2B", unit: "decode", value: 30, on: SNAPDRAGON },
    { model: "ChatGLM2 6B", unit: "prefill", value: 121, on: SNAPDRAGON },
    { model: "ChatGLM2 6B", unit: "decode", value: 14, on: SNAPDRAGON },
    { model: "Qwen1.5 14B", unit: "prefill", value: 54, on: DIMENSITY },
    { model: "Qwen1.5 14B", unit: "decode", value: 5, on: DIMENSITY },
  ];

/** Mean error of E0M4 as a part of INT4's, over layer 0 of Qwen1.5-4B-Chat. */
const E0M4_SHARE = 0.956;

/** The bench. */
export const tl: PaperBench = {
  about:
    "Transformer-Lite (arXiv 2403.20041). The paper: phones, GPU, int4 with groups of 128, fp16 " +
    "activations; here: the processor or GPU of this machine, and smaller models in its place. Its " +
    "models that are not measured stand below with the paper's figures alone.",
  async *run(options: PaperOptions): AsyncGenerator<Figure> {
    for (const model of options.models) {
      for (const prompt of options.prompts) {
        using loaded = await loadFor(model, {
          tokens: prompt + options.decode,
          options: options.load,
        });
        const speeds = await speedsOf(loaded, { ...options, ids: model.ids, prompt });
        for (const stage of ["prefill", "decode"] as const) {
          const name = `${stage} ${model.name}, prompt ${prompt}`;
          yield row({ bench: "tl", name, unit: "tokens/s", value: speeds[stage] });
        }
      }
    }
    for (const { model, unit: stage, ...stated } of STATED) {
      const name = `${stage} ${model}, prompt 128`;
      yield row({ bench: "tl", name, unit: "tokens/s", value: NaN, stated });
    }
    const path = await pullModel("minilm");
    const meanOf = async (format: string) => (await quantError(path, { format })).total.mean;
    yield row({
      ...{ bench: "tl", unit: "of INT4's error", name: "mean error of E0M4, MiniLM's matrices" },
      value: await meanOf("e0m4_g128") / await meanOf("int4_g128"),
      stated: { value: E0M4_SHARE, on: "Qwen1.5-4B-Chat layer 0; no hardware in it" },
    });
  },
};
