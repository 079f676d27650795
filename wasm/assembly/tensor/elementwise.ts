// Functions of one, two and three float32 tensors, element by element, with any broadcasting.
//
//   map:     y = f(x)              combine: y = f(a, b)              choose: y = c ? a : b
//
// 1. Numbers of the functions are those of MAP_KINDS and COMBINE_KINDS (wasm/opcodes_onnx.ts); their loops
//    are generated (gen/elementwise_runs.ts), those of tests stand here.
import { addressAt, chunksOf, f32At, min, nextChunk, u32At } from "../machine/runtime";
import { combineRun, mapRun } from "../generated/elementwise_runs";
import { copyOne } from "./index";
import { loadStrided } from "./functions";
import {
  CHOOSE_A, CHOOSE_A0, CHOOSE_A1, CHOOSE_A2, CHOOSE_A3, CHOOSE_A4, CHOOSE_B, CHOOSE_B0, CHOOSE_B1, CHOOSE_B2, CHOOSE_B3,
  CHOOSE_B4, CHOOSE_BYTES, CHOOSE_C, CHOOSE_C0, CHOOSE_C1, CHOOSE_C2, CHOOSE_C3, CHOOSE_C4, CHOOSE_N0, CHOOSE_N1, CHOOSE_N2, CHOOSE_N3,
  CHOOSE_N4, CHOOSE_Y, COMBINE_A, COMBINE_A0, COMBINE_A1, COMBINE_A2, COMBINE_A3, COMBINE_A4, COMBINE_A5, COMBINE_B,
  COMBINE_B0, COMBINE_B1, COMBINE_B2, COMBINE_B3, COMBINE_B4, COMBINE_B5, COMBINE_KIND, COMBINE_N0, COMBINE_N1, COMBINE_N2,
  COMBINE_N3, COMBINE_N4, COMBINE_N5, COMBINE_Y, MAP_ALPHA, MAP_BETA, MAP_COUNT, MAP_KIND, MAP_X, MAP_Y,
} from "../generated/opcodes";

const CHUNK: u32 = 4096;

export function map(ip: usize): void {
  const count = u32At(ip, MAP_COUNT), total = chunksOf(count, CHUNK);
  const alpha = f32x4.splat(f32At(ip, MAP_ALPHA)), beta = f32x4.splat(f32At(ip, MAP_BETA));
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    const first = <u32>c * CHUNK, at = <usize>first << 2;
    mapRun(
      u32At(ip, MAP_KIND), addressAt(ip, MAP_X) + at, addressAt(ip, MAP_Y) + at, min(CHUNK, count - first), alpha, beta,
    );
  }
}

/** All bits of a lane are its answer. */
@inline function test4(kind: u32, a: v128, b: v128): v128 {
  if (kind == 16) return f32x4.eq(a, b);
  if (kind == 17) return f32x4.gt(a, b);
  if (kind == 18) return f32x4.ge(a, b);
  if (kind == 19) return f32x4.lt(a, b);
  if (kind == 20) return f32x4.le(a, b);
  return kind == 21 ? f32x4.ne(a, b) : f32x4.eq(f32x4.abs(a), b);
}

function testRun(kind: u32, a: usize, b: usize, y: usize, count: u32, sa: usize, sb: usize): void {
  for (let i: u32 = 0; i < count; i += 4, a += sa << 2, b += sb << 2, y += 4) {
    const n = count - i;
    const bits = i32x4.bitmask(test4(kind, loadStrided(a, sa, n), loadStrided(b, sb, n)));
    // The four answers, one in each byte.
    const bytes = <u32>(bits & 1) | <u32>(bits & 2) << 7 | <u32>(bits & 4) << 14 | <u32>(bits & 8) << 21;
    if (n >= 4) store<u32>(y, bytes);
    else for (let k: u32 = 0; k < n; k++) store<u8>(y + k, <u8>(bytes >> (k << 3)));
  }
}

