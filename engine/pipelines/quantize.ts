// Writes a model anew in other number formats: tensor by tensor, each a run of rows at a time, so memory
// does not grow with the file. The new file appears under its name only when it is whole, and never in
// place of another. Every value is looked at before it is stored and again after: a NaN, an infinity or a
// scale that overflows ends the work with the tensor and the index.

import { findNonFinite } from "../../quant/finite.ts";
import { type EncodeOptions, formatBytes, getFormat } from "../../quant/mod.ts";
import type { QuantPolicy } from "../../quant/policy.ts";
import { FormatError } from "../errors.ts";
import type { TensorInfo, WeightFile } from "../formats/source.ts";
import { readTensorRows } from "../formats/tensor_rows.ts";
import { createFile, createFolder, type NewFile, removeFolder, renameFolder } from "../io.ts";
import {
  addErrors,
  createErrorSums,
  type ErrorStatistics,
  errorStatistics,
} from "./error_statistics.ts";
import { rangeOf } from "./quant_error.ts";
import { copyTexts, createHead, type Head } from "./quantize_head.ts";
import { type PlannedTensor, planQuantization, type QuantizePlan } from "./quantize_plan.ts";

/** Options of {@linkcode quantizeModel}. */
export interface QuantizeOptions {
  /** Levels of Inferflow's blocks and of LF8. Default `paper`. */
  readonly levels?: EncodeOptions["levels"];
  /** Stores NaN as 0 and infinities as the greatest 16-bit float instead of refusing them. */
  readonly saturate?: boolean;
  /** Stops between two runs of rows. */
  readonly signal?: AbortSignal;
  /** Called after each tensor. */
  readonly onTensor?: (tensor: QuantizedTensor) => void;
}

/** What became of a tensor. */
export interface QuantizedTensor {
  readonly name: string;
  readonly shape: readonly number[];
  /** Format in the file that was read, and in the new one. */
  readonly from: string;
  readonly to: string;
  /** Bytes in the new file. */
  readonly bytes: number;
  /** The format that was asked for, where its blocks do not fill the rows. */
  readonly insteadOf: string | undefined;
  /** Error of the new values; undefined where bytes were copied. */
  readonly error: ErrorStatistics | undefined;
  /** Values that were not finite and were replaced. */
  readonly saturated: number;
}

/** What was written. */
export interface QuantizeResult {
  readonly container: QuantizePlan["container"];
  /** Bytes of the file of weights. */
  readonly bytes: number;
  /** Bytes of the tensors that were read. */
  readonly sourceBytes: number;
  readonly tensors: readonly QuantizedTensor[];
}

const LARGEST_F16 = 65504;

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
  path: string,
  policy: QuantPolicy,
  options: QuantizeOptions = {},
): Promise<QuantizeResult> {
  const plan = planQuantization(file, policy);
  checkEnding(path, plan, policy);
  const head = await createHead(file, plan, policy);
  if (plan.container !== "folder") return await writeWeights(path, plan, head, options);
  const partial = `${path.replace(/[/\\]+$/, "")}.partial`;
  createFolder(partial);
  try {
    const result = await writeWeights(`${partial}/model.safetensors`, plan, head, options);
    await copyTexts(file, partial);
    renameFolder(partial, path);
    return result;
  } catch (error) {
    removeFolder(partial);
    throw error;
  }
}

function checkEnding(path: string, { container }: QuantizePlan, { name }: QuantPolicy): void {
  const ending = /\.(gguf|safetensors)$/.exec(path)?.[1] ?? "folder";
  if (ending === container) return;
  const wanted = {
    gguf: "GGUF: give a name that ends in .gguf",
    safetensors: "safetensors, as ggml lacks a format of it: give a name that ends in .safetensors",
    folder: "a folder with the weights and their texts: give a name without ending",
  }[container];
  throw new RangeError(`Cannot write ${path}: ${name} of this model becomes ${wanted}`);
}

