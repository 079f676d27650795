// A run of rows on its way into a number format: encoded, and decoded again to be compared. What is to be done is
// plain data, so that a worker does it as the calling thread would, with the same bytes.

import { type InputFactor, roundByGptq } from "../../quant/gptq.ts";
import { type EncodeOptions, formatBytes, getFormat } from "../../quant/mod.ts";
import { createRoundingGrid } from "../../quant/rounding.ts";

/** How the runs of a tensor are rounded. */
export interface EncodeJob {
  /** Name in the table of formats. */
  readonly format: string;
  readonly options: EncodeOptions;
  /** What GPTQ knows of the inputs; absent: every value by itself. */
  readonly factor?: InputFactor;
}

/** A run in its new format. */
export interface EncodedRun {
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** What the bytes stand for. */
  readonly decoded: Float32Array<ArrayBuffer>;
}

/**
 * Encodes whole rows.
 *
 * @throws {RangeError} If the format cannot hold them.
 */
export function encodeRun(
  { format: name, options, factor }: EncodeJob,
  values: Float32Array,
): EncodedRun {
  const format = getFormat(name);
  const bytes = new Uint8Array(formatBytes(format, values.length));
  const decoded = new Float32Array(values.length);
  if (factor) roundByGptq(createRoundingGrid(format), values, factor, bytes, options);
  else format.encode!(values, bytes, options);
  format.decode(bytes, decoded);
  return { bytes, decoded };
}
