// Perplexity by number format, of models whose stream was turned so that their weights lie on no grid
// (turn.ts): every matrix, the table and the head too, is stored in the format by `quantizeModel`, and the file
// is read and run as any other. With precision "exact", so that only the weights' error counts.
// Bits and error are of the tensors that were stored in the format. Matrices whose rows are no whole blocks stay
// in floats; a format that suits less than nine tenths of the weights is left out.

import { openModel } from "../../engine/formats/open_model.ts";
import type { TensorInfo } from "../../engine/formats/source.ts";
import { load } from "../../engine/models/load.ts";
import { perplexity } from "../../engine/pipelines/perplexity.ts";
import { type QuantizedTensor, quantizeModel } from "../../engine/pipelines/quantize.ts";
import { findFormat } from "../../quant/mod.ts";
import type { QuantPolicy } from "../../quant/policy.ts";
import { deleteAtInterrupt } from "../../tools/support/children.ts";
import { type Figure, machineName, ratioOf } from "../support/figures.ts";
import { turnModel } from "./turn.ts";

/** What to measure. */
export interface PerplexityBenchOptions {
  readonly models: readonly { readonly name: string; readonly path: string }[];
  /** Dimensions of the turned stream; undefined: the model's own. */
  readonly width: number | undefined;
  /** The first part is scored, the last is what calibration sees. */
  readonly text: string;
  /** Windows of 512 tokens that are scored. */
  readonly windows: number;
  readonly formats: readonly string[];
  readonly threads: number;
  /** Folder for files of a few gigabytes; undefined: where temporary files go. */
  readonly folder?: string;
}

/** Formats that are measured unless some are named: all that can be stored. */
export const QUALITY_FORMATS: readonly string[] = [
  ...["Q8_0", "Q6_B64T1", "Q5_B64T1", "Q4_B32T1A", "Q4_B64T1", "Q3H_B64T1", "Q3_B32T1B"],
  ...["E0M4_G128", "INT4_G128", "E0M4_G64", "INT4_G64", "E0M4_G32", "INT4_G32"],
  ...["Q4_0", "Q4_1", "Q5_0", "Q5_1", "IQ4_NL", "IQ4_XS", "MXFP4", "NVFP4"],
  ...["Q6_K", "Q5_K", "Q4_K", "Q3_K", "Q2_K", "TQ2_0", "TQ1_0", "Q1_0"],
  ...["Q8_B32T1", "Q4_B32T1B", "Q3_B32T1A", "Q2_B32T1A", "Q2_B32T1B"],
  ...["Q4_B16", "Q8_LOG", "Q8_GL", "LF8", "I8PC", "I4PC", "NB4"],
  ...["GPTQ:Q4_0", "GPTQ:Q4_B64T1", "GPTQ:INT4_G128", "GPTQ:E0M4_G128", "AWQ:INT4_G128"],
];

/** Calibrated rounding, by what stands in front of a format. */
const METHODS = { GPTQ: "gptq", AWQ: "awq" } as const;
/** Where the text is cut, and tokens that calibration sees. */
const SCORED_SHARE = 0.6;
const CALIBRATION_TOKENS = 4096;
/** Share of the weights that may stay in floats: with a width of 768, attention's outputs are a twentieth. */
const LARGEST_MISFIT = 0.1;

const WINDOW = 512;

