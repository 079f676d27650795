// Softmax over one axis, and selection of rows.
//
//   softmax:     for each (outer, inner): y = exp(x - max) / Σ exp(x - max) along the axis
//   select_rows: y[i] = x[rows[i]]; an index outside x is reported in the status word
import { addressAt, chunksOf, min, nextChunk, u32At } from "../machine/runtime";
import { exp4 } from "../exp";
import { sum4 } from "../simd";
import {
  CONTROL_STATUS, SELECT_ROWS_BYTES, SELECT_ROWS_COUNT, SELECT_ROWS_INDICES, SELECT_ROWS_ROWS, SELECT_ROWS_X, SELECT_ROWS_Y,
  SOFTMAX_INNER, SOFTMAX_LENGTH, SOFTMAX_OUTER, SOFTMAX_X, SOFTMAX_Y,
} from "../generated/opcodes";

@inline function exp1(x: f32): f32 { return f32x4.extract_lane(exp4(f32x4.splat(x)), 0); }

export function softmax(ip: usize): void {
  const outer = u32At(ip, SOFTMAX_OUTER), inner = u32At(ip, SOFTMAX_INNER), length = u32At(ip, SOFTMAX_LENGTH);
  const stride = <usize>inner << 2;
  for (let c = nextChunk(ip, outer); c >= 0; c = nextChunk(ip, outer)) {
    for (let i: u32 = 0; i < inner; i++) {
      const offset = ((<usize>c * length * inner) + i) << 2;
      softmaxRun(addressAt(ip, SOFTMAX_X) + offset, addressAt(ip, SOFTMAX_Y) + offset, length, stride);
    }
  }
}

function softmaxRun(x: usize, y: usize, length: u32, stride: usize): void {
  let highest = load<f32>(x);
  for (let i: u32 = 1; i < length; i++) {
    const v = load<f32>(x + <usize>i * stride);
    if (v > highest) highest = v;
  }
  let sum: f32 = 0;
  let i: u32 = 0;
  if (stride == 4) {
    const m = f32x4.splat(highest);
    let total = f32x4.splat(0);
    for (; i + 4 <= length; i += 4) {
      const e = exp4(f32x4.sub(v128.load(x + (<usize>i << 2)), m));
      v128.store(y + (<usize>i << 2), e);
      total = f32x4.add(total, e);
    }
    sum = sum4(total);
  }
  for (; i < length; i++) {
    const e = exp1(load<f32>(x + <usize>i * stride) - highest);
    store<f32>(y + <usize>i * stride, e);
    sum += e;
  }
  const factor: f32 = (<f32>1) / sum;
  for (i = 0; i < length; i++) store<f32>(y + <usize>i * stride, load<f32>(y + <usize>i * stride) * factor);
}

export function select_rows(ip: usize): void {
  const count = u32At(ip, SELECT_ROWS_COUNT), bytes = <usize>u32At(ip, SELECT_ROWS_BYTES);
  const total = chunksOf(count, 8);
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    const last = min(count, <u32>c * 8 + 8);
    for (let i = <u32>c * 8; i < last; i++) {
      const row = load<u32>(addressAt(ip, SELECT_ROWS_INDICES) + (<usize>i << 2));
      if (row >= u32At(ip, SELECT_ROWS_ROWS)) { atomic.or<u32>(CONTROL_STATUS, 2); continue; }
      memory.copy(addressAt(ip, SELECT_ROWS_Y) + <usize>i * bytes, addressAt(ip, SELECT_ROWS_X) + <usize>row * bytes, bytes);
    }
  }
}