async function writeWeights(
  path: string,
  { container, tensors }: QuantizePlan,
  { bytes: head, paddingAfter }: Head,
  options: QuantizeOptions,
): Promise<QuantizeResult> {
  const output = createFile(path);
  const done: QuantizedTensor[] = [];
  let bytes = head.length;
  try {
    output.write(head);
    for (const planned of tensors) {
      const result = await writeTensor(planned, output, options);
      const padding = paddingAfter(planned.byteLength);
      output.write(new Uint8Array(padding));
      bytes += planned.byteLength + padding;
      done.push(result);
      options.onTensor?.(result);
    }
    output.finish();
  } catch (error) {
    output.discard();
    throw error;
  }
  const sourceBytes = tensors.reduce((sum, { tensor }) => sum + tensor.byteLength, 0);
  return { container, bytes, sourceBytes, tensors: done };
}

async function writeTensor(
  { tensor, format, byteLength, target, insteadOf }: PlannedTensor,
  output: NewFile,
  { levels, saturate = false, signal }: QuantizeOptions,
): Promise<QuantizedTensor> {
  const { name, shape, format: from } = tensor;
  const facts = { name, shape, from, to: format.name, bytes: byteLength, insteadOf };
  if (!target) {
    await copyBytes(tensor, output, signal);
    return { ...facts, error: undefined, saturated: 0 };
  }
  const source = getFormat(from);
  const range = target.scope === "tensor" ? await rangeOf(tensor) : undefined;
  const encodeOptions = { ...levels && { levels }, ...range && { range } };
  const sums = createErrorSums();
  let saturated = 0;
  let encoded = new Uint8Array(0);
  let decoded = new Float32Array(0);
  for await (const { start, values } of readTensorRows(tensor, source)) {
    signal?.throwIfAborted();
    if (saturate) saturated += makeFinite(values);
    const bad = findNonFinite(values);
    if (bad >= 0) throw refuse(tensor, `value ${start + bad} is ${values[bad]}`, true);
    const bytes = formatBytes(target, values.length);
    if (encoded.length !== bytes) encoded = new Uint8Array(bytes);
    if (decoded.length !== values.length) decoded = new Float32Array(values.length);
    try {
      target.encode!(values, encoded, encodeOptions);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      throw refuse(tensor, `in the run from value ${start}: ${error.message}`, false, error);
    }
    target.decode(encoded, decoded);
    const lost = findNonFinite(decoded);
    if (lost >= 0) {
      const value = values[lost];
      throw refuse(tensor, `value ${start + lost}, ${value}, does not fit ${target.name}`, false);
    }
    addErrors(sums, values, decoded);
    output.write(encoded);
  }
  return { ...facts, error: errorStatistics(sums), saturated };
}

function refuse(
  { source, name }: TensorInfo,
  message: string,
  saturable: boolean,
  cause?: unknown,
): FormatError {
  return new FormatError(message, {
    file: source.name,
    place: `tensor ${JSON.stringify(name)}`,
    remedy: saturable
      ? "The weights are damaged; to store the nearest finite values, ask for saturation"
      : "Choose another format for this tensor",
    cause,
  });
}

/** Replaces what is not finite and counts it. */
function makeFinite(values: Float32Array): number {
  let count = 0;
  for (let at = findNonFinite(values); at >= 0; count++) {
    values[at] = Number.isNaN(values[at]) ? 0 : Math.sign(values[at]!) * LARGEST_F16;
    const next = findNonFinite(values.subarray(at + 1));
    at = next < 0 ? -1 : at + 1 + next;
  }
  return count;
}

async function copyBytes(
  { source, offset, byteLength }: TensorInfo,
  output: NewFile,
  signal: AbortSignal | undefined,
): Promise<void> {
  const buffer = new Uint8Array(Math.min(byteLength, 1 << 22));
  for (let at = 0; at < byteLength; at += buffer.length) {
    signal?.throwIfAborted();
    const part = buffer.subarray(0, Math.min(buffer.length, byteLength - at));
    await source.readInto(offset + at, part);
    output.write(part);
  }
}
