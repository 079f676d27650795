// How weight matrices lie on the GPU: the table of layouts by number format. Nothing is rounded: decoding a
// layout gives exactly the numbers of the file. A format without a layout of its own is decoded to float32.

import { getFormat } from "../quant/mod.ts";
import { codeLayout, codeLayoutOf, GROUP_COLUMNS } from "./layouts/code_layout.ts";
import type { GpuWeightLayout, PackSize } from "./packed_layout.ts";

export { codeLayout };
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

/** A byte a value and no scale: rows as in the file, each padded with zeros to a multiple of 16 columns. */
function byteLayout(id: string, format: string): GpuWeightLayout {
  let table: Uint32Array<ArrayBuffer> | undefined;
  return {
    id,
    rowGroup: 1,
    /** Values of all bytes, float32. */
    get table() {
      if (table) return table;
      const values = new Float32Array(256);
      getFormat(format).decode(Uint8Array.from(values, (_, byte) => byte), values);
      return table = new Uint32Array(values.buffer);
    },
    planeBytes: (columns) => [16 * Math.ceil(columns / 16)],
    pack(file, { rows, columns }, [plane]) {
      const stride = 16 * Math.ceil(columns / 16);
      for (let row = 0; row < rows; row++) {
        plane!.set(file.subarray(columns * row, columns * (row + 1)), stride * row);
      }
    },
  };
}

/** Layouts of floats by number format. */
const FLOAT_LAYOUTS: ReadonlyMap<string, GpuWeightLayout> = new Map([
  ["F16", halfLayout("f16")],
  ["BF16", halfLayout("bf16")],
  ["Q8_LOG", byteLayout("log8", "Q8_LOG")],
]);

const FLOATS_BY_ID: ReadonlyMap<string, GpuWeightLayout> = new Map(
  [FLOAT_LAYOUT, ...FLOAT_LAYOUTS.values()].map((layout) => [layout.id, layout]),
);

/**
 * The layout that weights of a number format with rows of this many columns get. Formats of smaller blocks than a
 * group of a kernel are decoded where a row ends within one.
 */
export function gpuLayoutOf(format: string, columns: number): GpuWeightLayout {
  const codes = columns % GROUP_COLUMNS === 0 ? codeLayoutOf(format) : undefined;
  return codes ?? FLOAT_LAYOUTS.get(format) ?? FLOAT_LAYOUT;
}

/**
 * The layout of an id.
 *
 * @throws {RangeError} If there is none.
 */
export function gpuLayout(id: string): GpuWeightLayout {
  const layout = codeLayout(id) ?? FLOATS_BY_ID.get(id);
  if (!layout) throw new RangeError(`Cannot read weights of layout "${id}": there is none`);
  return layout;
}

/** Whether a number format has kernels on 8-bit activations; rows are whole groups of 32 columns then. */
export function hasGpuIntegerKernel(format: string): boolean {
  return codeLayoutOf(format) !== undefined;
}
