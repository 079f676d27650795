// A GEMV of formats of grid points: blocks of 256 columns go through scratch memory, which stays in the L1
// cache, and are multiplied from there (gen/gemv_unpacked.ts).
import { gemv_unpacked_dot_g16, gemv_unpacked_dot_g32 } from "../generated/gemv_unpacked_dot";
import { gemv_unpacked_pair_g16, gemv_unpacked_pair_g32 } from "../generated/gemv_unpacked_pair";
import { gemv_unpacked_plain_g16, gemv_unpacked_plain_g32 } from "../generated/gemv_unpacked_plain";
import { cellBytes, groupColumns, headerBytes } from "../generated/layouts";
import { unpack } from "../generated/unpack";

const BLOCK: usize = 256;
const CODE_BYTES: usize = 8 * BLOCK;

/**
 * One 8-bit row times one tile: eight outputs. `scratch` has 3 KiB; `dot` and `flip` say how to multiply
 * (q8.ts).
 */
export function gemvUnpacked(layout: u32, w: usize, x: usize, columns: usize, out: usize, scratch: usize, dot: bool, flip: i32): void {
  const blockBytes = <usize>headerBytes(layout) + 8 * <usize>cellBytes(layout);
  const halves = groupColumns(layout) == 16, scales = scratch + CODE_BYTES, apart = columns >> 3;
  let scale = x + columns;
  v128.store(out, f32x4.splat(0));
  v128.store(out, f32x4.splat(0), 16);
  for (const end = scale; x < end; x += BLOCK, scale += BLOCK >> 3, w += blockBytes) {
    unpack(layout, w, w, BLOCK, scratch, 32, scales, 64, flip, false, false);
    if (ASC_FEATURE_RELAXED_SIMD) {
      if (dot) {
        if (halves) gemv_unpacked_dot_g16(x, scale, apart, BLOCK, scratch, scales, out);
        else gemv_unpacked_dot_g32(x, scale, apart, BLOCK, scratch, scales, out);
      } else if (halves) gemv_unpacked_pair_g16(x, scale, apart, BLOCK, scratch, scales, out);
      else gemv_unpacked_pair_g32(x, scale, apart, BLOCK, scratch, scales, out);
    } else if (halves) gemv_unpacked_plain_g16(x, scale, apart, BLOCK, scratch, scales, out);
    else gemv_unpacked_plain_g32(x, scale, apart, BLOCK, scratch, scales, out);
  }
}
