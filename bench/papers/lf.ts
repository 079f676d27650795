// LlamaF (arXiv 2409.11424): TinyLlama 1.1B in W8A8 with groups of 256, one text, greedy, end tokens ignored: tokens a
// second up to steps 64, 128 and 256, operations of its products, weights that are read while others compute, watts.

import { generate } from "../../engine/decode/generate.ts";
import type { LoadOptions, Model } from "../../engine/decode/model.ts";
import { quantError } from "../../engine/quantize/quantization.ts";
import { pullModel } from "../../engine/formats/hub/pull.ts";
import type { Figure } from "../support/figures.ts";
import { loadFor, type PaperBench, type PaperOptions, row, type Stated } from "./paper.ts";
import { wattsWhile } from "./power.ts";

const ZCU102 = "Xilinx ZCU102, 205 MHz";
const FILES = "TinyLlama 1.1B; no hardware in it";
const STEPS: readonly (readonly [steps: number, stated: number])[] = [
  [64, 1.478],
  [128, 1.424],
  [256, 1.328],
];

async function decode(model: Model, ids: readonly number[], tokens: number): Promise<number> {
  const options = { maxTokens: tokens, temperature: 0, ignoreEos: true };
  const { stats } = await generate(model, ids.slice(0, 2), options).result;
  return stats.decodePerSecond;
}

/** The bench. */
export const lf: PaperBench = {
  about:
    "LlamaF (arXiv 2409.11424). The paper: an FPGA with four Cortex-A53; here: the processor of " +
    "this machine, and weights that are read from a file instead of its DDR. Shares of the time by " +
    "kind of op (its Table II): deno task bench profile. Perplexity (Table V): deno task bench quality.",
  async *run({ models, load, power }: PaperOptions): AsyncGenerator<Figure> {
    const figure = (name: string, unit: string, value: number, stated?: Stated) =>
      row({ bench: "lf", name, unit, value, stated });
    for (const model of models) {
      using loaded = await loadFor(model, { tokens: 272, options: load });
      for (const [steps, value] of STEPS) {
        const speed = await decode(loaded, model.ids, steps);
        const stated = { value, on: ZCU102 };
        yield figure(`decode ${model.name}, ${steps} steps`, "tokens/s", speed, stated);
        if (steps !== STEPS.at(-1)![0]) continue;
        const operations = 2 * loaded.info.parameters * speed / 1e9;
        const products = { value: 4.696, on: `${ZCU102}, logits' product` };
        yield figure(`products ${model.name}`, "GOPS", operations, products);
        const watts = power
          ? await wattsWhile(async () => void await decode(loaded, model.ids, steps))
          : NaN;
        const perWatt = { value: 0.291, on: ZCU102 };
        yield figure(`decode ${model.name} a watt`, "tokens/s/W", speed / watts, perWatt);
      }
      yield figure(
        `streaming ${model.name}: gain of reading beside computing`,
        "%",
        100 * (await streamed(model, load, 1) / await streamed(model, load, 0) - 1),
        { value: 55.7, on: `${ZCU102}, DDR` },
      );
    }
    const { total } = await quantError(await pullModel("minilm"), { format: "lf8" });
    const stated = { max: 0.0115, mean: 0.000265, std: 0.000173 };
    for (const name of ["max", "mean", "std"] as const) {
      const on = { value: stated[name], on: FILES };
      yield figure(`error of W8 groups of 256, MiniLM, ${name}`, "", total[name], on);
    }
  },
};

/** Tokens a second of a model whose layers are read from its file for every token. */
async function streamed(
  model: PaperOptions["models"][number],
  options: LoadOptions,
  loaders: number,
): Promise<number> {
  const load = { ...options, stream: { depth: 1 as const, loaders } };
  using loaded = await loadFor(model, { tokens: 64, options: load });
  await decode(loaded, model.ids, 2);
  return await decode(loaded, model.ids, 16);
}