/** Figures of all models, handed out as they are measured. */
export async function* perplexityBench(options: PerplexityBenchOptions): AsyncGenerator<Figure> {
  const folder = await Deno.makeTempDir({
    prefix: "troodon-quality-",
    ...options.folder !== undefined && { dir: options.folder },
  });
  deleteAtInterrupt(folder);
  try {
    for (const model of options.models) yield* figuresOfModel(model, folder, options);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function* figuresOfModel(
  { name, path }: PerplexityBenchOptions["models"][number],
  folder: string,
  options: PerplexityBenchOptions,
): AsyncGenerator<Figure> {
  const turned = `${folder}/turned.gguf`;
  await writeTurned(path, turned, options.width);
  const label = options.width === undefined ? name : `${name} at ${options.width}`;
  const figure = (what: string, unit: string, value: number, float?: number): Figure => ({
    ...{ bench: "quality", case: `${what} ${label}`, unit, value },
    peer: float === undefined ? null : "float",
    peerValue: float ?? null,
    ratio: ratioOf(unit, value, float ?? null),
    share: null,
    machine: machineName(),
  });
  const original = await perplexityOf(path, options);
  const float = await perplexityOf(turned, options);
  yield figure("perplexity float", "perplexity", float, original);
  for (const format of options.formats) {
    const stored = await storeIn(format, turned, folder, options);
    if (!stored) {
      console.error(`${format}: rows of ${label} are no whole blocks`);
      continue;
    }
    const value = await perplexityOf(stored.path, options);
    await Deno.remove(stored.path);
    yield figure(`bits ${format}`, "bits/weight", stored.bits);
    yield figure(`error ${format}`, "% of rms", stored.error * 100);
    yield figure(`perplexity ${format}`, "perplexity", value, float);
  }
  await Deno.remove(turned);
}

async function writeTurned(path: string, to: string, width: number | undefined): Promise<void> {
  const file = await openModel(path);
  try {
    await turnModel(file, to, width === undefined ? {} : { width });
  } finally {
    file.close();
  }
}

interface Stored {
  readonly path: string;
  readonly bits: number;
  readonly error: number;
}

async function storeIn(
  label: string,
  model: string,
  folder: string,
  { text, threads }: PerplexityBenchOptions,
): Promise<Stored | undefined> {
  const [name, prefix] = label.split(":").reverse() as [string, keyof typeof METHODS | undefined];
  const file = await openModel(model);
  try {
    const matrices = [...file.tensors.values()].filter(({ shape }) => shape.length === 2);
    const misfits = matrices.filter(({ shape }) => {
      const { blockSize } = findFormat(name, shape[1]!);
      return shape[1]! % blockSize !== 0;
    });
    if (countOf(misfits) > LARGEST_MISFIT * countOf(matrices)) return;
    const { ggmlType } = findFormat(name, matrices[0]!.shape[1]!);
    const path = `${folder}/stored.${ggmlType === undefined ? "safetensors" : "gguf"}`;
    const rules = misfits.map((tensor) => ({
      ...{ pattern: `^${tensor.name.replaceAll(".", "\\.")}$`, format: "keep" },
    }));
    const policy: QuantPolicy = { name, format: name, rules };
    const seen = text.slice(Math.floor(text.length * SCORED_SHARE));
    const facts = { text: seen, tokens: CALIBRATION_TOKENS, threads };
    const options = prefix ? { calibration: { ...facts, method: METHODS[prefix] } } : {};
    const { tensors } = await quantizeModel(file, path, policy, options);
    return { path, ...totalsOf(tensors) };
  } finally {
    file.close();
  }
}

function countOf(tensors: readonly TensorInfo[]): number {
  return tensors.reduce((sum, { shape }) => sum + shape[0]! * shape[1]!, 0);
}

/** Bits and relative error over all tensors that were encoded. */
function totalsOf(tensors: readonly QuantizedTensor[]): { bits: number; error: number } {
  let count = 0, bytes = 0, errors = 0, squares = 0;
  for (const { error, bytes: size } of tensors) {
    if (!error || error.relative === 0) continue;
    const square = error.count * (error.std ** 2 + error.mean ** 2);
    count += error.count;
    bytes += size;
    errors += square;
    squares += square / error.relative ** 2;
  }
  return { bits: bytes * 8 / count, error: Math.sqrt(errors / squares) };
}

async function perplexityOf(
  path: string,
  { text, windows, threads }: PerplexityBenchOptions,
): Promise<number> {
  using model = await load(path, {
    ...{ device: "wasm", precision: "exact", threads, contextLength: WINDOW, logitRows: 32 },
  });
  const scored = text.slice(0, Math.floor(text.length * SCORED_SHARE));
  return (await perplexity(model, scored, { window: WINDOW, windows })).perplexity;
}
