// Selections: the best elements of lines, and runs by tuples of indices.
//
//   arg_reduce: where the best element of a line stands        top_k: the k best of a line, in order
//   gather_nd:  y[t] = x[tuple t]                               scatter_nd: y[tuple t] = updates[t]
//
// 1. top_k keeps the k best so far in order at their place in the result; an element that does not beat the
//    last of them costs one comparison. Of equal elements the first stays first. NaN is above all numbers.
// 2. An index outside is reported in the status word, and its run is left out.
// 3. scatter_nd is one chunk: tuples may name a place twice, and the last one counts.
import { addressAt, chunksOf, min, nextChunk, u32At } from "../machine/runtime";
import { bytesOf, F32, loadFloat, loadInteger, signOf } from "./typed";
import {
  ARG_REDUCE_INNER, ARG_REDUCE_LARGEST, ARG_REDUCE_LAST, ARG_REDUCE_LENGTH, ARG_REDUCE_OUTER, ARG_REDUCE_TYPE,
  ARG_REDUCE_WIDE, ARG_REDUCE_X, ARG_REDUCE_Y, CONTROL_STATUS, GATHER_ND_BATCH_BYTES, GATHER_ND_D0, GATHER_ND_DEPTH, GATHER_ND_INDICES,
  GATHER_ND_PER_BATCH, GATHER_ND_RUN, GATHER_ND_S0, GATHER_ND_TUPLES, GATHER_ND_WIDE, GATHER_ND_X, GATHER_ND_Y,
  SCATTER_ND_D0, SCATTER_ND_DEPTH, SCATTER_ND_INDICES, SCATTER_ND_RUN, SCATTER_ND_S0, SCATTER_ND_TUPLES,
  SCATTER_ND_UPDATES, SCATTER_ND_WIDE, SCATTER_ND_Y, TOP_K_INDICES, TOP_K_INNER, TOP_K_K, TOP_K_LARGEST, TOP_K_LENGTH,
  TOP_K_OUTER, TOP_K_VALUES, TOP_K_WIDE, TOP_K_X,
} from "../generated/opcodes";

const OUTSIDE: usize = -1;

@inline function storeIndex(address: usize, i: u32, wide: u32, value: u32): void {
  if (wide) store<i64>(address + (<usize>i << 3), <i64>value);
  else store<u32>(address + (<usize>i << 2), value);
}

/** Whether `a` comes before `b`: NaN is above all numbers, and equal to itself. */
@inline function isBefore(a: f32, b: f32, largest: u32): bool {
  if (largest) return a > b || (a != a && b == b);
  return a < b || (b != b && a == a);
}

/** Whether `value` takes the place of `top`: NaN is the largest and the least. */
@inline function isBest(value: f64, top: f64, largest: u32, last: u32): bool {
  if (value == top || (value != value && top != top)) return last != 0;
  return top == top && (value != value || (largest ? value > top : value < top));
}

export function arg_reduce(ip: usize): void {
  const inner = u32At(ip, ARG_REDUCE_INNER), length = u32At(ip, ARG_REDUCE_LENGTH), type = u32At(ip, ARG_REDUCE_TYPE);
  const lines = u32At(ip, ARG_REDUCE_OUTER) * inner, last = u32At(ip, ARG_REDUCE_LAST);
  const largest = u32At(ip, ARG_REDUCE_LARGEST), bytes = bytesOf(type), stride = inner * bytes;
  for (let c = nextChunk(ip, lines); c >= 0; c = nextChunk(ip, lines)) {
    let x = addressAt(ip, ARG_REDUCE_X) + (<usize>(<u32>c / inner) * length * inner + <u32>c % inner) * bytes;
    let best: u32 = 0;
    if (type >= F32) {
      let top = loadFloat(type, x);
      for (let i: u32 = 1; i < length; i++) {
        const value = loadFloat(type, x += stride);
        if (isBest(value, top, largest, last)) { top = value; best = i; }
      }
    } else {
      const sign = signOf(type);
      let top = loadInteger(type, x) ^ sign;
      for (let i: u32 = 1; i < length; i++) {
        const value = loadInteger(type, x += stride) ^ sign;
        if ((largest ? value > top : value < top) || (last && value == top)) { top = value; best = i; }
      }
    }
    storeIndex(addressAt(ip, ARG_REDUCE_Y), <u32>c, u32At(ip, ARG_REDUCE_WIDE), best);
  }
}

