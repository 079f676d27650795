// Single elements by index, and triangles.
//
//   gather_elements: y[i] = x[place i]            scatter_elements: y[place i] = updates[i]
//   mark: y[o, indices[o, i], i] = value          trilu: y = x in a triangle, else 0
//
// 1. A row is a run along dim 5; scatter_elements is one chunk, because of equal places the last one counts.
// 2. Of gather and scatter an index outside is reported in the status word.
import { addressAt, chunksOf, i32At, min, nextChunk, u32At } from "../machine/runtime";
import { bytesOf, F32, loadFloat, loadInteger } from "./typed";
import {
  CONTROL_STATUS, GATHER_ELEMENTS_ALONG, GATHER_ELEMENTS_BYTES, GATHER_ELEMENTS_INDICES, GATHER_ELEMENTS_N0,
  GATHER_ELEMENTS_N1, GATHER_ELEMENTS_N2, GATHER_ELEMENTS_N3, GATHER_ELEMENTS_N4, GATHER_ELEMENTS_N5,
  GATHER_ELEMENTS_SIZE, GATHER_ELEMENTS_WIDE, GATHER_ELEMENTS_X, GATHER_ELEMENTS_X0, GATHER_ELEMENTS_Y, MARK_BYTES,
  MARK_DEPTH, MARK_INDICES, MARK_INNER, MARK_OUTER, MARK_TYPE, MARK_VALUE, MARK_Y, SCATTER_ELEMENTS_ALONG,
  SCATTER_ELEMENTS_BYTES, SCATTER_ELEMENTS_INDICES, SCATTER_ELEMENTS_N0, SCATTER_ELEMENTS_N1, SCATTER_ELEMENTS_N2,
  SCATTER_ELEMENTS_N3, SCATTER_ELEMENTS_N4, SCATTER_ELEMENTS_N5, SCATTER_ELEMENTS_SIZE, SCATTER_ELEMENTS_UPDATES,
  SCATTER_ELEMENTS_WIDE, SCATTER_ELEMENTS_Y, SCATTER_ELEMENTS_Y0, TRILU_BYTES, TRILU_COLUMNS, TRILU_K, TRILU_MATRICES,
  TRILU_ROWS, TRILU_UPPER, TRILU_X, TRILU_Y,
} from "../generated/opcodes";

/** One element of 1, 2, 4 or 8 bytes. */
@inline export function copyOne(x: usize, y: usize, bytes: u32): void {
  if (bytes == 4) store<u32>(y, load<u32>(x));
  else if (bytes == 8) store<u64>(y, load<u64>(x));
  else if (bytes == 2) store<u16>(y, load<u16>(x));
  else store<u8>(y, load<u8>(x));
}

/** Byte offset of an index along its dim; -1 if it is outside. */
@inline function placeOf(indices: usize, at: u32, wide: u32, size: u32, along: usize): usize {
  let index = wide ? load<i64>(indices + (<usize>at << 3)) : <i64>load<i32>(indices + (<usize>at << 2));
  if (index < 0) index += <i64>size;
  return index < 0 || index >= <i64>size ? <usize>-1 : <usize>index * along;
}

/** Offset of row `row` by the strides of dims 0 to 4, one operand after another. */
@inline function rowOffset(row: u32, n1: u32, n2: u32, n3: u32, n4: u32, strides: usize): usize {
  const i4 = row % n4; row /= n4;
  const i3 = row % n3; row /= n3;
  const i2 = row % n2; row /= n2;
  const i1 = row % n1, i0 = row / n1;
  return <usize>(i0 * load<u32>(strides) + i1 * load<u32>(strides, 4) + i2 * load<u32>(strides, 8) +
    i3 * load<u32>(strides, 12) + i4 * load<u32>(strides, 16));
}

export function gather_elements(ip: usize): void {
  const n1 = u32At(ip, GATHER_ELEMENTS_N1), n2 = u32At(ip, GATHER_ELEMENTS_N2), n3 = u32At(ip, GATHER_ELEMENTS_N3);
  const n4 = u32At(ip, GATHER_ELEMENTS_N4), n5 = u32At(ip, GATHER_ELEMENTS_N5);
  const rows = u32At(ip, GATHER_ELEMENTS_N0) * n1 * n2 * n3 * n4, bytes = u32At(ip, GATHER_ELEMENTS_BYTES);
  const group: u32 = n5 == 0 || n5 > 4096 ? 1 : 4096 / n5, total = chunksOf(rows, group);
  const strides = ip + GATHER_ELEMENTS_X0, step = u32At(strides, 20);
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    const last = min(rows, <u32>c * group + group);
    for (let row = <u32>c * group; row < last; row++) {
      const x = addressAt(ip, GATHER_ELEMENTS_X) + rowOffset(row, n1, n2, n3, n4, strides);
      for (let i: u32 = 0; i < n5; i++) {
        const at = row * n5 + i;
        const place = placeOf(
          addressAt(ip, GATHER_ELEMENTS_INDICES), at, u32At(ip, GATHER_ELEMENTS_WIDE), u32At(ip, GATHER_ELEMENTS_SIZE),
          addressAt(ip, GATHER_ELEMENTS_ALONG),
        );
        if (place == <usize>-1) { atomic.or<u32>(CONTROL_STATUS, 2); continue; }
        copyOne(x + i * step + place, addressAt(ip, GATHER_ELEMENTS_Y) + at * bytes, bytes);
      }
    }
  }
}

