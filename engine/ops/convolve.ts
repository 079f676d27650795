// The loops behind conv, conv_integer and conv_transpose, in doubles. Taps are outermost and places of
// a row innermost, so that the inner loop runs over neighbouring elements of two arrays.

import type { Numbers } from "./host_numbers.ts";
import { tapRange, type WindowLoops } from "./windows.ts";

/** Extents of a convolution beside its window. */
export interface ConvolveSizes {
  readonly batch: number;
  /** Channels of the input. */
  readonly channels: number;
  /** Channels of the output. */
  readonly filters: number;
  readonly groups: number;
}

const volume = (dims: readonly number[]) => dims.reduce((a, b) => a * b, 1);

/** x [batch, channels, …], w [filters, channels / groups, …] → y [batch, filters, …], added to y. */
export function convolve(
  x: Numbers,
  { w, y, sizes, loops }: {
    readonly w: Numbers;
    readonly y: Float64Array;
    readonly sizes: ConvolveSizes;
    readonly loops: WindowLoops;
  },
): void {
  const { batch, channels, filters, groups } = sizes;
  const inside = volume(loops.size), outside = volume(loops.out), taps = volume(loops.kernel);
  const groupChannels = channels / groups, groupFilters = filters / groups;
  for (let n = 0; n < batch; n++) {
    for (let f = 0; f < filters; f++) {
      const first = Math.floor(f / groupFilters) * groupChannels;
      const target = y.subarray((n * filters + f) * outside, (n * filters + f + 1) * outside);
      for (let c = 0; c < groupChannels; c++) {
        const source = x.subarray((n * channels + first + c) * inside);
        convolvePlane(source, { w: w.subarray((f * groupChannels + c) * taps), y: target, loops });
      }
    }
  }
}

function convolvePlane(
  x: Numbers,
  { w, y, loops }: { readonly w: Numbers; readonly y: Float64Array; readonly loops: WindowLoops },
): void {
  eachTap(loops, (tap, input, output, count) => {
    const factor = w[tap]!, step = loops.stride[2];
    for (let i = 0; i < count; i++) y[output + i]! += factor * x[input + i * step]!;
  });
}

/** x [batch, channels, …], w [channels, filters / groups, …] → y [batch, filters, …], added to y. */
export function convolveTransposed(
  x: Numbers,
  { w, y, sizes, loops }: {
    readonly w: Numbers;
    readonly y: Float64Array;
    readonly sizes: ConvolveSizes;
    readonly loops: WindowLoops;
  },
): void {
  const { batch, channels, filters, groups } = sizes;
  // The loops are those of the forward convolution, whose input is this one's output.
  const outside = volume(loops.size), inside = volume(loops.out), taps = volume(loops.kernel);
  const groupChannels = channels / groups, groupFilters = filters / groups;
  for (let n = 0; n < batch; n++) {
    for (let c = 0; c < channels; c++) {
      const source = x.subarray((n * channels + c) * inside);
      const first = Math.floor(c / groupChannels) * groupFilters;
      for (let f = 0; f < groupFilters; f++) {
        const target = y.subarray((n * filters + first + f) * outside);
        const factors = w.subarray((c * groupFilters + f) * taps);
        eachTap(loops, (tap, output, input, count) => {
          const factor = factors[tap]!, step = loops.stride[2];
          for (let i = 0; i < count; i++) target[output + i * step]! += factor * source[input + i]!;
        });
      }
    }
  }
}

/** Calls `visit` for each tap and row of places: flat index in the input, in the output, and count. */
function eachTap(
  loops: WindowLoops,
  visit: (tap: number, input: number, output: number, count: number) => void,
): void {
  const { size, out, kernel, stride, dilation, begin } = loops;
  let tap = 0;
  for (let kd = 0; kd < kernel[0]; kd++) {
    const [d0, d1] = tapRange(loops, { axis: 0, tap: kd });
    for (let kh = 0; kh < kernel[1]; kh++) {
      const [h0, h1] = tapRange(loops, { axis: 1, tap: kh });
      for (let kw = 0; kw < kernel[2]; kw++, tap++) {
        const [w0, w1] = tapRange(loops, { axis: 2, tap: kw });
        if (w1 <= w0) continue;
        for (let d = d0; d < d1; d++) {
          const depth = d * stride[0] + kd * dilation[0] - begin[0];
          for (let h = h0; h < h1; h++) {
            const row = h * stride[1] + kh * dilation[1] - begin[1];
            const column = w0 * stride[2] + kw * dilation[2] - begin[2];
            const input = (depth * size[1] + row) * size[2] + column;
            visit(tap, input, (d * out[1] + h) * out[2] + w0, w1 - w0);
          }
        }
      }
    }
  }
}