export function top_k(ip: usize): void {
  const inner = u32At(ip, TOP_K_INNER), length = u32At(ip, TOP_K_LENGTH), k = u32At(ip, TOP_K_K);
  const lines = u32At(ip, TOP_K_OUTER) * inner, largest = u32At(ip, TOP_K_LARGEST), wide = u32At(ip, TOP_K_WIDE);
  const values = addressAt(ip, TOP_K_VALUES), indices = addressAt(ip, TOP_K_INDICES);
  for (let c = nextChunk(ip, lines); c >= 0; c = nextChunk(ip, lines)) {
    const outer = <u32>c / inner, rest = <u32>c % inner;
    const x = addressAt(ip, TOP_K_X) + ((<usize>outer * length * inner + rest) << 2);
    const first = outer * k * inner + rest;
    let kept: u32 = 0;
    for (let i: u32 = 0; i < length && k > 0; i++) {
      const value = load<f32>(x + (<usize>i * inner << 2));
      if (kept == k) {
        const worst = load<f32>(values + (<usize>(first + (k - 1) * inner) << 2));
        if (!isBefore(value, worst, largest)) continue;
      } else kept++;
      let at = kept - 1;
      for (; at > 0; at--) {
        const from = first + (at - 1) * inner, to = first + at * inner;
        const other = load<f32>(values + (<usize>from << 2));
        if (!isBefore(value, other, largest)) break;
        store<f32>(values + (<usize>to << 2), other);
        if (wide) store<i64>(indices + (<usize>to << 3), load<i64>(indices + (<usize>from << 3)));
        else store<u32>(indices + (<usize>to << 2), load<u32>(indices + (<usize>from << 2)));
      }
      store<f32>(values + (<usize>(first + at * inner) << 2), value);
      storeIndex(indices, first + at * inner, wide, i);
    }
  }
}

/** Byte offset of the run of a tuple, OUTSIDE if an index is; `dims` and `strides` are operands, one word each. */
@inline function offsetOf(tuple: usize, depth: u32, wide: u32, dims: usize, strides: usize): usize {
  let offset: usize = 0;
  for (let i: u32 = 0; i < depth; i++) {
    const size = <i64>load<u32>(dims + (<usize>i << 2));
    let index = wide ? load<i64>(tuple + (<usize>i << 3)) : <i64>load<i32>(tuple + (<usize>i << 2));
    if (index < 0) index += size;
    if (index < 0 || index >= size) return OUTSIDE;
    offset += <usize>index * load<u32>(strides + (<usize>i << 2));
  }
  return offset;
}

export function gather_nd(ip: usize): void {
  const tuples = u32At(ip, GATHER_ND_TUPLES), run = <usize>u32At(ip, GATHER_ND_RUN), wide = u32At(ip, GATHER_ND_WIDE);
  const depth = u32At(ip, GATHER_ND_DEPTH), step = <usize>depth << (wide ? 3 : 2), perBatch = u32At(ip, GATHER_ND_PER_BATCH);
  const group: u32 = run > 32768 ? 1 : 32768 / (<u32>run + 1) + 1, total = chunksOf(tuples, group);
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    const last = min(tuples, <u32>c * group + group);
    for (let t = <u32>c * group; t < last; t++) {
      const tuple = addressAt(ip, GATHER_ND_INDICES) + <usize>t * step;
      const offset = offsetOf(tuple, depth, wide, ip + GATHER_ND_D0, ip + GATHER_ND_S0);
      if (offset == OUTSIDE) { atomic.or<u32>(CONTROL_STATUS, 2); continue; }
      const x = addressAt(ip, GATHER_ND_X) + <usize>(t / perBatch) * u32At(ip, GATHER_ND_BATCH_BYTES) + offset;
      memory.copy(addressAt(ip, GATHER_ND_Y) + <usize>t * run, x, run);
    }
  }
}

export function scatter_nd(ip: usize): void {
  const tuples = u32At(ip, SCATTER_ND_TUPLES), run = <usize>u32At(ip, SCATTER_ND_RUN), wide = u32At(ip, SCATTER_ND_WIDE);
  const depth = u32At(ip, SCATTER_ND_DEPTH), step = <usize>depth << (wide ? 3 : 2);
  for (let c = nextChunk(ip, 1); c >= 0; c = nextChunk(ip, 1)) {
    for (let t: u32 = 0; t < tuples; t++) {
      const tuple = addressAt(ip, SCATTER_ND_INDICES) + <usize>t * step;
      const offset = offsetOf(tuple, depth, wide, ip + SCATTER_ND_D0, ip + SCATTER_ND_S0);
      if (offset == OUTSIDE) { atomic.or<u32>(CONTROL_STATUS, 2); continue; }
      memory.copy(addressAt(ip, SCATTER_ND_Y) + offset, addressAt(ip, SCATTER_ND_UPDATES) + <usize>t * run, run);
    }
  }
}
