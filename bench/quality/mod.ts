// `deno task bench quality`: what number formats cost in quality, in four parts. `perplexity` ranks formats on
// models whose weights lie on no grid, `encode` holds our encoders beside those of ggml, `files` opens what
// `quantize` writes in llama.cpp, `backends` is a table of what formats cost on each backend at each precision. What must hold is checked at the end (`qualityFaults`).

import { openModel } from "../../engine/models/open_model.ts";
import { deleteAtInterrupt } from "../../tools/support/children.ts";
import { floatMiniLm } from "../onnx/cases.ts";
import { benchCache } from "../support/bench_cache.ts";
import type { Figure } from "../support/figures.ts";
import { backendsBench, SETTINGS } from "./backends.ts";
import { encodeBench } from "./encode.ts";
import { FILE_FORMATS, filesBench } from "./files.ts";
import { openGgml } from "./ggml.ts";
import { ladderFaults } from "./ladder.ts";
import { perplexityBench, QUALITY_FORMATS, writeTurned } from "./perplexity.ts";
import { storeFormat } from "./stored.ts";

/** Parts that can be asked for. */
export const PARTS = ["perplexity", "encode", "files", "backends"] as const;

/** What to measure. */
export interface QualityBenchOptions {
  readonly parts: readonly (typeof PARTS)[number][];
  readonly models: readonly { readonly name: string; readonly path: string }[];
  /** Model in floats, for `encode`. */
  readonly floats: () => Promise<string>;
  /** The only backend of `backends`; undefined: all that are there. */
  readonly backend: string | undefined;
  /** ONNX encoder in 8 bit, for `backends`. */
  readonly integers: () => Promise<string>;
  readonly width: number | undefined;
  /** Seed of the turn, of `perplexity`. */
  readonly seed: number;
  readonly text: string;
  readonly windows: number;
  /** Formats as the parts write them, in either case; none: all. */
  readonly formats: readonly string[];
  readonly threads: number;
  /** Formats at a time, of `perplexity`. */
  readonly jobs: number;
}

/** Rows of whole blocks of 256, for formats that llama.cpp has. */
const FILES_WIDTH = 768;

/** All figures, handed out as they are measured. */
export async function* qualityBench(options: QualityBenchOptions): AsyncGenerator<Figure> {
  const { parts, formats } = options;
  const among = (all: readonly string[]) => {
    const known = new Map(all.map((name) => [name.toUpperCase(), name]));
    // In the order in which they are named.
    const named = formats.map((name) => known.get(name.toUpperCase()));
    return formats.length === 0 ? all : named.filter((name) => name !== undefined);
  };
  if (parts.includes("perplexity")) {
    yield* perplexityBench({ ...options, formats: among(QUALITY_FORMATS) });
  }
  if (parts.includes("encode")) yield* encodeFigures(options);
  if (parts.includes("files")) {
    const { width = FILES_WIDTH } = options;
    yield* filesBench({ ...options, width, formats: among(FILE_FORMATS) });
  }
  if (parts.includes("backends")) yield* backendFigures(options, among(BACKEND_FORMATS));
}

/** Formats of `backends`, and tokens of its text. */
const BACKEND_FORMATS: readonly string[] = ["Q8_0", "Q6_K", "Q5_K", "Q4_K", "Q4_1", "Q4_0", "LF8"];
const BACKEND_TOKENS = 128;

async function* backendFigures(
  options: QualityBenchOptions,
  formats: readonly string[],
): AsyncGenerator<Figure> {
  const folder = await Deno.makeTempDir({ prefix: "troodon-quality-" });
  deleteAtInterrupt(folder);
  const { text, threads, backend } = options;
  const settings = SETTINGS.filter(({ device }) => device === (backend ?? device));
  try {
    yield* backendsBench({
      ...{ text, threads, settings, tokens: BACKEND_TOKENS },
      models: options.models.map((model) => ({
        name: model.name,
        files: storedFiles(model.path, folder, { ...options, formats }),
      })),
      encoders: [
        { format: "float", path: await floatMiniLm(await benchCache("onnx")) },
        { format: "int8", path: await options.integers() },
      ],
    });
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** A model in floats that lie on no grid, then in each format; a file is deleted when the next is asked for. */
async function* storedFiles(path: string, folder: string, options: QualityBenchOptions) {
  const { width = FILES_WIDTH, seed, formats, text, windows, threads } = options;
  const model = `${folder}/turned.gguf`;
  await writeTurned(path, model, { width, seed });
  yield { format: "float", path: model };
  for (const format of formats) {
    const stored = await storeFormat({ format, model, folder, text, windows, threads });
    if (!stored) continue;
    yield { format, path: stored.path };
    await Deno.remove(stored.path);
  }
  await Deno.remove(model);
}

async function* encodeFigures({ floats, formats }: QualityBenchOptions): AsyncGenerator<Figure> {
  const ggml = await openGgml();
  try {
    const file = await openModel(await floats());
    try {
      const filter = formats.map((name) => name.toUpperCase());
      yield* encodeBench(file, { label: "minilm", ggml, filter });
    } finally {
      file.close();
    }
  } finally {
    ggml.close();
  }
}

/** An encoder of these formats may be so much worse than ggml's; others are shown. */
const LARGEST_ERROR_RATIO = 1.02;
const HELD_ENCODERS = /^Q\d_(K|[01])$/;
/** Of llama.cpp's tokens so many must be ours, and others may lose by so much: a tie, seen through 8 bits. */
const LEAST_EQUAL = 0.9;
const LARGEST_GAP = 0.5;

const isBackend = (word: string | undefined): boolean =>
  SETTINGS.some(({ device }) => device === word);

/** What does not hold among figures. */
export function qualityFaults(figures: readonly Figure[]): string[] {
  const faults: string[] = [];
  const byModel = new Map<string, Map<string, number>>();
  for (const { case: name, value, ratio } of figures) {
    const [what, format, ...label] = name.split(" ");
    if (what === "perplexity" && !isBackend(label[0])) {
      const model = label.join(" ");
      if (!byModel.has(model)) byModel.set(model, new Map());
      byModel.get(model)!.set(format!, value);
    }
    const isWorse = what === "encode" && HELD_ENCODERS.test(format!) &&
      ratio! < 1 / LARGEST_ERROR_RATIO;
    if (isWorse || (what === "tokens" && value < LEAST_EQUAL)) faults.push(`${name}: ${ratio}`);
    if (what === "gap" && value > LARGEST_GAP) faults.push(`${name}: ${value}`);
  }
  for (const [model, perplexities] of byModel) {
    faults.push(...ladderFaults(perplexities).map((fault) => `${model}: ${fault}`));
  }
  return faults;
}
