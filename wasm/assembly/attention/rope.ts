// Rotary position embedding.
//
//   rope_table: y[m] = magnitude · (cos(p[m] · f[0..h)), sin(p[m] · f[0..h)))
//   rope:       pairs (a, b) of the first 2h channels become (a·cos - b·sin, b·cos + a·sin)
//               half: (i, i + h)    interleaved: (2i, 2i + 1)    the other channels are copied
//
// 1. The table is made once a step in float64 with a full range reduction: at position 1e6 a float32
//    angle would be wrong by 0.03.
// 2. y may be x.
import { addressAt, chunksOf, f32At, min, nextChunk, u32At } from "../machine/runtime";
import {
  ROPE_GROUP, ROPE_HEAD_SIZE, ROPE_HEADS, ROPE_INTERLEAVED, ROPE_PAIRS, ROPE_ROWS, ROPE_TABLE, ROPE_TABLE_BEYOND,
  ROPE_TABLE_FREQUENCIES, ROPE_TABLE_LONG, ROPE_TABLE_MAGNITUDE, ROPE_TABLE_SPANS, ROPE_TABLE_PAIRS, ROPE_TABLE_POSITIONS, ROPE_TABLE_ROWS, ROPE_TABLE_Y, ROPE_X, ROPE_Y,
} from "../generated/opcodes";

export function rope_table(ip: usize): void {
  const rows = u32At(ip, ROPE_TABLE_ROWS), pairs = u32At(ip, ROPE_TABLE_PAIRS);
  const magnitude = <f64>f32At(ip, ROPE_TABLE_MAGNITUDE), spans = addressAt(ip, ROPE_TABLE_SPANS);
  const total = chunksOf(rows, 4);
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    const last = min(rows, <u32>c * 4 + 4);
    for (let row = <u32>c * 4; row < last; row++) {
      const position = <f64>load<i32>(addressAt(ip, ROPE_TABLE_POSITIONS) + (<usize>row << 2));
      const y = addressAt(ip, ROPE_TABLE_Y) + <usize>row * pairs * 8;
      const long = spans && load<i32>(spans + (<usize>row << 2)) > <i32>u32At(ip, ROPE_TABLE_BEYOND);
      const set = addressAt(ip, long ? ROPE_TABLE_LONG : ROPE_TABLE_FREQUENCIES);
      for (let i: usize = 0; i < <usize>pairs; i++) {
        const angle = position * <f64>load<f32>(set + (i << 2));
        store<f32>(y + (i << 2), <f32>(Math.cos(angle) * magnitude));
        store<f32>(y + ((i + pairs) << 2), <f32>(Math.sin(angle) * magnitude));
      }
    }
  }
}

export function rope(ip: usize): void {
  const rows = u32At(ip, ROPE_ROWS), heads = u32At(ip, ROPE_HEADS), size = u32At(ip, ROPE_HEAD_SIZE);
  const pairs = u32At(ip, ROPE_PAIRS), interleaved = u32At(ip, ROPE_INTERLEAVED);
  const headBytes = <usize>size << 2, half = <usize>pairs << 2;
  const group = u32At(ip, ROPE_GROUP), total = chunksOf(rows, group);
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    const last = min(rows, <u32>c * group + group);
    for (let row = <u32>c * group; row < last; row++) {
      const cos = addressAt(ip, ROPE_TABLE) + <usize>row * half * 2, sin = cos + half;
      for (let head: u32 = 0; head < heads; head++) {
        const offset = (<usize>row * heads + head) * headBytes;
        const x = addressAt(ip, ROPE_X) + offset, y = addressAt(ip, ROPE_Y) + offset;
        if (interleaved) rotateInterleaved(x, y, cos, sin, half);
        else rotateHalf(x, y, cos, sin, half);
        if (x != y && headBytes > 2 * half) memory.copy(y + 2 * half, x + 2 * half, headBytes - 2 * half);
      }
    }
  }
}

function rotateHalf(x: usize, y: usize, cos: usize, sin: usize, half: usize): void {
  let i: usize = 0;
  for (; i + 16 <= half; i += 16) {
    const a = v128.load(x + i), b = v128.load(x + half + i), c = v128.load(cos + i), s = v128.load(sin + i);
    v128.store(y + i, f32x4.sub(f32x4.mul(a, c), f32x4.mul(b, s)));
    v128.store(y + half + i, f32x4.add(f32x4.mul(b, c), f32x4.mul(a, s)));
  }
  for (; i < half; i += 4) rotate(x + i, x + half + i, y + i, y + half + i, load<f32>(cos + i), load<f32>(sin + i));
}

function rotateInterleaved(x: usize, y: usize, cos: usize, sin: usize, half: usize): void {
  let i: usize = 0;
  for (; i + 16 <= half; i += 16) {
    const u = v128.load(x + 2 * i), v = v128.load(x + 2 * i, 16), c = v128.load(cos + i), s = v128.load(sin + i);
    const a = i8x16.shuffle(u, v, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
    const b = i8x16.shuffle(u, v, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
    const p = f32x4.sub(f32x4.mul(a, c), f32x4.mul(b, s)), q = f32x4.add(f32x4.mul(b, c), f32x4.mul(a, s));
    v128.store(y + 2 * i, i8x16.shuffle(p, q, 0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23));
    v128.store(y + 2 * i, i8x16.shuffle(p, q, 8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31), 16);
  }
  for (; i < half; i += 4) {
    const at = i << 1;
    rotate(x + at, x + at + 4, y + at, y + at + 4, load<f32>(cos + i), load<f32>(sin + i));
  }
}

@inline function rotate(xa: usize, xb: usize, ya: usize, yb: usize, c: f32, s: f32): void {
  const a = load<f32>(xa), b = load<f32>(xb);
  store<f32>(ya, a * c - b * s);
  store<f32>(yb, b * c + a * s);
}
