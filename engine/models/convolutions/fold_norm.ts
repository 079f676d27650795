// A convolution with the norm behind it folded in: what the norm does to a channel with the statistics of training is a
// factor and a summand, and both go into weights and bias while these are read.

import type { TensorInfo } from "../../formats/source.ts";
import { countOf, derivedTensor, readUnits } from "../../formats/derived_tensor.ts";
import { formatBytes, getFormat } from "../../../quant/mod.ts";
import { readConstant } from "../constants.ts";

/** A norm over batches, f32[channels] each. */
export interface BatchNorm {
  readonly gain: TensorInfo;
  readonly bias: TensorInfo;
  readonly mean: TensorInfo;
  readonly variance: TensorInfo;
  readonly epsilon: number;
}

/** Weight, F32 of the same shape, and bias, F32 [channels], of the two together. */
export function foldNorm(
  weight: TensorInfo,
  norm: BatchNorm,
): { readonly weight: TensorInfo; readonly bias: TensorInfo } {
  const channels = weight.shape[0]!, numbers = countOf(weight.shape) / channels;
  const format = getFormat(weight.format), rowBytes = formatBytes(format, numbers);
  let read: Promise<{ factors: Float32Array; summands: Float32Array }> | undefined;
  const rule = () => read ??= factorsOf(norm);
  async function rows(first: number, end: number): Promise<ArrayBuffer> {
    const bytes = new Uint8Array((end - first) * rowBytes);
    await weight.source.readInto(weight.offset + first * rowBytes, bytes);
    const values = new Float32Array((end - first) * numbers);
    format.decode(bytes, values);
    const { factors } = await rule();
    for (let i = 0; i < values.length; i++) values[i]! *= factors[first + Math.floor(i / numbers)]!;
    return values.buffer;
  }
  const summands = async (first: number, end: number) =>
    (await rule()).summands.slice(first, end).buffer as ArrayBuffer;
  return {
    weight: derivedTensor(weight, {
      ...{ name: `${weight.name}, normed`, label: `${weight.name} with its norm`, format: "F32" },
      ...{ shape: weight.shape, byteLength: 4 * channels * numbers },
      readInto: readUnits({ length: 4 * numbers, most: 64 }, rows),
    }),
    bias: derivedTensor(norm.bias, {
      ...{ name: `${norm.bias.name}, folded`, label: `${norm.bias.name} folded`, format: "F32" },
      ...{ shape: [channels], byteLength: 4 * channels },
      readInto: readUnits({ length: 4 }, summands),
    }),
  };
}

async function factorsOf({ gain, bias, mean, variance, epsilon }: BatchNorm) {
  const [gains, biases, means, variances] = await Promise.all(
    [gain, bias, mean, variance].map(readConstant),
  ) as [Float32Array, Float32Array, Float32Array, Float32Array];
  const factors = gains.map((value, i) => value / Math.sqrt(variances[i]! + epsilon));
  const summands = biases.map((value, i) => value - means[i]! * factors[i]!);
  return { factors, summands };
}
