// Rounds rows of float weights to 7 bit while they are packed: definition in quant/int7_groups.ts, order in
// wasm/int7_layout.ts. It divides as the definition does, so both give the same codes.
//   for each 64 columns, turned: scale = (max - min) / 127; code = nearest((w - min) / scale)
import { LAYOUT_BF16, LAYOUT_F16, LAYOUT_F32 } from "../generated/layouts";
import { turn } from "../matmul/turned";
import { HALF_BITS_AT, HALF_SCALE_AT } from "../matmul/shared";

/** Bytes of a cell, and of what stands in front of its codes. */
const CELL_BYTES: usize = 576;
const SCALE_BYTES: usize = 64;

/** Four 16-bit numbers at a time as float32. */
function widen(layout: u32, from: usize, columns: u32, to: usize): void {
  const bits = v128.load(HALF_BITS_AT), scale = v128.load(HALF_SCALE_AT);
  const infinity = i32x4.splat(0x7f800000), top = i32x4.splat(0x0f800000);
  for (const end = from + 2 * columns; from < end; from += 8, to += 16) {
    const h = v128.load64_zero(from);
    if (layout == LAYOUT_BF16) {
      v128.store(to, i32x4.shl(i32x4.extend_low_i16x8_u(h), 16));
      continue;
    }
    const moved = v128.and(i32x4.shl(i32x4.extend_low_i16x8_s(h), 13), bits);
    // The largest exponent of a half is that of infinity and NaN.
    const odd = i32x4.eq(v128.and(moved, top), top);
    v128.store(to, v128.bitselect(infinity, f32x4.mul(moved, scale), odd));
  }
}

@inline function swapped(v: v128): v128 { return v128.shuffle<i32>(v, v, 2, 3, 0, 1); }
@inline function neighbours(v: v128): v128 { return v128.shuffle<i32>(v, v, 1, 0, 3, 2); }

/** One row, turned, to its lanes of a tile; 1 if it holds a number that is not finite. */
function packRow(row: usize, columns: u32, index: usize, tile: usize): u32 {
  const lane = ((index >> 2) << 4) + ((index & 3) << 2);
  let bad: u32 = 0;
  for (const end = row + 4 * columns; row < end; row += 256, tile += CELL_BYTES) {
    const bytes = min<usize>(end - row, 256);
    let low = v128.load(row), high = low;
    for (let i: usize = 16; i < bytes; i += 16) {
      const v = v128.load(row + i);
      low = f32x4.min(low, v);
      high = f32x4.max(high, v);
    }
    low = f32x4.min(low, swapped(low));
    low = f32x4.min(low, neighbours(low));
    high = f32x4.max(high, swapped(high));
    high = f32x4.max(high, neighbours(high));
    const minimum = f32x4.extract_lane(low, 0), range = f32x4.extract_lane(high, 0) - minimum;
    if (!isFinite(range)) { bad = 1; continue; }
    const scale = range / 127;
    store<f32>(tile + 4 * index, scale);
    store<f32>(tile + 4 * index, minimum, 32);
    const divisor = f32x4.splat(scale == 0 ? 1 : scale);
    for (let i: usize = 0; i < bytes; i += 16) {
      const ratio = f32x4.nearest(f32x4.div(f32x4.sub(v128.load(row + i), low), divisor));
      const code = i32x4.trunc_sat_f32x4_s(ratio);
      const halves = i16x8.narrow_i32x4_s(code, code);
      v128.store32_lane(tile + lane + 2 * i, i8x16.narrow_i16x8_s(halves, halves), 0, SCALE_BYTES);
    }
  }
  return bad;
}

/**
 * Packs `rows` rows of `rowBytes` bytes, `columns` a multiple of 32, into whole tiles of `tileBytes` at `target`;
 * `scratch` holds a row of floats. Returns the number of rows that hold what is not finite.
 */
export function packInt7(layout: u32, source: usize, rows: u32, rowBytes: usize, columns: u32, target: usize,
    tileBytes: usize, scratch: usize): u32 {
  let bad: u32 = 0;
  for (let r: u32 = 0; r < rows; r++, source += rowBytes) {
    const tile = target + <usize>(r >> 3) * tileBytes;
    // Where there are fewer rows, or half a group of columns.
    if ((r & 7) == 0 && (rows - r < 8 || columns & 32)) memory.fill(tile, 0, tileBytes);
    let row = source;
    if (layout == LAYOUT_F16 || layout == LAYOUT_BF16) {
      widen(layout, source, columns, scratch);
      row = scratch;
    } else if (layout != LAYOUT_F32) unreachable();
    turn(row, columns, 16, scratch);
    bad += packRow(scratch, columns, r & 7, tile);
  }
  return bad;
}
