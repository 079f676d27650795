// What a layout of packed weights is, as layouts fill it in (weight_layout.ts, layouts/). A matrix is cut
// into groups of rows, and each group is stored in one or more planes (codes, scales), so that a large matrix can
// be split between groups over several bindings and every kernel reads whole vectors.

/** One way to store a matrix. */
export interface GpuWeightLayout {
  /** By which kernels know it. */
  readonly id: string;
  /** Rows are stored in groups of this many; the last group is padded with zeros. */
  readonly rowGroup: number;
  /** Bytes of one group of rows in each plane; multiples of 4. */
  planeBytes(columns: number): readonly number[];
  /** Words that all rows of all matrices share, such as levels of codes: a plane of its own behind the others. */
  readonly table?: Uint32Array<ArrayBuffer> | undefined;
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
