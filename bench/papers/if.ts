// Inferflow (arXiv 2401.08294): perplexity by number format (its Table 3), and throughput and decoding of partitions by
// layers, by heads and both (its Table 5).

import { perplexity } from "../../engine/pipelines/perplexity.ts";
import { quantize } from "../../engine/quantize/quantization.ts";
import { load } from "../../engine/models/load.ts";
import { type Figure, median } from "../support/figures.ts";
import type { BenchModel } from "../support/models.ts";
import { generate } from "../../engine/decode/generate.ts";
import { type PaperBench, type PaperOptions, row, type Stated } from "./paper.ts";

const FILES = "Llama 2 7B, WikiText-2; no hardware in it";
/** Formats of Table 3 with the perplexity of Llama 2 7B in them. */
const FORMATS: readonly (readonly [format: string, stated: number])[] = [
  ["F16", 7.175],
  ["q8_b32t2", 7.177],
  ["q6_b64t1", 7.173],
  ["q5_b64t1", 7.198],
  ["q4_b32t1", 7.454],
  ["q4_b64t1", 7.569],
  ["q3h_b64t1", 7.914],
  ["q3_b32t1", 8.817],
];

const TEXT = new URL("../../tests/fixtures/text/opticks-book3.txt", import.meta.url);

const V100 = "4 V100, Falcon-40B FP16";
/** Strategies of Table 5, in its grammar, with throughput and decoding of one text. */
const PARTITIONS: readonly (readonly [name: string, placement: string, both: [number, number]])[] =
  [
    ["by layers", "0;1;2;3", [32, 8]],
    ["by heads", "0&1&2&3", [12, 12]],
    ["hybrid", "0&1;2&3", [24, 12]],
  ];
const DEVICES = ["wasm", "wasm1", "wasm2", "wasm3"];
const QUERIES = 4, PROMPT = 16, WINDOW = 256;

/** The bench. */
export const inferflow: PaperBench = {
  about:
    "Inferflow (arXiv 2401.08294). The paper: four V100 and models of 3 to 40 billion weights; here " +
    "four WASM devices of one processor, which share its threads, so partitions gain no speed, and " +
    "small models (random weights for partitions). Of Table 3's, read from the file that there is (Table 3 begins with F16, this with the file's own " +
    "format).",
  async *run(options: PaperOptions): AsyncGenerator<Figure> {
    for (const model of options.models) {
      // Perplexity of random weights means nothing; heads of small real models do not divide by four.
      yield* model.isRandom ? partitions(model, options) : formats(model, options);
    }
  },
};

async function* formats(
  { name, path }: BenchModel,
  { rounds, load: given }: PaperOptions,
): AsyncGenerator<Figure> {
  const folder = await Deno.makeTempDir();
  try {
    for (const [format, value] of FORMATS) {
      const own = format === "F16";
      const file = own ? path : await quantized(path, { folder, format });
      using model = await load(file, { ...given, contextLength: WINDOW, precision: "exact" });
      const windows = { window: WINDOW, windows: rounds };
      const { perplexity: ours } = await perplexity(model, Deno.readTextFileSync(TEXT), windows);
      const stated: Stated = { value, on: FILES };
      const label = `perplexity ${name}, ${own ? "the file's format" : format}`;
      yield row({ bench: "if", name: label, unit: "perplexity", value: ours, stated });
      if (!own) await Deno.remove(file);
    }
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** Writes a file in a format; GGUF where that has it. */
async function quantized(
  path: string,
  { folder, format }: { readonly folder: string; readonly format: string },
): Promise<string> {
  for (const end of ["gguf", "safetensors"]) {
    const file = `${folder}/${format}.${end}`;
    try {
      await quantize(path, file, { format });
      return file;
    } catch (error) {
      if (!(error instanceof RangeError) || end === "safetensors") throw error;
    }
  }
  throw new RangeError(`Cannot write ${format}`);
}

async function* partitions(
  { name, path, ids }: BenchModel,
  { decode, rounds, load: given }: PaperOptions,
): AsyncGenerator<Figure> {
  for (const [strategy, placement, [throughput, single]] of PARTITIONS) {
    const contextLength = PROMPT + decode;
    using model = await load(path, {
      ...{ placement, devices: DEVICES, contextLength, sessions: QUERIES, threads: 1 },
      ...given.precision && { precision: given.precision },
    });
    for (const [queries, value] of [[QUERIES, throughput], [1, single]] as const) {
      const what = queries === 1 ? "decode" : "throughput";
      const speeds: number[] = [];
      for (let round = 0; round <= rounds; round++) {
        const start = performance.now();
        const answers = Array.from(
          { length: queries },
          (_, i) =>
            generate(model, [ids[round * QUERIES + i]!, ...ids.slice(1, PROMPT)], {
              ...{ maxTokens: decode, temperature: 0, ignoreEos: true },
            }).result,
        );
        await Promise.all(answers);
        const seconds = (performance.now() - start) / 1000;
        if (round > 0) speeds.push(queries * decode / seconds);
      }
      const stated = { value, on: V100 };
      const label = `${what} ${name}, ${strategy} ${placement}`;
      yield row({ bench: "if", name: label, unit: "tokens/s", value: median(speeds), stated });
    }
  }
}
