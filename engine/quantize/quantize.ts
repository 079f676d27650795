// Writes a model anew in other number formats: tensor by tensor, each a run of rows at a time, so memory
// does not grow with the file, unless a text is given to round by: then statistics of the inputs take what
// calibration.ts says. The new file appears under its name only when it is whole, and never in
// place of another.

import type { EncodeOptions } from "../../quant/mod.ts";
import type { QuantPolicy } from "../../quant/policy.ts";
import type { ImportanceMatrix } from "../formats/imatrix.ts";
import type { WeightFile } from "../formats/source.ts";
import {
  createFile,
  createFolder,
  listPartials,
  partialName,
  refuseExisting,
  removeFolder,
  renameFolder,
} from "../io.ts";
import { createEncodePool } from "./encode_pool.ts";
import { copyTexts, createHead, type Head } from "./head.ts";
import { planQuantization, type QuantizePlan } from "./plan.ts";
import { type CalibrationRequest, openRounding, type Rounding } from "./rounding.ts";
import { type QuantizedTensor, writeTensor } from "./tensor.ts";

export type { QuantizedTensor } from "./tensor.ts";

/** Options of {@linkcode quantizeModel}. */
export interface QuantizeModelOptions {
  /** Levels of Inferflow's blocks and of LF8. Default `paper`. */
  readonly levels?: EncodeOptions["levels"];
  /** Stores NaN as 0 and infinities as the greatest 16-bit float instead of refusing them. */
  readonly saturate?: boolean;
  /** Threads that encode: what is written does not depend on them. Default: all processors, 4 at most. */
  readonly threads?: number;
  /** Stops between two runs of rows. */
  readonly signal?: AbortSignal;
  /** A text to round by; without it every value is rounded to the nearest. */
  readonly calibration?: CalibrationRequest;
  /** Importance of columns by tensor, instead of a text. */
  readonly importance?: ImportanceMatrix;
  /** Called after each tensor. */
  readonly onTensor?: (tensor: QuantizedTensor) => void;
}

/**
 * What was written.
 * @category Number formats
 */
export interface QuantizeResult {
  /** What it lies in; `folder`: safetensors with the texts of a Hugging Face folder. */
  readonly container: "gguf" | "safetensors" | "folder";
  /** Bytes of the file of weights. */
  readonly bytes: number;
  /** Bytes of the tensors that were read. */
  readonly sourceBytes: number;
  /** What became of each, in the order of the file. */
  readonly tensors: readonly QuantizedTensor[];
  /** What of the policy is without effect, and what earlier tries have left. */
  readonly warnings: readonly string[];
  /** Tokens that were read for calibration, and most bytes of statistics at a time. */
  readonly calibration: { readonly tokens: number; readonly bytes: number } | undefined;
}

/**
 * Quantises a model into a new file, or into a new folder where the model is a Hugging Face folder.
 *
 * @param path Must not exist; its ending must be that of the container: `.gguf`, `.safetensors`, or none.
 * @throws {SourceError} If something is at `path`.
 * @throws {FormatError} If a weight is not finite, or a scale does not fit the format.
 * @throws {RangeError} If the policy cannot be followed, or the ending is wrong.
 */
export async function quantizeModel(
  file: WeightFile,
  { path, policy }: { readonly path: string; readonly policy: QuantPolicy },
  options: QuantizeModelOptions = {},
): Promise<QuantizeResult> {
  const wanted = planQuantization(file, policy);
  checkEnding(path, wanted, policy);
  refuseExisting(path);
  const rounding = await openRounding(file, wanted, options);
  const plan = { ...wanted, tensors: rounding.tensors };
  const head = await createHead(file, { plan, policy });
  const parts = { plan, head, rounding };
  if (plan.container !== "folder") {
    return withFindings(path, await writeWeights(path, parts, options));
  }
  const partial = partialName(path);
  createFolder(partial);
  try {
    const result = await writeWeights(`${partial}/model.safetensors`, parts, options);
    await copyTexts(file, partial);
    renameFolder(partial, path);
    return withFindings(path, result);
  } catch (error) {
    removeFolder(partial);
    throw error;
  }
}

/** Fewer than these say little of a model's inputs. */
const FEW_TOKENS = 1024;

/** Says that a text was short, or a file grew, and names what killed tries have left, since nobody else takes it away. */
function withFindings(path: string, result: QuantizeResult): QuantizeResult {
  const left = listPartials(path).map((name) =>
    `${name} is left of a try that was killed, or is still running: delete it if none is`
  );
  const { bytes, sourceBytes } = result;
  const grown = bytes > 1.05 * sourceBytes
    ? [`the new file is larger than the old one: ${bytes} bytes of ${sourceBytes}`]
    : [];
  const tokens = result.calibration?.tokens ?? Infinity;
  const short = tokens < FEW_TOKENS
    ? [`the text has ${tokens} tokens: calibration wants some thousand to do better than without`]
    : [];
  return { ...result, warnings: [...result.warnings, ...short, ...grown, ...left] };
}

function checkEnding(
  path: string,
  { container, tensors }: QuantizePlan,
  { name }: QuantPolicy,
): void {
  const ending = /\.(gguf|safetensors)$/.exec(path)?.[1] ?? "folder";
  if (ending === container) return;
  const wanted = {
    gguf: "GGUF: give a name that ends in .gguf",
    safetensors: `safetensors, as ${
      tensors.some(({ outliers }) => outliers > 0)
        ? "GGUF has no place for outliers"
        : "ggml lacks a format of it"
    }: give a name that ends in .safetensors`,
    folder: "a folder with the weights and their texts: give a name without ending",
  }[container];
  throw new RangeError(`Cannot write ${path}: ${name} of this model becomes ${wanted}`);
}

interface Parts {
  readonly plan: QuantizePlan;
  readonly head: Head;
  readonly rounding: Rounding;
}

async function writeWeights(
  path: string,
  { plan: { container, tensors, warnings }, head: { bytes: head, paddingAfter }, rounding }: Parts,
  options: QuantizeModelOptions,
): Promise<QuantizeResult> {
  using output = createFile(path);
  using pool = createEncodePool(options.threads);
  const done: QuantizedTensor[] = [];
  let bytes = head.length;
  output.write(head);
  for (const planned of tensors) {
    const result = await writeTensor(planned, { output, rounding }, { ...options, pool });
    const padding = paddingAfter(planned.byteLength);
    output.write(new Uint8Array(padding));
    bytes += planned.byteLength + padding;
    done.push(result);
    options.onTensor?.(result);
  }
  output.finish();
  const sourceBytes = tensors.reduce((sum, { tensor }) => sum + tensor.byteLength, 0);
  const calibration = rounding.calibration &&
    { tokens: rounding.calibration.tokens, bytes: rounding.calibration.bytes };
  return { container, bytes, sourceBytes, tensors: done, warnings, calibration };
}
