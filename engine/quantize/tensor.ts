// One tensor on its way into a quantised file: runs of rows are decoded, rounded, written, and decoded again
// to be compared. Every value is looked at before it is stored and again after: a NaN, an infinity or a scale
// that overflows ends the work with the tensor and the index. A copy is looked at too: damaged weights are no
// better in the format that they came in.

import { findNonFinite } from "../../quant/finite.ts";
import { getFormat } from "../../quant/mod.ts";
import { pause } from "../pause.ts";
import { FormatError } from "../errors.ts";
import type { TensorInfo } from "../formats/source.ts";
import { readTensorRows } from "../formats/tensor_rows.ts";
import type { NewFile } from "../io.ts";
import type { EncodePool } from "./encode_pool.ts";
import { encodeTensor } from "./encode_tensor.ts";
import {
  addErrors,
  createErrorSums,
  type ErrorStatistics,
  errorStatistics,
} from "./error_statistics.ts";
import { openOutliers, outlierBytes } from "./outliers.ts";
import { isFloatFormat, type PlannedTensor } from "./plan.ts";
import type { Rounding, RoundingMethod } from "./rounding.ts";

/**
 * What became of a tensor.
 * @category Number formats
 */
export interface QuantizedTensor {
  /** As in the file. */
  readonly name: string;
  /** Outermost dimension first. */
  readonly shape: readonly number[];
  /** Format in the file that was read. */
  readonly from: string;
  /** Format in the new file. */
  readonly to: string;
  /** Bytes in the new file. */
  readonly bytes: number;
  /** The format that was asked for, where its blocks do not fill the rows. */
  readonly insteadOf: string | undefined;
  /** Weights that stand beside it in float32. */
  readonly outliers: number;
  /** How values were rounded; undefined where bytes were copied. */
  readonly method: RoundingMethod | undefined;
  /** Error of the new values; undefined where bytes were copied. */
  readonly error: ErrorStatistics | undefined;
  /** Values that were not finite and were replaced, also where other bytes were copied. */
  readonly saturated: number;
}

/** Options of {@linkcode writeTensor}; see `QuantizeModelOptions`. */
export interface WriteOptions {
  readonly saturate?: boolean;
  readonly signal?: AbortSignal | undefined;
  readonly pool: EncodePool;
}

const LARGEST_F16 = 65504;

/**
 * Writes a tensor in its new format, or copies it.
 *
 * @throws {FormatError} If a weight is not finite, or a scale does not fit the format.
 */
export async function writeTensor(
  planned: PlannedTensor,
  { output, rounding }: { readonly output: NewFile; readonly rounding: Rounding },
  { saturate = false, signal, pool }: WriteOptions,
): Promise<QuantizedTensor> {
  const { tensor, format, byteLength, target, insteadOf } = planned;
  const { name, shape, format: from } = tensor;
  const bytes = byteLength + outlierBytes(planned);
  const facts = {
    ...{ name, shape, from, to: format.name },
    ...{ bytes, insteadOf, outliers: planned.outliers },
  };
  if (!target) {
    const saturated = await copyTensor(tensor, output, { saturate, signal });
    return { ...facts, method: undefined, error: undefined, saturated };
  }
  const source = getFormat(from);
  let saturated = 0;
  const { method, change, job } = await rounding.encoderOf(planned);
  const checked = (start: number, values: Float32Array): void => {
    if (saturate) saturated += makeFinite(values);
    const bad = findNonFinite(values);
    if (bad >= 0) {
      throw refuse(tensor, { message: `value ${start + bad} is ${values[bad]}`, saturable: true });
    }
    change?.(start, values);
  };
  const outliers = await openOutliers(planned, { source, checked, signal });
  const sums = createErrorSums();
  saturated = 0;
  await encodeTensor(tensor, source, {
    ...{ pool, job, signal },
    before(start, values) {
      checked(start, values);
      outliers?.takeFrom(values);
    },
    after(start, { bytes, decoded, values }) {
      const lost = findNonFinite(decoded);
      if (lost >= 0) {
        const place = `value ${start + lost}, ${values[lost]},`;
        throw refuse(tensor, { message: `${place} does not fit ${target.name}`, saturable: false });
      }
      // Other columns make up for what GPTQ's zero in the place of an outlier became.
      outliers?.putBack(start, values, decoded, method === "gptq");
      addErrors(sums, { values, decoded });
      output.write(bytes);
    },
    fail: (start, error) =>
      refuse(tensor, {
        message: `in the run from value ${start}: ${error.message}`,
        saturable: false,
        cause: error,
      }),
  });
  outliers?.writeTo(output);
  return { ...facts, method, error: errorStatistics(sums), saturated };
}

function refuse(
  { source, name }: TensorInfo,
  { message, saturable, cause }: {
    readonly message: string;
    readonly saturable: boolean;
    readonly cause?: unknown | undefined;
  },
): FormatError {
  return new FormatError(message, {
    file: source.name,
    place: `tensor ${JSON.stringify(name)}`,
    remedy: saturable
      ? "The weights are damaged; to store the nearest finite values, set saturate"
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

/** Copies a tensor; blocks that are not finite are refused, or replaced and counted. */
async function copyTensor(
  tensor: TensorInfo,
  output: NewFile,
  { saturate, signal }: Omit<WriteOptions, "pool">,
): Promise<number> {
  if (!isFloatFormat(tensor.format)) {
    await copyBytes(tensor, output, signal);
    return 0;
  }
  const format = getFormat(tensor.format);
  const { blockSize, blockBytes } = format;
  let saturated = 0;
  for await (const { start, bytes, values } of readTensorRows(tensor, { format, signal })) {
    const bad = findNonFinite(values);
    if (bad >= 0) {
      const message = `value ${start + bad} is ${values[bad]}`;
      if (!saturate) throw refuse(tensor, { message, saturable: true });
      if (!format.encode) {
        throw refuse(tensor, {
          message: `${message}, and ${format.name} has no encoder to replace it`,
          saturable: false,
        });
      }
      for (let block = Math.floor(bad / blockSize); block * blockSize < values.length; block++) {
        const part = values.subarray(block * blockSize, (block + 1) * blockSize);
        const replaced = makeFinite(part);
        if (replaced === 0) continue;
        saturated += replaced;
        format.encode(part, bytes.subarray(block * blockBytes, (block + 1) * blockBytes));
      }
    }
    output.write(bytes);
  }
  return saturated;
}

async function copyBytes(
  { source, offset, byteLength }: TensorInfo,
  output: NewFile,
  signal: AbortSignal | undefined,
): Promise<void> {
  const buffer = new Uint8Array(Math.min(byteLength, 1 << 22));
  for (let at = 0; at < byteLength; at += buffer.length) {
    await pause();
    signal?.throwIfAborted();
    const part = buffer.subarray(0, Math.min(buffer.length, byteLength - at));
    await source.readInto(offset + at, part);
    output.write(part);
  }
}
