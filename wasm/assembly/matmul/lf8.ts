// Products in LF8 on both sides (quant/lf8_products.ts), to the bits of the definition. Weights and activations lie
// as files store them, row by row. The sum of a group is LlamaF's ladder: bytes are widened to 16 bits, products of
// pairs added as 32, four sums carried through the group and added at its end; then one conversion and two
// products by scales. No float is touched within a group (matmul_lf8_test.ts).
import { addressAt, chunksOf, min, nextChunk, u32At } from "../machine/runtime";
import {
  MATMUL_LF8_BIAS, MATMUL_LF8_COLUMNS, MATMUL_LF8_OUTPUTS, MATMUL_LF8_ROWS, MATMUL_LF8_W, MATMUL_LF8_X,
  MATMUL_LF8_Y, QUANTIZE_LF8_COLUMNS, QUANTIZE_LF8_ROWS, QUANTIZE_LF8_X, QUANTIZE_LF8_Y,
} from "../generated/opcodes";

const GROUP: usize = 256;
const GROUP_BYTES: usize = 260;
/** Outputs of a chunk. */
const CHUNK: u32 = 16;

function quantizeGroup(x: usize, y: usize): void {
  let extreme: f64 = 0, finite = true;
  for (let k: usize = 0; k < GROUP; k++) {
    const magnitude = abs(<f64>load<f32>(x + 4 * k));
    finite = finite && magnitude < Infinity;
    extreme = max(extreme, magnitude);
  }
  store<f32>(y, <f32>(finite ? extreme / 127.5 : NaN));
  for (let k: usize = 0; k < GROUP; k++) {
    let code: f64 = 0;
    if (finite && extreme > 0) {
      const ratio = <f64>load<f32>(x + 4 * k) * 127.5 / extreme;
      code = max<f64>(-128, min64(127, ratio < 0 ? -floor(0.5 - ratio) : floor(ratio + 0.5)));
    }
    store<i8>(y + 4 + k, <i8>code);
  }
}

@inline function min64(a: f64, b: f64): f64 { return a < b ? a : b; }

export function quantize_lf8(ip: usize): void {
  const x = addressAt(ip, QUANTIZE_LF8_X), y = addressAt(ip, QUANTIZE_LF8_Y);
  const groups = u32At(ip, QUANTIZE_LF8_ROWS) * (u32At(ip, QUANTIZE_LF8_COLUMNS) >> 8);
  for (let g = nextChunk(ip, groups); g >= 0; g = nextChunk(ip, groups)) {
    quantizeGroup(x + 4 * GROUP * g, y + GROUP_BYTES * g);
  }
}

/** The whole number that a group of two rows gives. */
function groupSum(x: usize, w: usize): i32 {
  let sum = i32x4.splat(0);
  for (const end = w + GROUP; w < end; w += 16, x += 16) {
    const a = v128.load(x), b = v128.load(w);
    sum = i32x4.add(sum, i32x4.dot_i16x8_s(i16x8.extend_low_i8x16_s(a), i16x8.extend_low_i8x16_s(b)));
    sum = i32x4.add(sum, i32x4.dot_i16x8_s(i16x8.extend_high_i8x16_s(a), i16x8.extend_high_i8x16_s(b)));
  }
  const pairs = i32x4.add(sum, v128.shuffle<i32>(sum, sum, 2, 3, 0, 1));
  return i32x4.extract_lane(pairs, 0) + i32x4.extract_lane(pairs, 1);
}

function product(x: usize, w: usize, bytes: usize): f32 {
  let total: f32 = 0;
  for (const end = w + bytes; w < end; w += GROUP_BYTES, x += GROUP_BYTES) {
    total += (<f32>groupSum(x + 4, w + 4) * load<f32>(w)) * load<f32>(x);
  }
  return total;
}

export function matmul_lf8(ip: usize): void {
  const x = addressAt(ip, MATMUL_LF8_X), w = addressAt(ip, MATMUL_LF8_W), y = addressAt(ip, MATMUL_LF8_Y);
  const bias = addressAt(ip, MATMUL_LF8_BIAS), rows = u32At(ip, MATMUL_LF8_ROWS);
  const outputs = u32At(ip, MATMUL_LF8_OUTPUTS), bytes = (<usize>u32At(ip, MATMUL_LF8_COLUMNS) >> 8) * GROUP_BYTES;
  const total = rows ? chunksOf(outputs, CHUNK) : 0;
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    const first = <u32>c * CHUNK, last = min(first + CHUNK, outputs);
    for (let n = first; n < last; n++) {
      for (let m: u32 = 0; m < rows; m++) {
        const value = product(x + bytes * m, w + bytes * n, bytes);
        store<f32>(y + (<usize>(m * outputs + n) << 2), bias ? value + load<f32>(bias + (<usize>n << 2)) : value);
      }
    }
  }
}
