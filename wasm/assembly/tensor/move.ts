// Moving elements: boxes with strides, fills, rows by index. Everything that ONNX graphs do to layouts
// (Transpose, Slice, Concat, Expand, Tile, Pad, Split) is one box copied to another.
//
//   move:        y[i0, …, i5] = x[i0, …, i5], each side with its own byte strides
//   move_turned: the same, where x is contiguous along dim 4 and y along dim 5: blocks of 4 by 4
//   fill:        y = value
//   gather:      y[o, i] = x[o, indices[i]]; an index outside is reported in the status word
//
// 1. A chunk is some rows along dim 5, or a piece of a long one.
// 2. Addresses are computed modulo 2^32, so a negative stride is a large one.
import { addressAt, chunksOf, min, nextSmallChunk, u32At } from "../machine/runtime";
import {
  CONTROL_STATUS, FILL_BYTES, FILL_COUNT, FILL_VALUE, FILL_Y, GATHER_BYTES, GATHER_COUNT, GATHER_INDICES, GATHER_OUTER, GATHER_SIZE,
  GATHER_WIDE, GATHER_X, GATHER_Y, MOVE_BYTES, MOVE_N0, MOVE_N1, MOVE_N2, MOVE_N3, MOVE_N4, MOVE_N5, MOVE_TURNED_N0,
  MOVE_TURNED_N1, MOVE_TURNED_N2, MOVE_TURNED_N3, MOVE_TURNED_N4, MOVE_TURNED_N5, MOVE_TURNED_X, MOVE_TURNED_X0,
  MOVE_TURNED_X1, MOVE_TURNED_X2, MOVE_TURNED_X3, MOVE_TURNED_X5, MOVE_TURNED_Y, MOVE_TURNED_Y0, MOVE_TURNED_Y1,
  MOVE_TURNED_Y2, MOVE_TURNED_Y3, MOVE_TURNED_Y4, MOVE_X, MOVE_X0, MOVE_X1, MOVE_X2, MOVE_X3, MOVE_X4, MOVE_X5, MOVE_Y,
  MOVE_Y0, MOVE_Y1, MOVE_Y2, MOVE_Y3, MOVE_Y4, MOVE_Y5,
} from "../generated/opcodes";

const PIECE: u32 = 16384;
const GROUP: u32 = 8192;

/** `bytes` from one place to another; a call of memory.copy costs more than a short loop. */
@inline function copyRun(x: usize, y: usize, bytes: usize): void {
  if (bytes >= 512) { memory.copy(y, x, bytes); return; }
  for (; bytes >= 16; bytes -= 16, x += 16, y += 16) v128.store(y, v128.load(x));
  if (bytes & 8) { store<u64>(y, load<u64>(x)); x += 8; y += 8; }
  if (bytes & 4) { store<u32>(y, load<u32>(x)); x += 4; y += 4; }
  if (bytes & 2) { store<u16>(y, load<u16>(x)); x += 2; y += 2; }
  if (bytes & 1) store<u8>(y, load<u8>(x));
}

/** One row: `count` elements of `bytes`. */
function moveRow(x: usize, y: usize, count: u32, bytes: u32, sx: usize, sy: usize): void {
  if (sx == bytes && sy == bytes) {
    copyRun(x, y, <usize>count * bytes);
  } else if (bytes == 4) {
    for (let i: u32 = 0; i < count; i++, x += sx, y += sy) store<u32>(y, load<u32>(x));
  } else if (bytes == 8) {
    for (let i: u32 = 0; i < count; i++, x += sx, y += sy) store<u64>(y, load<u64>(x));
  } else if (bytes == 2) {
    for (let i: u32 = 0; i < count; i++, x += sx, y += sy) store<u16>(y, load<u16>(x));
  } else {
    for (let i: u32 = 0; i < count; i++, x += sx, y += sy) store<u8>(y, load<u8>(x));
  }
}

export function move(ip: usize): void {
  const n1 = u32At(ip, MOVE_N1), n2 = u32At(ip, MOVE_N2), n3 = u32At(ip, MOVE_N3), n4 = u32At(ip, MOVE_N4);
  const rows = u32At(ip, MOVE_N0) * n1 * n2 * n3 * n4, n5 = u32At(ip, MOVE_N5);
  const pieces: u32 = n5 > PIECE ? chunksOf(n5, PIECE) : 1;
  const group: u32 = n5 == 0 ? GROUP : n5 > GROUP ? 1 : GROUP / n5;
  const total = pieces > 1 ? rows * pieces : chunksOf(rows, group);
  const bytes = u32At(ip, MOVE_BYTES);
  const sx = addressAt(ip, MOVE_X5), sy = addressAt(ip, MOVE_Y5);
  for (let c = nextSmallChunk(ip, total); c >= 0; c = nextSmallChunk(ip, total)) {
    let row = pieces > 1 ? <u32>c / pieces : <u32>c * group;
    const from = pieces > 1 ? <u32>c % pieces * PIECE : 0;
    const count = pieces > 1 ? min(PIECE, n5 - from) : n5;
    const last = pieces > 1 ? row + 1 : min(rows, row + group);
    while (row < last) {
      let rest = row;
      const i4 = rest % n4; rest /= n4;
      const i3 = rest % n3; rest /= n3;
      const i2 = rest % n2; rest /= n2;
      const i1 = rest % n1, i0 = rest / n1;
      let x = from * sx + addressAt(ip, MOVE_X) + i0 * u32At(ip, MOVE_X0) + i1 * u32At(ip, MOVE_X1) + i2 * u32At(ip, MOVE_X2) +
        i3 * u32At(ip, MOVE_X3) + i4 * u32At(ip, MOVE_X4);
      let y = from * sy + addressAt(ip, MOVE_Y) + i0 * u32At(ip, MOVE_Y0) + i1 * u32At(ip, MOVE_Y1) + i2 * u32At(ip, MOVE_Y2) +
        i3 * u32At(ip, MOVE_Y3) + i4 * u32At(ip, MOVE_Y4);
      // Rows that differ in i4 alone go without another division.
      const end = min(last, row + n4 - i4);
      for (; row < end; row++, x += addressAt(ip, MOVE_X4), y += addressAt(ip, MOVE_Y4)) {
        moveRow(x, y, count, bytes, sx, sy);
      }
    }
  }
}

