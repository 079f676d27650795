// How weight matrices lie on the GPU. A layout cuts a matrix into groups of rows and stores each group in
// one or more planes (codes, scales), so that a large matrix can be split between groups over several
// bindings and every kernel reads whole vectors. Nothing is rounded: decoding a layout gives exactly the
// numbers of the file. A format without a layout of its own is decoded to float32.

import { getFormat } from "../quant/mod.ts";

/** One way to store a matrix. */
export interface GpuWeightLayout {
  /** By which kernels know it. */
  readonly id: string;
  /** Rows are stored in groups of this many; the last group is padded with zeros. */
  readonly rowGroup: number;
  /** Bytes of one group of rows in each plane; multiples of 4. */
  planeBytes(columns: number): readonly number[];
  /**
   * Rearranges rows as the file stores them.
   *
   * @param file Whole rows of the number format.
   * @param planes Zero-filled, one range a plane, long enough for the groups that the rows take.
   */
  pack(file: Uint8Array, size: PackSize, planes: readonly Uint8Array[]): void;
}

/** What is packed. */
export interface PackSize {
  readonly format: string;
  readonly rows: number;
  readonly columns: number;
}

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

/** Layouts by number format. */
const LAYOUTS: ReadonlyMap<string, GpuWeightLayout> = new Map();

/** The layout that weights of a number format with rows of this many columns get. */
export function gpuLayoutOf(format: string, _columns: number): GpuWeightLayout {
  return LAYOUTS.get(format) ?? FLOAT_LAYOUT;
}
