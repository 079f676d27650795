// How far number formats are from a model's weights (LlamaF table IV): every matrix is encoded and decoded,
// and the magnitudes of the errors are summed up a tensor and over all. Or two files of one model are
// compared, tensor by tensor, which judges any quantiser.

import { findNonFinite } from "../../quant/finite.ts";
import { type EncodeOptions, getFormat, type NumberFormat } from "../../quant/mod.ts";
import { chooseFormat, type QuantPolicy } from "../../quant/policy.ts";
import { FormatError } from "../errors.ts";
import type { TensorInfo, WeightFile } from "../formats/source.ts";
import { readTensorRows } from "../formats/tensor_rows.ts";
import { createEncodePool } from "./encode_pool.ts";
import { encodeTensor } from "./encode_tensor.ts";
import {
  addErrors,
  createErrorSums,
  type ErrorStatistics,
  errorStatistics,
  type ErrorSums,
  mergeErrors,
} from "./error_statistics.ts";
import { isFloatFormat, modelFacts } from "./plan.ts";

/**
 * Errors of one tensor.
 * @category Number formats
 */
export interface TensorQuantError extends ErrorStatistics {
  /** As in the file. */
  readonly name: string;
  /** Outermost dimension first. */
  readonly shape: readonly number[];
  /** The format that was tried, or that of the other file. */
  readonly format: string;
  /** The format that was to be tried, where its blocks do not fill the rows. */
  readonly insteadOf: string | undefined;
  /** Bits a weight of that format. */
  readonly bits: number;
}

/**
 * Errors of a model.
 * @category Number formats
 */
export interface ModelQuantError {
  /** Of each matrix, in the order of the file. */
  readonly tensors: readonly TensorQuantError[];
  /** Over all tensors. */
  readonly total: ErrorStatistics;
  /** Bits a weight, over all tensors. */
  readonly bits: number;
}

/** Options of the functions here. */
export interface PolicyErrorOptions {
  /** Levels of Inferflow's blocks and of LF8. Default `paper`. */
  readonly levels?: EncodeOptions["levels"];
  /** Only tensors of such names. */
  readonly only?: RegExp;
  /** Threads that encode. Default: all processors, 4 at most. */
  readonly threads?: number;
  /** Stops between two runs of rows. */
  readonly signal?: AbortSignal;
}

/**
 * Errors of a policy on the matrices of a model; tensors that it keeps are left out.
 *
 * @throws {FormatError} If a weight is not finite, or does not fit the format.
 */
export async function policyError(
  file: WeightFile,
  policy: QuantPolicy,
  { levels = "paper", only, threads, signal }: PolicyErrorOptions = {},
): Promise<ModelQuantError> {
  const model = modelFacts(file);
  using pool = createEncodePool(threads);
  const all: Measured[] = [];
  for (const tensor of file.tensors.values()) {
    if (!isFloatFormat(tensor.format) || (only && !only.test(tensor.name))) continue;
    const { format, insteadOf } = chooseFormat(policy, tensor, model);
    if (!format) continue;
    const range = format.scope === "tensor" ? await rangeOf(tensor, signal) : undefined;
    const options = { levels, ...range && { range } };
    const sums = createErrorSums();
    await encodeTensor(tensor, getFormat(tensor.format), {
      ...{ pool, job: { format: format.name, options }, signal },
      before(start, values) {
        const bad = findNonFinite(values);
        if (bad >= 0) throw broken(tensor, `value ${start + bad} is ${values[bad]}`);
      },
      after: (_start, { values, decoded }) => addErrors(sums, { values, decoded }),
      fail: (start, error) =>
        broken(tensor, `in the run from value ${start}: ${error.message}`, error),
    });
    all.push({ tensor, format, insteadOf, sums });
  }
  return summarize(all);
}

/**
 * Errors of a file's weights against those of the file that it was made from.
 *
 * @throws {FormatError} If a tensor of `file` is missing from `other` or has another shape there.
 */
export async function fileError(
  file: WeightFile,
  other: WeightFile,
  { only, signal }: PolicyErrorOptions = {},
): Promise<ModelQuantError> {
  const all: Measured[] = [];
  for (const tensor of file.tensors.values()) {
    if (!isFloatFormat(tensor.format) || tensor.shape.length < 2) continue;
    if (only && !only.test(tensor.name)) continue;
    const twin = other.tensors.get(tensor.name);
    if (!twin || twin.shape.join() !== tensor.shape.join()) {
      const place = `tensor ${JSON.stringify(tensor.name)}`;
      const problem = twin ? `has the shape [${twin.shape}], not [${tensor.shape}]` : "is missing";
      const remedy = `Give another file of the model that ${file.name} is`;
      throw new FormatError(problem, { file: other.name, place, remedy });
    }
    const format = getFormat(twin.format);
    const sums = createErrorSums();
    const theirs = readTensorRows(twin, { format });
    for await (
      const { values } of readTensorRows(tensor, { format: getFormat(tensor.format), signal })
    ) {
      // Runs are of the same rows, since the shapes are equal.
      addErrors(sums, { values, decoded: (await theirs.next()).value!.values });
    }
    all.push({ tensor, format, sums });
  }
  return summarize(all);
}

interface Measured {
  readonly tensor: TensorInfo;
  readonly format: NumberFormat;
  readonly insteadOf?: string | undefined;
  readonly sums: ErrorSums;
}

function broken({ source, name }: TensorInfo, message: string, cause?: unknown): FormatError {
  const place = `tensor ${JSON.stringify(name)}`;
  return new FormatError(message, { file: source.name, place, cause });
}

/** Smallest and greatest value of a tensor. */
export async function rangeOf(tensor: TensorInfo, signal?: AbortSignal): Promise<[number, number]> {
  let min = Infinity, max = -Infinity;
  for await (
    const { values } of readTensorRows(tensor, { format: getFormat(tensor.format), signal })
  ) {
    for (const value of values) {
      if (value < min) min = value;
      if (value > max) max = value;
    }
  }
  return [min, max];
}

function summarize(all: readonly Measured[]): ModelQuantError {
  const total = createErrorSums();
  let bits = 0;
  const tensors = all.map(({ tensor, format, insteadOf, sums }) => {
    mergeErrors(total, sums);
    const bitsEach = format.blockBytes * 8 / format.blockSize;
    bits += bitsEach * sums.count;
    return {
      name: tensor.name,
      shape: tensor.shape,
      format: format.name,
      insteadOf,
      bits: bitsEach,
      ...errorStatistics(sums),
    };
  });
  return { tensors, total: errorStatistics(total), bits: total.count ? bits / total.count : 0 };
}