export function combine(ip: usize): void {
  const n1 = u32At(ip, COMBINE_N1), n2 = u32At(ip, COMBINE_N2), n3 = u32At(ip, COMBINE_N3), n4 = u32At(ip, COMBINE_N4);
  const rows = u32At(ip, COMBINE_N0) * n1 * n2 * n3 * n4, n5 = u32At(ip, COMBINE_N5), kind = u32At(ip, COMBINE_KIND);
  const pieces: u32 = n5 > CHUNK ? chunksOf(n5, CHUNK) : 1;
  const group: u32 = n5 == 0 || n5 > CHUNK ? 1 : CHUNK / n5;
  const total = pieces > 1 ? rows * pieces : chunksOf(rows, group);
  const sa = addressAt(ip, COMBINE_A5), sb = addressAt(ip, COMBINE_B5), sy: usize = kind >= 16 ? 1 : 4;
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    let row = pieces > 1 ? <u32>c / pieces : <u32>c * group;
    const from = pieces > 1 ? <u32>c % pieces * CHUNK : 0, count = pieces > 1 ? min(CHUNK, n5 - from) : n5;
    const last = pieces > 1 ? row + 1 : min(rows, row + group);
    for (; row < last; row++) {
      let rest = row;
      const i4 = rest % n4; rest /= n4;
      const i3 = rest % n3; rest /= n3;
      const i2 = rest % n2; rest /= n2;
      const i1 = rest % n1, i0 = rest / n1;
      const a = addressAt(ip, COMBINE_A) + i0 * u32At(ip, COMBINE_A0) + i1 * u32At(ip, COMBINE_A1) +
        i2 * u32At(ip, COMBINE_A2) + i3 * u32At(ip, COMBINE_A3) + i4 * u32At(ip, COMBINE_A4);
      const b = addressAt(ip, COMBINE_B) + i0 * u32At(ip, COMBINE_B0) + i1 * u32At(ip, COMBINE_B1) +
        i2 * u32At(ip, COMBINE_B2) + i3 * u32At(ip, COMBINE_B3) + i4 * u32At(ip, COMBINE_B4);
      const y = addressAt(ip, COMBINE_Y) + (<usize>row * n5 + from) * sy;
      if (kind >= 16) testRun(kind, a + from * sa, b + from * sb, y, count, sa, sb);
      else combineRun(kind, a + from * sa, b + from * sb, y, count, sa, sb);
    }
  }
}

export function choose(ip: usize): void {
  const n1 = u32At(ip, CHOOSE_N1), n2 = u32At(ip, CHOOSE_N2), n3 = u32At(ip, CHOOSE_N3), n4 = u32At(ip, CHOOSE_N4);
  const rows = u32At(ip, CHOOSE_N0) * n1 * n2 * n3, bytes = u32At(ip, CHOOSE_BYTES);
  const group: u32 = n4 == 0 || n4 > CHUNK ? 1 : CHUNK / n4, total = chunksOf(rows, group);
  const sc = addressAt(ip, CHOOSE_C4), sa = addressAt(ip, CHOOSE_A4), sb = addressAt(ip, CHOOSE_B4);
  for (let chunk = nextChunk(ip, total); chunk >= 0; chunk = nextChunk(ip, total)) {
    const last = min(rows, <u32>chunk * group + group);
    for (let row = <u32>chunk * group; row < last; row++) {
      let rest = row;
      const i3 = rest % n3; rest /= n3;
      const i2 = rest % n2; rest /= n2;
      const i1 = rest % n1, i0 = rest / n1;
      let c = addressAt(ip, CHOOSE_C) + i0 * u32At(ip, CHOOSE_C0) + i1 * u32At(ip, CHOOSE_C1) + i2 * u32At(ip, CHOOSE_C2) +
        i3 * u32At(ip, CHOOSE_C3);
      let a = addressAt(ip, CHOOSE_A) + i0 * u32At(ip, CHOOSE_A0) + i1 * u32At(ip, CHOOSE_A1) + i2 * u32At(ip, CHOOSE_A2) +
        i3 * u32At(ip, CHOOSE_A3);
      let b = addressAt(ip, CHOOSE_B) + i0 * u32At(ip, CHOOSE_B0) + i1 * u32At(ip, CHOOSE_B1) + i2 * u32At(ip, CHOOSE_B2) +
        i3 * u32At(ip, CHOOSE_B3);
      let y = addressAt(ip, CHOOSE_Y) + <usize>row * n4 * bytes;
      if (bytes == 4) {
        for (let i: u32 = 0; i < n4; i++, y += 4, c += sc, a += sa, b += sb) {
          store<u32>(y, load<u8>(c) ? load<u32>(a) : load<u32>(b));
        }
      } else {
        for (let i: u32 = 0; i < n4; i++, y += bytes, c += sc, a += sa, b += sb) {
          copyOne(load<u8>(c) ? a : b, y, bytes);
        }
      }
    }
  }
}
