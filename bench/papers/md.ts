// ML Drift (arXiv 2505.00232): language models on 1,024 tokens and 256 more, without drafts, the GPU waited for after
// each token; and, apart from that, with drafts looked up in the text.

import type { Figure } from "../support/figures.ts";
import {
  loadFor,
  type PaperBench,
  type PaperOptions,
  row,
  speedsOf,
  type Stated,
} from "./paper.ts";

/** Tables 2 and 4 in weights of 8/4/4 bits. */
const STATED: readonly (readonly [model: string, on: string, prefill: number, decode: number])[] = [
  ["Gemma 2B", "Adreno 750, 8/4/4", 1480, 42.7],
  ["Gemma 2B", "Intel Ultra 7 258V, 8/4/4", 4320, 57.8],
  ["Gemma 2B", "Intel Ultra 7 165U, 8/4/4", 435, 32.2],
  ["Gemma2 2B", "Adreno 750, 8/4/4", 1370, 37.1],
  ["Gemma2 2B", "Intel Ultra 7 258V, 8/4/4", 3920, 45.7],
  ["Gemma2 2B", "Intel Ultra 7 165U, 8/4/4", 467, 25.2],
  ["Llama 3.2 3B", "Adreno 750, 8/4/4", 959, 30.3],
  ["Llama 3.2 3B", "Intel Ultra 7 258V, 8/4/4", 2750, 40.8],
  ["Llama 3.2 3B", "Intel Ultra 7 165U, 8/4/4", 310, 22.4],
  ["Llama 3.1 8B", "Adreno 750, 8/4/4", 412, 12.7],
  ["Llama 3.1 8B", "Intel Ultra 7 258V, 8/4/4", 1280, 22.9],
  ["Llama 3.1 8B", "Intel Ultra 7 165U, 8/4/4", 120, 12.5],
];

/** The bench. */
export const md: PaperBench = {
  about:
    "ML Drift (arXiv 2505.00232). The paper: GPUs of phones and laptops, OpenCL; here: the processor " +
    "of this machine, or its WebGPU with --backend gpu, and the models named. Every step is waited for, " +
    "as in the paper. Its models that are not measured stand below with the paper's figures alone.",
  async *run(options: PaperOptions): AsyncGenerator<Figure> {
    const [prompt = 1024] = options.prompts;
    const { decode } = options;
    for (const model of options.models) {
      using loaded = await loadFor(model, {
        tokens: prompt + decode,
        options: { ...options.load, ...options.load.device === "gpu" && { stepsAhead: 0 } },
      });
      const input = { ...options, ids: model.ids, prompt };
      const speeds = await speedsOf(loaded, input);
      const figure = (name: string, value: number) =>
        row({ bench: "md", name, unit: "tokens/s", value });
      yield figure(`prefill ${model.name}, ${prompt} + ${decode}`, speeds.prefill);
      yield figure(`decode ${model.name}, ${prompt} + ${decode}`, speeds.decode);
      const drafted = await speedsOf(loaded, { ...input, draft: "lookup" });
      yield figure(`decode ${model.name}, ${prompt} + ${decode}, with drafts`, drafted.decode);
    }
    for (const [model, on, ...values] of STATED) {
      for (const [i, stage] of ["prefill", "decode"].entries()) {
        const stated: Stated = { value: values[i]!, on };
        const name = `${stage} ${model}, 1024 + 256`;
        yield row({ bench: "md", name, unit: "tokens/s", value: NaN, stated });
      }
    }
  },
};
