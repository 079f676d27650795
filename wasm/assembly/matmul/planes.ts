// An unpacked panel turned where it is into what joined tiles read (gen/planes.ts): of each eight weight rows the even bytes of a quad's
// codes and then the odd ones, or two codes of 4 bit a byte, and the low halves of scales and then the high ones.
import { panelBits, panelScales } from "../generated/layouts";

/** Whether a panel of a layout has codes of 4 bit, for sums of two. */
@inline export function hasNibbles(layout: u32, pairs: bool): bool { return pairs && panelBits(layout) == 4; }

/** `columns` columns of a panel; `nibbles`: codes take half the bytes afterwards. */
export function planePanel(layout: u32, codes: usize, scales: usize, columns: usize, nibbles: bool): void {
  if (nibbles) planeNibbles(codes, columns);
  else planeBytes(codes, columns);
  for (const end = scales + (columns * panelScales(layout) >> 1); scales < end; scales += 32) {
    storeHalves(v128.load(scales), v128.load(scales, 16), scales);
  }
}

/** Stores the low 16 bits of eight lanes, and then the high ones. */
@inline export function storeHalves(a: v128, b: v128, to: usize): void {
  v128.store(to, v128.shuffle<i16>(a, b, 0, 2, 4, 6, 8, 10, 12, 14));
  v128.store(to, v128.shuffle<i16>(a, b, 1, 3, 5, 7, 9, 11, 13, 15), 16);
}

function planeBytes(codes: usize, columns: usize): void {
  for (const end = codes + 16 * columns; codes < end; codes += 32) {
    const a = v128.load(codes), b = v128.load(codes, 16);
    v128.store(codes, v128.shuffle<i8>(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30));
    v128.store(codes, v128.shuffle<i8>(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31), 16);
  }
}

function planeNibbles(codes: usize, columns: usize): void {
  for (let from = codes, end = codes + 16 * columns; from < end; from += 32, codes += 16) {
    v128.store(codes, i8x16.narrow_i16x8_u(twoInByte(v128.load(from)), twoInByte(v128.load(from, 16))));
  }
}

/** Of 16 bits the low byte, with the other one above its four bits. */
@inline function twoInByte(codes: v128): v128 {
  return v128.and(v128.or(codes, i16x8.shr_u(codes, 4)), i16x8.splat(255));
}
