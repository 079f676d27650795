// One number format on one turned model: every matrix, the table and the head too, is stored in the format by
// `quantizeModel`, and the file is read and run as any other. With precision "exact", so that only the weights'
// error counts. Bits and error are of the tensors that were stored in the format. Matrices whose rows are no
// whole blocks stay in floats; a format that suits less than nine tenths of the weights is left out.

import { FormatError } from "../../engine/errors.ts";
import { openModel } from "../../engine/models/open_model.ts";
import type { TensorInfo } from "../../engine/formats/source.ts";
import { load } from "../../engine/models/load.ts";
import { perplexity, type PerplexityResult } from "../../engine/pipelines/perplexity.ts";
import { type QuantizedTensor, quantizeModel } from "../../engine/quantize/quantize.ts";
import { findFormat } from "../../quant/mod.ts";
import type { QuantPolicy } from "../../quant/policy.ts";

/** How perplexity is measured. */
export interface LossOptions {
  /** The first part is scored, the last is what calibration sees. */
  readonly text: string;
  /** Windows that are scored. */
  readonly windows: number;
  /** Tokens of a window. Default 512. */
  readonly window?: number;
  readonly threads: number;
}

/** A format to store a model in, and what its perplexity then is. */
export interface StoredTask extends LossOptions {
  /** A number format, with `GPTQ:` or `AWQ:` in front for calibrated rounding. */
  readonly format: string;
  /** Path of the turned model. */
  readonly model: string;
  /** Where the file lies while it is needed. */
  readonly folder: string;
}

/** What was found. */
export interface StoredResult {
  readonly bits: number;
  /** Root mean square of the error as a share of that of the weights. */
  readonly error: number;
  readonly loss: PerplexityResult;
}

/** Calibrated rounding, by what stands in front of a format. */
const METHODS = { GPTQ: "gptq", AWQ: "awq" } as const;
/** Where the text is cut, and tokens that calibration sees. */
const SCORED_SHARE = 0.6;
const CALIBRATION_TOKENS = 4096;
/** Share of the weights that may stay in floats: with a width of 768, attention's outputs are a twentieth. */
const LARGEST_MISFIT = 0.1;

/** Stores and scores a format; says why not where it cannot hold the weights. */
export async function measureStored(task: StoredTask): Promise<StoredResult | string> {
  let stored;
  try {
    stored = await storeFormat(task);
  } catch (error) {
    // A weight that is out of the format's range.
    if (error instanceof FormatError) return error.message;
    throw error;
  }
  if (!stored) return "its rows are no whole blocks";
  const { path, ...totals } = stored;
  try {
    return { ...totals, loss: await lossOf(path, task) };
  } finally {
    await Deno.remove(path);
  }
}

/** Loss of a model on the part of the text that is scored. */
export async function lossOf(
  path: string,
  { text, windows, window = 512, threads }: LossOptions,
): Promise<PerplexityResult> {
  using model = await load(path, {
    ...{ device: "wasm", precision: "exact", threads, contextLength: window, logitRows: 32 },
  });
  const scored = text.slice(0, Math.floor(text.length * SCORED_SHARE));
  return await perplexity(model, scored, { window, windows });
}

/** Stores a model in a format; undefined where too few rows are whole blocks. */
export async function storeFormat(
  { format: label, model, folder, text, threads }: StoredTask,
): Promise<{ path: string; bits: number; error: number } | undefined> {
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
    const stem = label.replace(":", "-");
    const path = `${folder}/${stem}.${ggmlType === undefined ? "safetensors" : "gguf"}`;
    const rules = misfits.map((tensor) => ({
      ...{ pattern: `^${tensor.name.replaceAll(".", "\\.")}$`, format: "keep" },
    }));
    const policy: QuantPolicy = { name, format: name, rules };
    const seen = text.slice(Math.floor(text.length * SCORED_SHARE));
    const facts = { text: seen, tokens: CALIBRATION_TOKENS, threads };
    const calibration = prefix ? { calibration: { ...facts, method: METHODS[prefix] } } : {};
    const { tensors } = await quantizeModel(file, { path, policy }, { threads, ...calibration });
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
