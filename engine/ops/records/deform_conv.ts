// deform_conv: convolution whose taps are moved by offsets that the network computes, read bilinearly
// (zero outside), and weighted by an optional mask. Two spatial dims.
//
// Dai et al. 2017, "Deformable Convolutional Networks"; the mask: Zhu et al. 2018.

import { integer } from "../attributes.ts";
import { defineOp } from "../define_op.ts";
import { FLOATS, numbersOf, storeNumbers } from "../host_numbers.ts";
import type { OpRecord } from "../op.ts";
import { checkInputCount, optionalInput, requireInput } from "../shape_rules.ts";
import { completeWindow, windowPads } from "../windows.ts";
import { CONV_RULES, convShape } from "./conv.ts";

/**
 * (x [N, C, H, W], w [F, C / groups, kH, kW], offset [N, offset_groups·kH·kW·2, oH, oW], bias [F]?,
 * mask [N, offset_groups·kH·kW, oH, oW]?) → [N, F, oH, oW]; an offset is (rows, columns).
 */
export const deformConv: OpRecord = defineOp({
  name: "deform_conv",
  summary: "convolution with taps moved by offsets",
  attributes: { ...CONV_RULES, offset_groups: integer(1, 1) },
  infer(inputs, attributes) {
    checkInputCount(inputs, 5);
    const x = requireInput(inputs, { index: 0, name: "x", dtype: FLOATS, rank: 4 });
    const w = requireInput(inputs, { index: 1, name: "w", dtype: x.dtype, rank: 4 });
    requireInput(inputs, { index: 2, name: "offset", dtype: x.dtype, rank: 4 });
    optionalInput(inputs, { index: 3, name: "bias", dtype: x.dtype, rank: 1 });
    optionalInput(inputs, { index: 4, name: "mask", dtype: x.dtype, rank: 4 });
    return [{ dtype: x.dtype, shape: convShape(x, { w, attributes }) }];
  },
  reference({ inputs, outputs: [out], attributes }) {
    const [x, w, offset, bias, mask] = inputs.map((input) => input && numbersOf(input));
    const [, channels, height, width] = inputs[0]!.shape as [number, number, number, number];
    const [filters, groupChannels, kh, kw] = inputs[1]!.shape as [number, number, number, number];
    const [, , outHeight, outWidth] = out!.shape as [number, number, number, number];
    const window = completeWindow({ ...attributes, kernel: [kh, kw] });
    const pads = windowPads([height, width], window);
    const places = outHeight * outWidth, taps = kh * kw;
    const groupFilters = filters / attributes.groups;
    const perOffset = channels / attributes.offset_groups;
    const y = new Float64Array(out!.data.length);

    // One output element: the sum over the channels of its group and the taps.
    function element(
      n: number,
      { f, row, column }: { readonly f: number; readonly row: number; readonly column: number },
    ): number {
      const place = row * outWidth + column;
      const first = Math.floor(f / groupFilters) * groupChannels;
      let sum = bias ? bias[f]! : 0;
      for (let c = 0; c < groupChannels; c++) {
        const channel = first + c;
        const plane = x!.subarray((n * channels + channel) * height * width);
        const moved = Math.floor(channel / perOffset);
        for (let tap = 0; tap < taps; tap++) {
          const at = (n * attributes.offset_groups + moved) * taps + tap;
          const gate = mask ? mask[at * places + place]! : 1;
          const r = row * window.strides[0]! - pads[0]!.begin +
            Math.floor(tap / kw) * window.dilations[0]! + offset![2 * at * places + place]!;
          const q = column * window.strides[1]! - pads[1]!.begin +
            (tap % kw) * window.dilations[1]! + offset![(2 * at + 1) * places + place]!;
          const factor = w![(f * groupChannels + c) * taps + tap]!;
          sum += gate * factor * bilinear(plane, { height, width, row: r, column: q });
        }
      }
      return sum;
    }

    for (let i = 0; i < y.length; i++) {
      const place = i % places, plane = Math.floor(i / places);
      const n = Math.floor(plane / filters), f = plane % filters;
      y[i] = element(n, { f, row: Math.floor(place / outWidth), column: place % outWidth });
    }
    storeNumbers(out!, y);
  },
  cases: (random) => [
    ...[false, true].map((masked) => ({
      name: masked ? "two groups of offsets, mask" : "one group of offsets",
      inputs: [
        random.input([1, 4, 6, 7]),
        random.input([3, 4, 3, 3]),
        random.input([1, masked ? 36 : 18, 6, 7]),
        random.input([3]),
        masked ? random.input([1, 18, 6, 7]) : undefined,
      ],
      attributes: { pads: [1, 1, 1, 1], offset_groups: masked ? 2 : 1 },
    })),
    ...(["same_upper", "same_lower"] as const).map((padding) => ({
      inputs: [random.input([1, 4, 6, 7]), random.input([2, 2, 2, 3]), random.input([1, 12, 3, 4])],
      attributes: { strides: [2, 2], dilations: [1, 2], padding, groups: 2 },
    })),
  ],
});

/** The plane at a place between elements; 0 beyond its edges. */
function bilinear(
  plane: ArrayLike<number>,
  { height, width, row, column }: {
    readonly height: number;
    readonly width: number;
    readonly row: number;
    readonly column: number;
  },
): number {
  const top = Math.floor(row), left = Math.floor(column);
  const down = row - top, right = column - left;
  const at = (r: number, c: number) =>
    r < 0 || r >= height || c < 0 || c >= width ? 0 : plane[r * width + c]!;
  return (1 - down) * ((1 - right) * at(top, left) + right * at(top, left + 1)) +
    down * ((1 - right) * at(top + 1, left) + right * at(top + 1, left + 1));
}
