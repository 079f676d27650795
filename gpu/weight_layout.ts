// How weight matrices lie on the GPU: the table of layouts by number format. Nothing is rounded: decoding a
// layout gives exactly the numbers of the file. A format without a layout of its own is decoded to float32.

import { getFormat } from "../quant/mod.ts";
import { CODE_LAYOUTS, type CodeLayout } from "./code_layouts.ts";
import type { GpuWeightLayout, PackSize } from "./packed_layout.ts";

export type { GpuWeightLayout, PackSize };

/** Rows of float32, each padded with zeros to a multiple of 4 columns; the form of last resort. */
export const FLOAT_LAYOUT: GpuWeightLayout = {
  id: "f32",
  rowGroup: 1,
  planeBytes: (columns) => [16 * Math.ceil(columns / 4)],
  pack(file, { format, rows, columns }, [plane]) {
    const { decode, blockSize, blockBytes } = getFormat(format);
    const rowBytes = columns / blockSize * blockBytes;
    const stride = 4 * Math.ceil(columns / 4);
    const target = new Float32Array(plane!.buffer, plane!.byteOffset, rows * stride);
    for (let row = 0; row < rows; row++) {
      decode(
        file.subarray(row * rowBytes, (row + 1) * rowBytes),
        target.subarray(row * stride, row * stride + columns),
      );
    }
  },
};

/** Rows of 16-bit floats as in the file, each padded with zeros to a multiple of 8 columns. */
function halfLayout(id: string): GpuWeightLayout {
  return {
    id,
    rowGroup: 1,
    planeBytes: (columns) => [16 * Math.ceil(columns / 8)],
    pack(file, { rows, columns }, [plane]) {
      const stride = 16 * Math.ceil(columns / 8);
      for (let row = 0; row < rows; row++) {
        plane!.set(file.subarray(2 * columns * row, 2 * columns * (row + 1)), stride * row);
      }
    },
  };
}

/** Layouts by number format; what is not here is decoded to float32. */
const LAYOUTS: ReadonlyMap<string, GpuWeightLayout> = new Map([
  ["F16", halfLayout("f16")],
  ["BF16", halfLayout("bf16")],
  ...Object.entries(CODE_LAYOUTS),
]);

const BY_ID: ReadonlyMap<string, GpuWeightLayout> = new Map(
  [FLOAT_LAYOUT, ...LAYOUTS.values()].map((layout) => [layout.id, layout]),
);

/** The layout that weights of a number format with rows of this many columns get. */
export function gpuLayoutOf(format: string, _columns: number): GpuWeightLayout {
  return LAYOUTS.get(format) ?? FLOAT_LAYOUT;
}

/**
 * The layout of an id.
 *
 * @throws {RangeError} If there is none.
 */
export function gpuLayout(id: string): GpuWeightLayout {
  const layout = BY_ID.get(id);
  if (!layout) throw new RangeError(`Cannot read weights of layout "${id}": there is none`);
  return layout;
}

/** The layout of an id if it holds codes with scales, which integer kernels read; else undefined. */
export function codeLayout(id: string): CodeLayout | undefined {
  return Object.values(CODE_LAYOUTS).find((layout) => layout.id === id);
}

/** Whether a number format has kernels on 8-bit activations. */
export function hasGpuIntegerKernel(format: string): boolean {
  return format in CODE_LAYOUTS;
}