/** Four vectors along dim 4 become four along dim 5. */
@inline function turn4(x: usize, sx: usize, y: usize, sy: usize): void {
  const a = v128.load(x), b = v128.load(x + sx), c = v128.load(x + 2 * sx), d = v128.load(x + 3 * sx);
  const ab = i8x16.shuffle(a, b, 0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
  const cd = i8x16.shuffle(c, d, 0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
  const ef = i8x16.shuffle(a, b, 8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31);
  const gh = i8x16.shuffle(c, d, 8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31);
  v128.store(y, i8x16.shuffle(ab, cd, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23));
  v128.store(y + sy, i8x16.shuffle(ab, cd, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31));
  v128.store(y + 2 * sy, i8x16.shuffle(ef, gh, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23));
  v128.store(y + 3 * sy, i8x16.shuffle(ef, gh, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31));
}

export function move_turned(ip: usize): void {
  const n1 = u32At(ip, MOVE_TURNED_N1), n2 = u32At(ip, MOVE_TURNED_N2), n3 = u32At(ip, MOVE_TURNED_N3);
  const n4 = u32At(ip, MOVE_TURNED_N4), n5 = u32At(ip, MOVE_TURNED_N5);
  const strips = chunksOf(n4, 16), total = u32At(ip, MOVE_TURNED_N0) * n1 * n2 * n3 * strips;
  const sx = addressAt(ip, MOVE_TURNED_X5), sy = addressAt(ip, MOVE_TURNED_Y4);
  for (let c = nextSmallChunk(ip, total); c >= 0; c = nextSmallChunk(ip, total)) {
    let rest = <u32>c / strips;
    const first = <u32>c % strips * 16, last = min(n4, first + 16);
    const i3 = rest % n3; rest /= n3;
    const i2 = rest % n2; rest /= n2;
    const i1 = rest % n1, i0 = rest / n1;
    const x = addressAt(ip, MOVE_TURNED_X) + i0 * u32At(ip, MOVE_TURNED_X0) + i1 * u32At(ip, MOVE_TURNED_X1) +
      i2 * u32At(ip, MOVE_TURNED_X2) + i3 * u32At(ip, MOVE_TURNED_X3);
    const y = addressAt(ip, MOVE_TURNED_Y) + i0 * u32At(ip, MOVE_TURNED_Y0) + i1 * u32At(ip, MOVE_TURNED_Y1) +
      i2 * u32At(ip, MOVE_TURNED_Y2) + i3 * u32At(ip, MOVE_TURNED_Y3);
    const whole5 = n5 & ~3, whole4 = first + ((last - first) & ~3);
    for (let i5: u32 = 0; i5 < whole5; i5 += 4) {
      for (let i4 = first; i4 < whole4; i4 += 4) turn4(x + i5 * sx + (i4 << 2), sx, y + i4 * sy + (i5 << 2), sy);
    }
    for (let i4 = first; i4 < last; i4++) {
      const start = i4 < whole4 ? whole5 : 0;
      moveRow(x + start * sx + (i4 << 2), y + i4 * sy + (start << 2), n5 - start, 4, sx, 4);
    }
  }
}

export function fill(ip: usize): void {
  const count = u32At(ip, FILL_COUNT), bytes = u32At(ip, FILL_BYTES), value = addressAt(ip, FILL_VALUE);
  const total = chunksOf(count, PIECE);
  for (let c = nextSmallChunk(ip, total); c >= 0; c = nextSmallChunk(ip, total)) {
    const first = <u32>c * PIECE, n = min(PIECE, count - first);
    const y = addressAt(ip, FILL_Y) + <usize>first * bytes;
    if (value == 0) memory.fill(y, 0, <usize>n * bytes);
    else moveRow(value, y, n, bytes, 0, bytes);
  }
}

export function gather(ip: usize): void {
  const count = u32At(ip, GATHER_COUNT), outer = u32At(ip, GATHER_OUTER), bytes = <usize>u32At(ip, GATHER_BYTES);
  const size = u32At(ip, GATHER_SIZE), wide = u32At(ip, GATHER_WIDE), indices = addressAt(ip, GATHER_INDICES);
  const group: u32 = bytes > 32768 ? 1 : 32768 / (<u32>bytes + 1) + 1;
  const entries = outer * count, total = chunksOf(entries, group);
  for (let c = nextSmallChunk(ip, total); c >= 0; c = nextSmallChunk(ip, total)) {
    const last = min(entries, <u32>c * group + group);
    for (let entry = <u32>c * group; entry < last; entry++) {
      const i = entry % count, o = entry / count;
      let index = wide ? load<i64>(indices + (<usize>i << 3)) : <i64>load<i32>(indices + (<usize>i << 2));
      if (index < 0) index += <i64>size;
      if (index < 0 || index >= <i64>size) { atomic.or<u32>(CONTROL_STATUS, 2); continue; }
      const x = addressAt(ip, GATHER_X) + (<usize>o * size + <usize>index) * bytes;
      const y = addressAt(ip, GATHER_Y) + <usize>entry * bytes;
      copyRun(x, y, bytes);
    }
  }
}
