// Resizing of float32 planes along their two last dims, to the nearest element or linearly.
//
// A chunk is 256 columns of 32 rows of the output. Where a column comes from is found once a chunk, in
// double; then rows only read a table: left element, right element, weight of the right one. To the nearest, where each
// element comes twice or a multiple of four times, rows are written in vectors, and a row that comes again is copied.
import { addressAt, chunksOf, f32At, min, nextSmallChunk, thread, u32At } from "../machine/runtime";
import {
  RESIZE_COORDINATES, RESIZE_HEIGHT, RESIZE_LINEAR, RESIZE_OUT_HEIGHT, RESIZE_OUT_WIDTH, RESIZE_PLANES,
  RESIZE_ROUNDING, RESIZE_SCALE_H, RESIZE_SCALE_W, RESIZE_SCRATCH, RESIZE_SCRATCH_BYTES, RESIZE_WIDTH, RESIZE_X,
  RESIZE_Y,
} from "../generated/opcodes";
import { coordinateOf, nearestOf } from "./resize_rules";

const COLUMNS: u32 = 256;
const ROWS: u32 = 32;

export function resize(ip: usize): void {
  const outHeight = u32At(ip, RESIZE_OUT_HEIGHT), outWidth = u32At(ip, RESIZE_OUT_WIDTH);
  const height = u32At(ip, RESIZE_HEIGHT), width = u32At(ip, RESIZE_WIDTH), linear = u32At(ip, RESIZE_LINEAR);
  const rows = u32At(ip, RESIZE_PLANES) * outHeight, blocks = chunksOf(outWidth, COLUMNS);
  const total = blocks * chunksOf(rows, ROWS);
  // One row more: the entry of the current row.
  const table = addressAt(ip, RESIZE_SCRATCH) + <usize>thread * u32At(ip, RESIZE_SCRATCH_BYTES);
  const entry = table + <usize>COLUMNS * 12;
  for (let c = nextSmallChunk(ip, total); c >= 0; c = nextSmallChunk(ip, total)) {
    const first = (<u32>c % blocks) * COLUMNS, count = min(COLUMNS, outWidth - first);
    const top = (<u32>c / blocks) * ROWS, end = min(rows, top + ROWS);
    for (let i: u32 = 0; i < count; i++) {
      place(ip, first + i, width, outWidth, f32At(ip, RESIZE_SCALE_W), table + <usize>i * 12);
    }
    const repeats = linear ? 0 : repeatsOf(table, count);
    let before: usize = 0;
    for (let row = top; row < end; row++) {
      place(ip, row % outHeight, height, outHeight, f32At(ip, RESIZE_SCALE_H), entry);
      const plane = addressAt(ip, RESIZE_X) + ((<usize>(row / outHeight) * height * width) << 2);
      const upper = plane + ((<usize>load<u32>(entry) * width) << 2);
      const lower = plane + ((<usize>load<u32>(entry, 4) * width) << 2);
      const y = addressAt(ip, RESIZE_Y) + ((<usize>row * outWidth + first) << 2);
      if (linear) linearRow(upper, lower, load<f32>(entry, 8), table, count, y);
      else if (upper == before) memory.copy(y, y - (<usize>outWidth << 2), <usize>count << 2);
      else nearestRow(upper, table, repeats, count, y);
      before = upper;
    }
  }
}

/** How often each element comes in a row, 2 or a multiple of 4; 0 if it is otherwise. */
function repeatsOf(table: usize, count: u32): u32 {
  const first = load<u32>(table);
  let times: u32 = 1;
  while (times < count && load<u32>(table + <usize>times * 12) == first) times++;
  if (times != 2 && times & 3) return 0;
  for (let i: u32 = 0; i < count; i++) if (load<u32>(table + <usize>i * 12) != first + i / times) return 0;
  return times;
}

function nearestRow(row: usize, table: usize, repeats: u32, count: u32, y: usize): void {
  let i: u32 = 0, x = row + (<usize>load<u32>(table) << 2);
  if (repeats == 2) {
    for (; i + 8 <= count; i += 8, x += 16, y += 32) {
      const v = v128.load(x);
      v128.store(y, v128.shuffle<i32>(v, v, 0, 0, 1, 1));
      v128.store(y, v128.shuffle<i32>(v, v, 2, 2, 3, 3), 16);
    }
  } else if (repeats) {
    for (; i + repeats <= count; i += repeats, x += 4) {
      const v = v128.load32_splat(x);
      for (const end = y + (<usize>repeats << 2); y < end; y += 16) v128.store(y, v);
    }
  }
  for (; i < count; i++, y += 4) store<f32>(y, load<f32>(row + (<usize>load<u32>(table + <usize>i * 12) << 2)));
}

/** From `a` to `b`; where their difference is not finite, as the sum of what weighs anything. */
@inline function between(a: f32, b: f32, part: f32): f32 {
  const way = b - a;
  if (abs<f32>(way) < Infinity) return a + way * part;
  return part == 0 ? a : a * (1 - part) + b * part;
}

function linearRow(upper: usize, lower: usize, down: f32, table: usize, count: u32, y: usize): void {
  for (let i: u32 = 0; i < count; i++, table += 12) {
    const left = <usize>load<u32>(table) << 2, right = <usize>load<u32>(table, 4) << 2, across = load<f32>(table, 8);
    const above = between(load<f32>(upper + left), load<f32>(upper + right), across);
    const below = between(load<f32>(lower + left), load<f32>(lower + right), across);
    store<f32>(y + (<usize>i << 2), between(above, below, down));
  }
}

/** Writes left, right and weight for place `at`; `given` 0 stands for the ratio of the sizes. */
function place(ip: usize, at: u32, from: u32, to: u32, given: f32, entry: usize): void {
  const scale = given == 0 ? <f64>to / <f64>from : <f64>given;
  const x = coordinateOf(u32At(ip, RESIZE_COORDINATES), at, from, to, scale);
  const left = u32At(ip, RESIZE_LINEAR) ? Math.floor(x) : nearestOf(u32At(ip, RESIZE_ROUNDING), x);
  const last = <f64>from - 1;
  store<u32>(entry, <u32>Math.min(last, Math.max(0, left)));
  store<u32>(entry, <u32>Math.min(last, Math.max(0, left + 1)), 4);
  store<f32>(entry, <f32>(x - left), 8);
}
