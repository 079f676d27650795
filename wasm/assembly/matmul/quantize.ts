// Rows of float32 to signed 8 bit in groups of 32; layout and definition in quant/q8_activation.ts.
//   scale = max|x| / 127; code = clamp(nearest(x / scale)); sum = scale · Σ code
// Before that the outliers of a run of columns are listed and become 0.
// Rows of low sums are turned first, their groups are of 64, and their scale may be larger.
// It divides as the definition does; a reciprocal would move codes that lie near a half.
// The fused forms run the op before it into this thread's scratch memory and quantise from there.
import { addressAt, chunksOf, f32At, min, nextSmallChunk, thread, u32At } from "../machine/runtime";
import { GELU, gluRun, mapRun } from "../generated/elementwise_runs";
import { geluRun } from "../rows/elementwise";
import { rmsNormRow } from "../rows/norm";
import {
  ACTIVATION_Q8_COLUMNS, ACTIVATION_Q8_KIND, ACTIVATION_Q8_LOW, ACTIVATION_Q8_ROWS, ACTIVATION_Q8_ROW_BYTES, ACTIVATION_Q8_SCRATCH,
  ACTIVATION_Q8_SCRATCH_BYTES, ACTIVATION_Q8_X, ACTIVATION_Q8_Y, GLU_Q8_COLUMNS, GLU_Q8_GATE, GLU_Q8_KIND, GLU_Q8_ROWS, GLU_Q8_ROW_BYTES, GLU_Q8_SCRATCH, GLU_Q8_SCRATCH_BYTES,
  GLU_Q8_UP, GLU_Q8_Y, RMS_NORM_Q8_BASE, RMS_NORM_Q8_COLUMNS, RMS_NORM_Q8_EPSILON, RMS_NORM_Q8_GROUP, RMS_NORM_Q8_ROWS,
  RMS_NORM_Q8_ROW_BYTES, RMS_NORM_Q8_SCRATCH, RMS_NORM_Q8_SCRATCH_BYTES, RMS_NORM_Q8_W, RMS_NORM_Q8_X,
  RMS_NORM_Q8_Y, QUANTIZE_Q8_COLUMNS, QUANTIZE_Q8_GROUP, QUANTIZE_Q8_LOW, QUANTIZE_Q8_ROWS, QUANTIZE_Q8_ROW_BYTES,
  QUANTIZE_Q8_SCRATCH, QUANTIZE_Q8_SCRATCH_BYTES, QUANTIZE_Q8_X, QUANTIZE_Q8_Y,
} from "../generated/opcodes";
import { RUN_BYTES, RUN_COLUMNS, outliersAt, runsOf } from "./outliers";
import { evens, odds, turn } from "./turned";

/** Bits of magnitudes are ordered as whole numbers, NaN above all; V8 makes nine dependent instructions of f32x4.max. */
@inline function largest(a: v128, b: v128): v128 { return i32x4.max_u(a, f32x4.abs(b)); }

@inline function total(v: v128): i32 {
  return totalOf(i32x4.extadd_pairwise_i16x8_s(i16x8.extadd_pairwise_i8x16_s(v)));
}

@inline function totalOf(pairs: v128): i32 {
  const twos = i32x4.add(pairs, v128.shuffle<i32>(pairs, pairs, 2, 3, 0, 1));
  return i32x4.extract_lane(twos, 0) + i32x4.extract_lane(twos, 1);
}

/** 1.5 · 2^23: adding it rounds to the nearest integer, ties to even, and leaves it in the low bits. */
const MAGIC_AT: usize = memory.data<f32>([12582912, 12582912, 12582912, 12582912], 16);

@inline function code(x: v128, divisor: v128, magic: v128): v128 {
  return i32x4.sub(f32x4.add(f32x4.div(x, divisor), magic), magic);
}

/** Four values divided and rounded to nearest, ties to even. */
@inline export function roundedTo(x: usize, divisor: v128): v128 {
  return code(v128.load(x), divisor, v128.load(MAGIC_AT));
}

/** The largest magnitude of 32 values; NaN where one is not finite, so that no output of its row is a number. */
@inline export function largestOf(x: usize): f32 {
  let m = f32x4.abs(v128.load(x)), n = f32x4.abs(v128.load(x, 16));
  m = largest(m, v128.load(x, 32)); n = largest(n, v128.load(x, 48));
  m = largest(m, v128.load(x, 64)); n = largest(n, v128.load(x, 80));
  m = largest(m, v128.load(x, 96)); n = largest(n, v128.load(x, 112));
  const most = largestLane(i32x4.max_u(m, n));
  return most + (most - most);
}

