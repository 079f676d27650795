// Large pictures through an autoencoder in tiles, for memory: tiles overlap by a quarter, and where they do the one fades
// into the other, as in diffusers' AutoencoderKL (`enable_tiling`).

import type { Tensor } from "../../models/networks/network.ts";

/** Share of a tile that its neighbour has, too. */
const OVERLAP = 0.25;

/** How tiles are cut and put together. */
export interface Tiling {
  /** Edge of a tile on its way in, and of what comes of a whole one. */
  readonly size: number;
  readonly made: number;
  /** What becomes of a tile [1, channels, height, width]; the result is kept. */
  readonly run: (tile: Tensor) => Promise<Tensor>;
}

/** Whether something is larger than a tile. */
export function needsTiles({ dims }: Tensor, size: number): boolean {
  return dims[2]! > size || dims[3]! > size;
}

/** Runs [1, channels, height, width] in tiles. */
export async function runTiled(whole: Tensor, { size, made, run }: Tiling): Promise<Tensor> {
  const step = Math.trunc(size * (1 - OVERLAP)), fade = Math.trunc(made * OVERLAP);
  const [, , height, width] = whole.dims as [number, number, number, number];
  const rows: Tensor[][] = [];
  for (let y = 0; y < height; y += step) {
    const row: Tensor[] = [];
    for (let x = 0; x < width; x += step) {
      const place = { x, y, width: Math.min(size, width - x), height: Math.min(size, height - y) };
      const tile = await run(cut(whole, place));
      const above = rows.at(-1)?.[row.length], left = row.at(-1);
      row.push(tile);
      if (above) fadeIn(tile, above, { axis: 2, most: fade });
      if (left) fadeIn(tile, left, { axis: 3, most: fade });
    }
    rows.push(row);
  }
  return joinedTiles(rows, made - fade);
}

interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

function cut({ data, dims }: Tensor, { x, y, width, height }: Box): Tensor {
  const [, channels, rows, columns] = dims as [number, number, number, number];
  const part = new Float32Array(channels * height * width);
  for (let row = 0; row < channels * height; row++) {
    const from = (Math.floor(row / height) * rows + y + row % height) * columns + x;
    part.set(data.subarray(from, from + width), row * width);
  }
  return { data: part, dims: [1, channels, height, width] };
}

/** The first rows (axis 2) or columns of a tile grow out of the last ones of its neighbour. */
function fadeIn(
  { data, dims }: Tensor,
  { data: before, dims: other }: Tensor,
  { axis, most }: { readonly axis: 2 | 3; readonly most: number },
): void {
  const [, channels, height, width] = dims as [number, number, number, number];
  const [, , rows, columns] = other as [number, number, number, number];
  const extent = Math.min(most, dims[axis]!, other[axis]!);
  const [down, right] = axis === 2 ? [rows - extent, 0] : [0, columns - extent];
  const [most2, most3] = axis === 2
    ? [extent, Math.min(width, columns)]
    : [Math.min(height, rows), extent];
  for (let channel = 0; channel < channels; channel++) {
    for (let y = 0; y < most2; y++) {
      for (let x = 0; x < most3; x++) {
        const share = (axis === 2 ? y : x) / extent, at = (channel * height + y) * width + x;
        const from = before[(channel * rows + down + y) * columns + right + x]!;
        data[at] = from * (1 - share) + data[at]! * share;
      }
    }
  }
}

/** Of each tile so many rows and columns as do not belong to the next. */
function joinedTiles(rows: readonly (readonly Tensor[])[], limit: number): Tensor {
  const channels = rows[0]![0]!.dims[1]!, shown = (size: number) => Math.min(limit, size);
  const height = rows.reduce((sum, [first]) => sum + shown(first!.dims[2]!), 0);
  const width = rows[0]!.reduce((sum, { dims }) => sum + shown(dims[3]!), 0);
  const data = new Float32Array(channels * height * width);
  let top = 0;
  for (const row of rows) {
    let left = 0;
    for (const { data: tile, dims } of row) {
      const [, , tall, wide] = dims as [number, number, number, number];
      for (let line = 0; line < channels * shown(tall); line++) {
        const channel = Math.floor(line / shown(tall)), y = line % shown(tall);
        const from = (channel * tall + y) * wide;
        data.set(
          tile.subarray(from, from + shown(wide)),
          (channel * height + top + y) * width + left,
        );
      }
      left += shown(wide);
    }
    top += shown(row[0]!.dims[2]!);
  }
  return { data, dims: [1, channels, height, width] };
}
