// Positions by place (Qwen2-VL, arXiv 2409.12191, section 2.1): a token's rotations go by one number on three axes, a row of
// a picture by its row and column there. What stands behind a picture goes on behind its longer side. A step has the
// difference to where rows stand in the cache, which is the same for all tokens behind the last picture.

import type { PictureTable } from "./picture_table.ts";

/** The axes of a step's offsets. */
const [TIME, HEIGHT, WIDTH] = [0, 1, 2] as const;

/** Tokens with their pictures, and what is written for each of them. */
export interface PlacedTokens {
  readonly tokens: Int32Array;
  /** By axis. */
  readonly offsets: readonly Int32Array[];
  readonly pictures: PictureTable;
}

/** Writes the offsets of tokens `from` to `to`; those before have theirs. */
export function placeTokens(
  { tokens, offsets, pictures }: PlacedTokens,
  { from, to }: { readonly from: number; readonly to: number },
): void {
  let place = from === 0 ? 0 : behind({ tokens, offsets, pictures }, from - 1);
  for (let i = from; i < to; i++) {
    const id = tokens[i]!;
    if (id >= 0) {
      for (const column of offsets) column[i] = place - i;
      place++;
      continue;
    }
    const { row, count, picture: { grid } } = pictures.placeOf(id), { columns } = grid!;
    offsets[TIME]![i] = place - i;
    offsets[HEIGHT]![i] = place + Math.floor(row / columns) - i;
    offsets[WIDTH]![i] = place + row % columns - i;
    if (row === count - 1) place += Math.max(grid!.rows, columns);
  }
}

/** The place behind token `i`, or of its picture where that goes on. */
function behind({ tokens, offsets, pictures }: PlacedTokens, i: number): number {
  const place = i + offsets[TIME]![i]!, id = tokens[i]!;
  if (id >= 0) return place + 1;
  const { row, count, picture: { grid } } = pictures.placeOf(id);
  return row === count - 1 ? place + Math.max(grid!.rows, grid!.columns) : place;
}