export function scatter_elements(ip: usize): void {
  const n1 = u32At(ip, SCATTER_ELEMENTS_N1), n2 = u32At(ip, SCATTER_ELEMENTS_N2), n3 = u32At(ip, SCATTER_ELEMENTS_N3);
  const n4 = u32At(ip, SCATTER_ELEMENTS_N4), n5 = u32At(ip, SCATTER_ELEMENTS_N5);
  const rows = u32At(ip, SCATTER_ELEMENTS_N0) * n1 * n2 * n3 * n4, bytes = u32At(ip, SCATTER_ELEMENTS_BYTES);
  const strides = ip + SCATTER_ELEMENTS_Y0, step = u32At(strides, 20);
  for (let c = nextChunk(ip, 1); c >= 0; c = nextChunk(ip, 1)) {
    for (let row: u32 = 0; row < rows; row++) {
      const y = addressAt(ip, SCATTER_ELEMENTS_Y) + rowOffset(row, n1, n2, n3, n4, strides);
      for (let i: u32 = 0; i < n5; i++) {
        const at = row * n5 + i;
        const place = placeOf(
          addressAt(ip, SCATTER_ELEMENTS_INDICES), at, u32At(ip, SCATTER_ELEMENTS_WIDE),
          u32At(ip, SCATTER_ELEMENTS_SIZE), addressAt(ip, SCATTER_ELEMENTS_ALONG),
        );
        if (place == <usize>-1) { atomic.or<u32>(CONTROL_STATUS, 2); continue; }
        copyOne(addressAt(ip, SCATTER_ELEMENTS_UPDATES) + at * bytes, y + i * step + place, bytes);
      }
    }
  }
}

export function mark(ip: usize): void {
  const inner = u32At(ip, MARK_INNER), depth = u32At(ip, MARK_DEPTH), type = u32At(ip, MARK_TYPE);
  const lines = u32At(ip, MARK_OUTER) * inner, bytes = u32At(ip, MARK_BYTES), total = chunksOf(lines, 1024);
  const size = bytesOf(type);
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    const last = min(lines, <u32>c * 1024 + 1024);
    for (let line = <u32>c * 1024; line < last; line++) {
      const address = addressAt(ip, MARK_INDICES) + line * size;
      let index: i64;
      if (type < F32) index = loadInteger(type, address);
      else {
        const value = loadFloat(type, address);
        if (!(abs<f64>(value) < 4294967296)) continue;
        index = <i64>value;
      }
      if (index < 0) index += <i64>depth;
      if (index < 0 || index >= <i64>depth) continue;
      const at = (<usize>(line / inner) * depth + <usize>index) * inner + line % inner;
      copyOne(addressAt(ip, MARK_VALUE), addressAt(ip, MARK_Y) + at * bytes, bytes);
    }
  }
}

export function trilu(ip: usize): void {
  const rows = u32At(ip, TRILU_ROWS), columns = u32At(ip, TRILU_COLUMNS), bytes = u32At(ip, TRILU_BYTES);
  const lines = u32At(ip, TRILU_MATRICES) * rows, total = chunksOf(lines, 8), k = i32At(ip, TRILU_K);
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    const last = min(lines, <u32>c * 8 + 8);
    for (let line = <u32>c * 8; line < last; line++) {
      // The first column of the upper part: those before it are below the diagonal.
      const edge = <i64>(line % rows) + <i64>k + (u32At(ip, TRILU_UPPER) ? 0 : 1);
      const cut = <usize>(edge < 0 ? 0 : edge > <i64>columns ? <i64>columns : edge) * bytes;
      const whole = <usize>columns * bytes, at = <usize>line * whole;
      const x = addressAt(ip, TRILU_X) + at, y = addressAt(ip, TRILU_Y) + at;
      if (u32At(ip, TRILU_UPPER)) {
        memory.fill(y, 0, cut);
        memory.copy(y + cut, x + cut, whole - cut);
      } else {
        memory.copy(y, x, cut);
        memory.fill(y + cut, 0, whole - cut);
      }
    }
  }
}
