// What prepares float32 heads for attention.
//
//   rotary:      pairs of a head's elements turned by tables
//   append_rows: a cache with new rows behind the valid ones
//
// A chunk is one row of all heads, or one head of one item. A position outside the tables, and a gap between the rows,
// are reported in the status word.
import { addressAt, min, nextChunk, u32At } from "../machine/runtime";
import {
  APPEND_ROWS_BATCH, APPEND_ROWS_CAPACITY, APPEND_ROWS_COUNTS, APPEND_ROWS_HEADS, APPEND_ROWS_HELD,
  APPEND_ROWS_JOINED, APPEND_ROWS_PAST, APPEND_ROWS_ROWS, APPEND_ROWS_WIDE, APPEND_ROWS_WIDTH, APPEND_ROWS_X,
  APPEND_ROWS_Y, CONTROL_STATUS, ROTARY_BATCH, ROTARY_COS, ROTARY_HALF, ROTARY_HEADS, ROTARY_INTERLEAVED, ROTARY_JOINED,
  ROTARY_POSITIONS, ROTARY_ROWS, ROTARY_SIN, ROTARY_SINGLE, ROTARY_TABLE, ROTARY_WIDE, ROTARY_WIDTH, ROTARY_X,
  ROTARY_Y,
} from "../generated/opcodes";

export function rotary(ip: usize): void {
  const heads = u32At(ip, ROTARY_HEADS), rows = u32At(ip, ROTARY_ROWS), width = u32At(ip, ROTARY_WIDTH);
  const half = u32At(ip, ROTARY_HALF), total = u32At(ip, ROTARY_BATCH) * rows, table = u32At(ip, ROTARY_TABLE);
  const positions = addressAt(ip, ROTARY_POSITIONS), joined = u32At(ip, ROTARY_JOINED);
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    const item = <u32>c / rows, row = <u32>c % rows;
    let entry: u32 = table == 0 ? 0 : <u32>c % table;
    if (positions) {
      const single = u32At(ip, ROTARY_SINGLE), at = single ? 0 : <usize>c;
      entry = u32At(ip, ROTARY_WIDE) ? <u32>load<u64>(positions + (at << 3)) : load<u32>(positions + (at << 2));
      if (single) entry += row;
      if (entry >= table) { atomic.or<u32>(CONTROL_STATUS, 2); continue; }
    }
    const cos = addressAt(ip, ROTARY_COS) + ((<usize>entry * half) << 2);
    const sin = addressAt(ip, ROTARY_SIN) + ((<usize>entry * half) << 2);
    for (let head: u32 = 0; head < heads; head++) {
      const at = joined ? (<usize>c * heads + head) * width : ((<usize>item * heads + head) * rows + row) * width;
      const x = addressAt(ip, ROTARY_X) + (at << 2), y = addressAt(ip, ROTARY_Y) + (at << 2);
      turn(x, y, cos, sin, half, width, u32At(ip, ROTARY_INTERLEAVED));
    }
  }
}

function turn(x: usize, y: usize, cos: usize, sin: usize, half: u32, width: u32, interleaved: u32): void {
  const apart = <usize>(interleaved ? 1 : half) << 2, step = <usize>(interleaved ? 2 : 1) << 2;
  let i: u32 = 0;
  if (!interleaved) {
    for (; i + 4 <= half; i += 4) {
      const at = <usize>i << 2, c = v128.load(cos + at), s = v128.load(sin + at);
      const a = v128.load(x + at), b = v128.load(x + at + apart);
      v128.store(y + at, f32x4.sub(f32x4.mul(a, c), f32x4.mul(b, s)));
      v128.store(y + at + apart, f32x4.add(f32x4.mul(a, s), f32x4.mul(b, c)));
    }
  }
  for (; i < half; i++) {
    const at = <usize>i * step, c = load<f32>(cos + (<usize>i << 2)), s = load<f32>(sin + (<usize>i << 2));
    const a = load<f32>(x + at), b = load<f32>(x + at + apart);
    store<f32>(y + at, a * c - b * s);
    store<f32>(y + at + apart, a * s + b * c);
  }
  const rest = <usize>half << 3;
  memory.copy(y + rest, x + rest, (<usize>width << 2) - rest);
}

export function append_rows(ip: usize): void {
  const heads = u32At(ip, APPEND_ROWS_HEADS), rows = u32At(ip, APPEND_ROWS_ROWS);
  const width = <usize>u32At(ip, APPEND_ROWS_WIDTH) << 2, wide = u32At(ip, APPEND_ROWS_WIDE);
  const total = u32At(ip, APPEND_ROWS_BATCH) * heads, capacity = u32At(ip, APPEND_ROWS_CAPACITY);
  const held = u32At(ip, APPEND_ROWS_HELD), past = addressAt(ip, APPEND_ROWS_PAST);
  const counts = addressAt(ip, APPEND_ROWS_COUNTS);
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    const item = <u32>c / heads, head = <u32>c % heads;
    const count = wide ? <u32>load<u64>(counts + (<usize>item << 3)) : load<u32>(counts + (<usize>item << 2));
    const start = count > rows ? count - rows : 0;
    if (start > held || start > capacity) { atomic.or<u32>(CONTROL_STATUS, 2); continue; }
    const y = addressAt(ip, APPEND_ROWS_Y) + <usize>c * capacity * width;
    memory.copy(y, past + <usize>c * held * width, <usize>start * width);
    const fresh = min(rows, capacity - start);
    for (let row: u32 = 0; row < fresh; row++) {
      const at = u32At(ip, APPEND_ROWS_JOINED) ? (<usize>item * rows + row) * heads + head : <usize>c * rows + row;
      memory.copy(y + <usize>(start + row) * width, addressAt(ip, APPEND_ROWS_X) + at * width, width);
    }
    const end = start + fresh;
    memory.fill(y + <usize>end * width, 0, <usize>(capacity - end) * width);
  }
}