@inline function largestLane(m: v128): f32 {
  m = i32x4.max_u(m, v128.shuffle<i32>(m, m, 2, 3, 0, 1));
  m = i32x4.max_u(m, v128.shuffle<i32>(m, m, 1, 0, 3, 2));
  return f32x4.extract_lane(m, 0);
}

/** Sums of neighbours of two vectors. */
@inline function neighbours(a: v128, b: v128): v128 { return f32x4.add(evens(a, b), odds(a, b)); }

@inline function four(a: v128, b: v128, c: v128, d: v128): v128 { return f32x4.add(f32x4.add(a, b), f32x4.add(c, d)); }

/** The scale of 64 values in a row of low sums (lowScale of quant/q8_activation.ts). */
@inline function lowScale(x: usize): f32 {
  let most = i32x4.splat(0), sums = i32x4.splat(0);
  for (const end = x + 256; x < end; x += 128) {
    const a = v128.load(x), b = v128.load(x, 16), c = v128.load(x, 32), d = v128.load(x, 48);
    const e = v128.load(x, 64), f = v128.load(x, 80), g = v128.load(x, 96), h = v128.load(x, 112);
    const sum = neighbours(four(a, b, c, d), four(e, f, g, h));
    const a1 = f32x4.abs(a), b1 = f32x4.abs(b), c1 = f32x4.abs(c), d1 = f32x4.abs(d);
    const e1 = f32x4.abs(e), f1 = f32x4.abs(f), g1 = f32x4.abs(g), h1 = f32x4.abs(h);
    const magnitudes = neighbours(four(a1, b1, c1, d1), four(e1, f1, g1, h1));
    sums = i32x4.max_u(sums, f32x4.add(magnitudes, f32x4.abs(sum)));
    most = i32x4.max_u(most, i32x4.max_u(
      i32x4.max_u(i32x4.max_u(a1, b1), i32x4.max_u(c1, d1)), i32x4.max_u(i32x4.max_u(e1, f1), i32x4.max_u(g1, h1))));
  }
  const greatest = largestLane(most);
  // NaN where one is not finite.
  const low = max<f32>((greatest + (greatest - greatest)) / 127, largestLane(sums) * LOW_PART);
  return low < LEAST_SCALE ? 0 : low;
}

@inline function codes(x: usize, divisor: v128): v128 {
  const magic = v128.load(MAGIC_AT);
  const a = code(v128.load(x), divisor, magic), b = code(v128.load(x, 16), divisor, magic);
  const c = code(v128.load(x, 32), divisor, magic), d = code(v128.load(x, 48), divisor, magic);
  const narrow = i8x16.narrow_i16x8_s(i16x8.narrow_i32x4_s(a, b), i16x8.narrow_i32x4_s(c, d));
  return i8x16.max_s(narrow, i8x16.splat(-127));
}

const LOW_PART: f32 = 1.0 / 508;
/** Smallest normal float32. */
const LEAST_SCALE: f32 = 1.1754943508222875e-38;

/** Columns of a run, by its number, of a row: the last one has what is left. */
@inline function runColumns(columns: usize, run: usize): usize {
  return run + 1 == runsOf(columns) ? columns - RUN_COLUMNS * run : RUN_COLUMNS;
}

/** By how many times the mean square of peaks outliers are above what follows. */
const OUTLIER_SHARE: f32 = 5;

/** Which of the 32 values at `x` is the first whose magnitude is `peak`, one of theirs. */
@inline function indexOf(x: usize, peak: f32): u32 {
  const wanted = f32x4.splat(peak);
  let at: u32 = 0;
  for (; at < 28; at += 4, x += 16) {
    const found = i32x4.bitmask(f32x4.eq(f32x4.abs(v128.load(x)), wanted));
    if (found) return at + ctz(found);
  }
  return at + ctz(i32x4.bitmask(f32x4.eq(f32x4.abs(v128.load(x)), wanted)));
}

/**
 * Lists the outliers of a run whose first column is `first` at `list`, and makes them 0; `peaks` has the largest magnitudes
 * of its groups, and has those of what is left.
 */
