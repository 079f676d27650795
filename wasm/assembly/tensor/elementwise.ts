// Functions of one, two and three float32 tensors, element by element, with any broadcasting.
//
//   map:     y = f(x)              combine, combine_flat: y = f(a, b)              choose: y = c ? a : b
//
// 1. Functions are those of functions/unary.ts and functions/binary.ts by their numbers; their loops are generated
//    (gen/elementwise_runs.ts).
import { addressAt, chunksOf, f32At, min, nextSmallChunk, u32At } from "../machine/runtime";
import { combineRun, FIRST_TEST, mapRun } from "../generated/elementwise_runs";
import { copyOne } from "./index";
import {
  CHOOSE_A, CHOOSE_A0, CHOOSE_A4, CHOOSE_B, CHOOSE_B0, CHOOSE_B4, CHOOSE_BYTES, CHOOSE_C, CHOOSE_C0, CHOOSE_C4, CHOOSE_N0,
  CHOOSE_N4, CHOOSE_Y, COMBINE_A, COMBINE_A0, COMBINE_A5, COMBINE_B, COMBINE_B0, COMBINE_B5, COMBINE_FLAT_A, COMBINE_FLAT_B,
  COMBINE_FLAT_CHUNK, COMBINE_FLAT_COUNT, COMBINE_FLAT_KIND, COMBINE_FLAT_Y, COMBINE_KIND, COMBINE_N0, COMBINE_N5, COMBINE_Y,
  MAP_ALPHA, MAP_BETA, MAP_COUNT, MAP_KIND, MAP_X, MAP_Y,
} from "../generated/opcodes";

const CHUNK: u32 = 4096;

/** Rows of a loop: the product of `rank` sizes, the first at `sizes`. */
export function rowsOf(ip: usize, rank: u32, sizes: usize): u32 {
  let rows: u32 = 1;
  for (let d: u32 = 0; d < rank; d++) rows *= u32At(ip, sizes + 4 * d);
  return rows;
}

/** Where a row of an operand starts: its index, taken apart by those sizes, times the strides at `strides`. */
export function rowOffset(ip: usize, row: u32, rank: u32, sizes: usize, strides: usize): u32 {
  let offset: u32 = 0;
  for (let d = <usize>rank << 2; d > 0;) {
    d -= 4;
    const n = u32At(ip, sizes + d);
    if (n == 1) continue;
    offset += row % n * u32At(ip, strides + d);
    row /= n;
  }
  return offset;
}

export function map(ip: usize): void {
  const count = u32At(ip, MAP_COUNT), kind = u32At(ip, MAP_KIND), total = chunksOf(count, CHUNK);
  const alpha = f32x4.splat(f32At(ip, MAP_ALPHA)), beta = f32x4.splat(f32At(ip, MAP_BETA));
  const bytes: usize = kind >= FIRST_TEST ? 1 : 4;
  for (let c = nextSmallChunk(ip, total); c >= 0; c = nextSmallChunk(ip, total)) {
    const first = <usize>(<u32>c * CHUNK), x = addressAt(ip, MAP_X) + (first << 2), y = addressAt(ip, MAP_Y) + first * bytes;
    mapRun(kind, x, y, min(CHUNK, count - <u32>first), alpha, beta);
  }
}

/** Equal shapes, in chunks that other links of a chain have too. */
export function combine_flat(ip: usize): void {
  const count = u32At(ip, COMBINE_FLAT_COUNT), chunk = u32At(ip, COMBINE_FLAT_CHUNK), total = chunksOf(count, chunk);
  for (let c = nextSmallChunk(ip, total); c >= 0; c = nextSmallChunk(ip, total)) {
    const first = <u32>c * chunk, at = <usize>first << 2;
    combineRun(
      u32At(ip, COMBINE_FLAT_KIND), addressAt(ip, COMBINE_FLAT_A) + at, addressAt(ip, COMBINE_FLAT_B) + at,
      addressAt(ip, COMBINE_FLAT_Y) + at, min(chunk, count - first), 4, 4,
    );
  }
}

export function combine(ip: usize): void {
  const rows = rowsOf(ip, 5, COMBINE_N0), n5 = u32At(ip, COMBINE_N5), kind = u32At(ip, COMBINE_KIND);
  const pieces: u32 = n5 > CHUNK ? chunksOf(n5, CHUNK) : 1;
  const group: u32 = n5 == 0 || n5 > CHUNK ? 1 : CHUNK / n5;
  const total = pieces > 1 ? rows * pieces : chunksOf(rows, group);
  const sa = addressAt(ip, COMBINE_A5), sb = addressAt(ip, COMBINE_B5), sy: usize = kind >= FIRST_TEST ? 1 : 4;
  for (let c = nextSmallChunk(ip, total); c >= 0; c = nextSmallChunk(ip, total)) {
    let row = pieces > 1 ? <u32>c / pieces : <u32>c * group;
    const from = pieces > 1 ? <u32>c % pieces * CHUNK : 0, count = pieces > 1 ? min(CHUNK, n5 - from) : n5;
    const last = pieces > 1 ? row + 1 : min(rows, row + group);
    for (; row < last; row++) {
      const a = addressAt(ip, COMBINE_A) + rowOffset(ip, row, 5, COMBINE_N0, COMBINE_A0);
      const b = addressAt(ip, COMBINE_B) + rowOffset(ip, row, 5, COMBINE_N0, COMBINE_B0);
      const y = addressAt(ip, COMBINE_Y) + (<usize>row * n5 + from) * sy;
      combineRun(kind, a + from * sa, b + from * sb, y, count, sa, sb);
    }
  }
}

export function choose(ip: usize): void {
  const rows = rowsOf(ip, 4, CHOOSE_N0), n4 = u32At(ip, CHOOSE_N4), bytes = u32At(ip, CHOOSE_BYTES);
  const group: u32 = n4 == 0 || n4 > CHUNK ? 1 : CHUNK / n4, total = chunksOf(rows, group);
  const sc = addressAt(ip, CHOOSE_C4), sa = addressAt(ip, CHOOSE_A4), sb = addressAt(ip, CHOOSE_B4);
  for (let chunk = nextSmallChunk(ip, total); chunk >= 0; chunk = nextSmallChunk(ip, total)) {
    const last = min(rows, <u32>chunk * group + group);
    for (let row = <u32>chunk * group; row < last; row++) {
      let c = addressAt(ip, CHOOSE_C) + rowOffset(ip, row, 4, CHOOSE_N0, CHOOSE_C0);
      let a = addressAt(ip, CHOOSE_A) + rowOffset(ip, row, 4, CHOOSE_N0, CHOOSE_A0);
      let b = addressAt(ip, CHOOSE_B) + rowOffset(ip, row, 4, CHOOSE_N0, CHOOSE_B0);
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
