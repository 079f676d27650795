// Rows of float32 to signed 8 bit in groups of 32; layout and definition in quant/q8_activation.ts.
//   scale = max|x| / 127; code = clamp(nearest(x / scale)); sum = scale · Σ code
// It divides as the definition does; a reciprocal would move codes that lie near a half.
import { nextChunk, addressAt, u32At } from "./runtime";
import {
  QUANTIZE_Q8_COLUMNS, QUANTIZE_Q8_ROWS, QUANTIZE_Q8_ROW_BYTES, QUANTIZE_Q8_X, QUANTIZE_Q8_Y,
} from "./generated/opcodes";

@inline function largest(a: v128, b: v128): v128 { return f32x4.max(a, f32x4.abs(b)); }

@inline function total(v: v128): i32 {
  const pairs = i32x4.extadd_pairwise_i16x8_s(i16x8.extadd_pairwise_i8x16_s(v));
  const twos = i32x4.add(pairs, v128.shuffle<i32>(pairs, pairs, 2, 3, 0, 1));
  return i32x4.extract_lane(twos, 0) + i32x4.extract_lane(twos, 1);
}

@inline function codes(x: usize, divisor: v128): v128 {
  const a = i32x4.trunc_sat_f32x4_s(f32x4.nearest(f32x4.div(v128.load(x), divisor)));
  const b = i32x4.trunc_sat_f32x4_s(f32x4.nearest(f32x4.div(v128.load(x, 16), divisor)));
  const c = i32x4.trunc_sat_f32x4_s(f32x4.nearest(f32x4.div(v128.load(x, 32), divisor)));
  const d = i32x4.trunc_sat_f32x4_s(f32x4.nearest(f32x4.div(v128.load(x, 48), divisor)));
  const narrow = i8x16.narrow_i16x8_s(i16x8.narrow_i32x4_s(a, b), i16x8.narrow_i32x4_s(c, d));
  return i8x16.max_s(narrow, i8x16.splat(-127));
}

/** Quantises `columns` values. */
export function quantizeRow(x: usize, y: usize, columns: usize): void {
  const groups = columns >> 3; // bytes of one array of floats
  let scales = y + columns;
  for (const end = x + 4 * columns; x < end; x += 128, y += 32, scales += 4) {
    let m = f32x4.abs(v128.load(x));
    m = largest(m, v128.load(x, 16));
    m = largest(m, v128.load(x, 32));
    m = largest(m, v128.load(x, 48));
    m = largest(m, v128.load(x, 64));
    m = largest(m, v128.load(x, 80));
    m = largest(m, v128.load(x, 96));
    m = largest(m, v128.load(x, 112));
    m = f32x4.max(m, v128.shuffle<i32>(m, m, 2, 3, 0, 1));
    m = f32x4.max(m, v128.shuffle<i32>(m, m, 1, 0, 3, 2));
    const scale = f32x4.extract_lane(m, 0) / 127;
    const divisor = f32x4.splat(scale == 0 ? 1 : scale);
    const first = codes(x, divisor);
    const second = codes(x + 64, divisor);
    v128.store(y, first);
    v128.store(y, second, 16);
    const half = total(first);
    store<f32>(scales, scale);
    store<f32>(scales + groups, scale * <f32>(half + total(second)));
    store<f32>(scales + 2 * groups, scale * <f32>half);
  }
}

export function quantize_q8(ip: usize): void {
  const rows = u32At(ip, QUANTIZE_Q8_ROWS);
  const columns = <usize>u32At(ip, QUANTIZE_Q8_COLUMNS);
  const rowBytes = <usize>u32At(ip, QUANTIZE_Q8_ROW_BYTES);
  const x = addressAt(ip, QUANTIZE_Q8_X);
  const y = addressAt(ip, QUANTIZE_Q8_Y);
  for (let r = nextChunk(ip, rows); r >= 0; r = nextChunk(ip, rows)) {
    quantizeRow(x + 4 * columns * r, y + rowBytes * r, columns);
  }
}