function takeOutliers(x: usize, first: usize, groups: usize, peaks: usize, list: usize): void {
  let total: f32 = 0;
  for (let g: usize = 0; g < groups; g++) { const peak = load<f32>(peaks + 4 * g); total += peak * peak; }
  const share = OUTLIER_SHARE / <f32>groups, end = list + RUN_BYTES;
  for (; list < end; list += 8) {
    let most: usize = 0, peak = load<f32>(peaks);
    for (let g: usize = 1; g < groups; g++) {
      const other = load<f32>(peaks + 4 * g);
      if (other > peak) { peak = other; most = g; }
    }
    if (!(peak * peak > share * total)) break;
    const group = x + 128 * most, column = indexOf(group, peak), at = group + 4 * <usize>column;
    const value = load<f32>(at);
    store<f32>(at, 0);
    const next = largestOf(group), gain = peak * peak - next * next;
    if (!(gain > share * total)) { store<f32>(at, value); break; }
    total -= gain;
    store<f32>(peaks + 4 * most, next);
    store<f32>(list, value);
    store<u32>(list, <u32>(first + 32 * most) + column, 4);
  }
  memory.fill(list, 0, end - list);
}

/** Quantises run `run` of the row at `row`, which has `columns` columns; its floats are at `x`, and some become 0. */
function quantizeRun(x: usize, row: usize, columns: usize, run: usize): void {
  const groups = columns >> 3; // bytes of one array of floats
  const first = RUN_COLUMNS * run, count = runColumns(columns, run);
  let y = row + first, scales = row + columns + (first >> 3);
  for (let g: usize = 0; g < count; g += 32) store<f32>(scales + (g >> 3), largestOf(x + 4 * g));
  takeOutliers(x, first, count >> 5, scales, row + outliersAt(columns) + RUN_BYTES * run);
  for (const end = x + 4 * count; x < end; x += 128, y += 32, scales += 4) {
    const scale = load<f32>(scales) / 127;
    const divisor = f32x4.splat(scale == 0 ? 1 : scale);
    const first = codes(x, divisor);
    const second = codes(x + 64, divisor);
    v128.store(y, first);
    v128.store(y, second, 16);
    const half = total(first), other = total(second);
    store<f32>(scales, scale);
    store<f32>(scales + groups, scale * <f32>(half + other));
    store<i32>(scales + 2 * groups, (half & 0xffff) | (other << 16));
  }
}

/** The same with low sums; values are turned at `scratch`, which may be where they are and has room for whole groups of 64. */
function quantizeLowRun(x: usize, scratch: usize, row: usize, columns: usize, first: usize, count: usize): void {
  const whole = (columns + 63) & ~63, groups = whole >> 4;
  let y = row + first, scales = row + whole + (first >> 4);
  turn(x, count, 1.0 / 512, scratch);
  if (count & 32) memory.fill(scratch + 4 * count, 0, 128);
  for (const end = scratch + 4 * count; scratch < end; scratch += 256, y += 64, scales += 4) {
    const scale = lowScale(scratch), divisor = f32x4.splat(scale == 0 ? 1 : scale);
    let sums = i16x8.splat(0);
    for (let i: usize = 0; i < 64; i += 16) {
      const some = codes(scratch + 4 * i, divisor);
      v128.store(y + i, some);
      sums = i16x8.add(sums, i16x8.extadd_pairwise_i8x16_s(some));
    }
    const sum = totalOf(i32x4.extadd_pairwise_i16x8_s(sums));
    store<f32>(scales, scale);
    store<f32>(scales + groups, scale * <f32>sum);
  }
}

export function quantize_q8(ip: usize): void {
  const rows = u32At(ip, QUANTIZE_Q8_ROWS);
  const columns = <usize>u32At(ip, QUANTIZE_Q8_COLUMNS);
  const rowBytes = <usize>u32At(ip, QUANTIZE_Q8_ROW_BYTES);
  const x = addressAt(ip, QUANTIZE_Q8_X);
  const y = addressAt(ip, QUANTIZE_Q8_Y);
  const scratch = addressAt(ip, QUANTIZE_Q8_SCRATCH) + <usize>thread * u32At(ip, QUANTIZE_Q8_SCRATCH_BYTES);
  const low = u32At(ip, QUANTIZE_Q8_LOW) != 0;
  const group = u32At(ip, QUANTIZE_Q8_GROUP), total = chunksOf(rows, group);
  for (let c = nextSmallChunk(ip, total); c >= 0; c = nextSmallChunk(ip, total)) {
    const last = min(rows, <u32>c * group + group);
    for (let r = <u32>c * group; r < last; r++) {
      const from = x + 4 * columns * r, to = y + rowBytes * r;
      for (let run: usize = 0; !low && run < runsOf(columns); run++) {
        memory.copy(scratch, from + 4 * RUN_COLUMNS * run, 4 * runColumns(columns, run));
        quantizeRun(scratch, to, columns, run);
      }
      if (!low) continue;
      for (let first: usize = 0; first < columns; first += RUN_COLUMNS) {
        quantizeLowRun(from + 4 * first, scratch, to, columns, first, min(<u32>(columns - first), <u32>RUN_COLUMNS));
      }
    }
  }
}

export function rms_norm_q8(ip: usize): void {
  const rows = u32At(ip, RMS_NORM_Q8_ROWS), columns = u32At(ip, RMS_NORM_Q8_COLUMNS);
  const x = addressAt(ip, RMS_NORM_Q8_X), y = addressAt(ip, RMS_NORM_Q8_Y), w = addressAt(ip, RMS_NORM_Q8_W);
  const rowBytes = <usize>u32At(ip, RMS_NORM_Q8_ROW_BYTES);
  const epsilon = f32At(ip, RMS_NORM_Q8_EPSILON), base = f32At(ip, RMS_NORM_Q8_BASE);
  const scratch = addressAt(ip, RMS_NORM_Q8_SCRATCH) + <usize>thread * u32At(ip, RMS_NORM_Q8_SCRATCH_BYTES);
  const group = u32At(ip, RMS_NORM_Q8_GROUP), total = chunksOf(rows, group);
  for (let c = nextSmallChunk(ip, total); c >= 0; c = nextSmallChunk(ip, total)) {
    const last = min(rows, <u32>c * group + group);
    for (let r = <u32>c * group; r < last; r++) {
      rmsNormRow(x + 4 * columns * r, w, scratch, columns, epsilon, base);
      for (let run: usize = 0; run < runsOf(columns); run++) {
        quantizeRun(scratch + 4 * RUN_COLUMNS * run, y + rowBytes * r, columns, run);
      }
    }
  }
}

export function glu_q8(ip: usize): void {
  const rows = u32At(ip, GLU_Q8_ROWS), columns = u32At(ip, GLU_Q8_COLUMNS), kind = u32At(ip, GLU_Q8_KIND);
  const gate = addressAt(ip, GLU_Q8_GATE), up = addressAt(ip, GLU_Q8_UP), y = addressAt(ip, GLU_Q8_Y);
  const rowBytes = <usize>u32At(ip, GLU_Q8_ROW_BYTES);
  const scratch = addressAt(ip, GLU_Q8_SCRATCH) + <usize>thread * u32At(ip, GLU_Q8_SCRATCH_BYTES);
  const parts = <u32>runsOf(columns), total = rows * parts;
  for (let c = nextSmallChunk(ip, total); c >= 0; c = nextSmallChunk(ip, total)) {
    const row = <u32>c / parts, run = <usize>(<u32>c % parts), first = RUN_COLUMNS * run, count = <u32>runColumns(columns, run);
    const at = 4 * (<usize>row * columns + first);
    gluRun(kind, gate + at, up + at, scratch, count);
    quantizeRun(scratch, y + rowBytes * row, columns, run);
  }
}

export function activation_q8(ip: usize): void {
  const rows = u32At(ip, ACTIVATION_Q8_ROWS), columns = u32At(ip, ACTIVATION_Q8_COLUMNS);
  const x = addressAt(ip, ACTIVATION_Q8_X), y = addressAt(ip, ACTIVATION_Q8_Y), kind = u32At(ip, ACTIVATION_Q8_KIND);
  const rowBytes = <usize>u32At(ip, ACTIVATION_Q8_ROW_BYTES);
  const scratch = addressAt(ip, ACTIVATION_Q8_SCRATCH) + <usize>thread * u32At(ip, ACTIVATION_Q8_SCRATCH_BYTES);
  const parts = <u32>runsOf(columns), total = rows * parts, low = u32At(ip, ACTIVATION_Q8_LOW) != 0;
  for (let c = nextSmallChunk(ip, total); c >= 0; c = nextSmallChunk(ip, total)) {
    const row = <u32>c / parts, run = <usize>(<u32>c % parts), first = RUN_COLUMNS * run, count = <u32>runColumns(columns, run);
    const from = x + 4 * (<usize>row * columns + first);
    if (kind == GELU) geluRun(from, scratch, count);
    else mapRun(kind, from, scratch, count, f32x4.splat(1), f32x4.splat(0));
    if (low) quantizeLowRun(scratch, scratch, y + rowBytes * row, columns, first, count);
    else quantizeRun(scratch, y + rowBytes * row, columns, run);
  }
}
