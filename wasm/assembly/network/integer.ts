// Codes of 8 bits: products, and from numbers and back.
//
//   matmul_integer:    y = (a - a_zero) · (b - b_zero) in 32 bit, exact
//   range_partials, quantize_range: dynamic_quantize in two steps, the least and largest of 64 parts,
//   then codes
//   quantize:          codes of x / scale + zero;   dequantize: (code - zero) · scale; both by channel
//   or whole
//
// 1. A chunk of a product is 48 rows times 96 columns, or 32 where there are few. Codes become 16-bit
//    differences in scratch memory: rows of a as they lie, columns of b by eight in pairs of rows, so
//    that a 16-bit dot product of pairs leaves a column a lane (gen/integer_tiles.ts); where V8 joins vectors, in planes.
// 2. Products of 9-bit differences are below 2^17, pairs below 2^18: 32 bits hold K up to 2^14 and
//    more.
import { joins } from "../machine/joining";
import { addressAt, chunksOf, min, nextChunk, thread, u32At } from "../machine/runtime";
import { integerTiles, joinedIntegerTiles } from "../generated/integer_tiles";
import {
  DEQUANTIZE_CHANNELS, DEQUANTIZE_COUNT, DEQUANTIZE_PLACES, DEQUANTIZE_SCALE, DEQUANTIZE_TYPE, DEQUANTIZE_X,
  DEQUANTIZE_Y, DEQUANTIZE_ZERO, MATMUL_INTEGER_A, MATMUL_INTEGER_A_SIGNED, MATMUL_INTEGER_A_ZERO,
  MATMUL_INTEGER_B, MATMUL_INTEGER_BATCH, MATMUL_INTEGER_B_BATCH, MATMUL_INTEGER_B_SIGNED, MATMUL_INTEGER_B_ZERO,
  MATMUL_INTEGER_B_ZEROS, MATMUL_INTEGER_COLUMNS, MATMUL_INTEGER_INNER, MATMUL_INTEGER_ROWS, MATMUL_INTEGER_SCRATCH,
  MATMUL_INTEGER_SCRATCH_BYTES, MATMUL_INTEGER_Y, QUANTIZE_CHANNELS, QUANTIZE_COUNT, QUANTIZE_PLACES,
  QUANTIZE_RANGE_COUNT, QUANTIZE_RANGE_PARTIALS, QUANTIZE_RANGE_SCALE, QUANTIZE_RANGE_X, QUANTIZE_RANGE_Y,
  QUANTIZE_RANGE_ZERO, QUANTIZE_SCALE, QUANTIZE_SIGNED, QUANTIZE_X, QUANTIZE_Y, QUANTIZE_ZERO, RANGE_PARTIALS_COUNT,
  RANGE_PARTIALS_PARTIALS, RANGE_PARTIALS_X,
} from "../generated/opcodes";

const TILE_ROWS: u32 = 48;
const TILE_COLUMNS: u32 = 32;
/** Columns of a chunk, where so many chunks remain: rows become differences once a chunk. */
const WIDE_COLUMNS: u32 = 96;
const ENOUGH_CHUNKS: u32 = 32;
/** More rows repay a joined tile, which takes eight. */
const FEW_ROWS: u32 = 6;

@inline export function codeAt(address: usize, signed: u32): i32 {
  return signed ? <i32>load<i8>(address) : <i32>load<u8>(address);
}

export function matmul_integer(ip: usize): void {
  const rows = u32At(ip, MATMUL_INTEGER_ROWS), columns = u32At(ip, MATMUL_INTEGER_COLUMNS);
  const inner = u32At(ip, MATMUL_INTEGER_INNER);
  const rowTiles = chunksOf(rows, TILE_ROWS), tallTiles = u32At(ip, MATMUL_INTEGER_BATCH) * rowTiles;
  const wide = tallTiles * chunksOf(columns, WIDE_COLUMNS) >= ENOUGH_CHUNKS;
  const most = wide ? WIDE_COLUMNS : TILE_COLUMNS, columnTiles = chunksOf(columns, most);
  const total = tallTiles * columnTiles, planes = joins() && rows > FEW_ROWS;
  const scratch = addressAt(ip, MATMUL_INTEGER_SCRATCH) + <usize>thread * u32At(ip, MATMUL_INTEGER_SCRATCH_BYTES);
  // Pairs of rows: an odd last one is paired with zeros.
  const pairs = (inner + 1) >> 1, rowBytes = <usize>pairs << 2;
  const left = scratch, right = left + <usize>TILE_ROWS * rowBytes, edge = right + 8 * rowBytes;
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    let rest = <u32>c;
    const column = (rest % columnTiles) * most; rest /= columnTiles;
    const row = (rest % rowTiles) * TILE_ROWS, item = rest / rowTiles;
    const height = min(TILE_ROWS, rows - row), width = min(most, columns - column);
    const zero = u32At(ip, MATMUL_INTEGER_A_ZERO);
    const signed = u32At(ip, MATMUL_INTEGER_A_SIGNED), aZero = zero ? codeAt(<usize>zero, signed) : 0;
    const a = addressAt(ip, MATMUL_INTEGER_A) + (<usize>item * rows + row) * inner;
    for (let r: u32 = 0; r < height; r++) {
      differences(a + <usize>r * inner, inner, signed, aZero, left + <usize>r * rowBytes);
    }
    const b = addressAt(ip, MATMUL_INTEGER_B) + <usize>item * u32At(ip, MATMUL_INTEGER_B_BATCH) + column;
    const y = addressAt(ip, MATMUL_INTEGER_Y) + (((<usize>item * rows + row) * columns + column) << 2);
    for (let first: u32 = 0; first < width; first += 8) {
      const lanes = min(8, width - first);
      packPairs(ip, b + first, column + first, lanes, planes, right);
      multiplyPanel(height, left, rowBytes, pairs, planes, right, y + (<usize>first << 2), <usize>columns << 2, lanes, edge);
    }
  }
}

/** Rows times a panel; a ragged edge goes through scratch memory. */
function multiplyPanel(
  rows: u32, left: usize, rowBytes: usize, pairs: u32, planes: bool, panel: usize, y: usize, outStride: usize,
  lanes: u32, edge: usize,
): void {
  const whole = lanes == 8, out = whole ? y : edge, stride: usize = whole ? outStride : 32;
  for (let r: u32 = 0; r < rows; r++) memory.fill(out + <usize>r * stride, 0, 32);
  if (planes) joinedIntegerTiles(rows, left, rowBytes, pairs, panel, out, stride);
  else integerTiles(rows, left, rowBytes, pairs, panel, out, stride);
  for (let r: u32 = 0; r < rows && !whole; r++) {
    memory.copy(y + <usize>r * outStride, edge + (<usize>r << 5), <usize>lanes << 2);
  }
}

/** A row of codes less their zero, 16 bit each; one more, 0, where the count is odd. */
export function differences(x: usize, count: u32, signed: u32, zero: i32, out: usize): void {
  const z = i16x8.splat(<i16>zero);
  let i: u32 = 0;
  for (; i + 8 <= count; i += 8, x += 8, out += 16) {
    v128.store(out, i16x8.sub(signed ? v128.load8x8_s(x) : v128.load8x8_u(x), z));
  }
  for (; i < count; i++, x++, out += 2) store<i16>(out, <i16>(codeAt(x, signed) - zero));
  if (count & 1) store<i16>(out, 0);
}

/** Eight columns in pairs of rows: (row 0, row 1) of columns 0 to 3, then of 4 to 7; or row 0 of all, then row 1. */
function packPairs(ip: usize, b: usize, column: u32, lanes: u32, planes: bool, out: usize): void {
  const columns = <usize>u32At(ip, MATMUL_INTEGER_COLUMNS), inner = u32At(ip, MATMUL_INTEGER_INNER);
  const signed = u32At(ip, MATMUL_INTEGER_B_SIGNED), zeros = u32At(ip, MATMUL_INTEGER_B_ZEROS);
  const zeroAt = addressAt(ip, MATMUL_INTEGER_B_ZERO);
  let z = i16x8.splat(0);
  if (zeros == 1) z = i16x8.splat(<i16>codeAt(zeroAt, signed));
  if (lanes == 8) {
    if (zeros > 1) z = signed ? v128.load8x8_s(zeroAt + column) : v128.load8x8_u(zeroAt + column);
    for (let k: u32 = 0; k < inner; k += 2, b += 2 * columns, out += 32) {
      const top = i16x8.sub(signed ? v128.load8x8_s(b) : v128.load8x8_u(b), z);
      let bottom = i16x8.splat(0);
      if (k + 1 < inner) bottom = i16x8.sub(signed ? v128.load8x8_s(b + columns) : v128.load8x8_u(b + columns), z);
      if (planes) { v128.store(out, top); v128.store(out, bottom, 16); continue; }
      v128.store(out, i8x16.shuffle(top, bottom, 0, 1, 16, 17, 2, 3, 18, 19, 4, 5, 20, 21, 6, 7, 22, 23));
      v128.store(out, i8x16.shuffle(top, bottom, 8, 9, 24, 25, 10, 11, 26, 27, 12, 13, 28, 29, 14, 15, 30, 31), 16);
    }
    return;
  }
  // Bytes from lane to lane, and from row to row of a pair.
  const apart: usize = planes ? 2 : 4, below: usize = planes ? 16 : 2;
  for (let k: u32 = 0; k < inner + (inner & 1); k++, b += columns) {
    for (let lane: u32 = 0; lane < 8; lane++) {
      let value: i32 = 0;
      if (lane < lanes && k < inner) {
        value = codeAt(b + lane, signed);
        if (zeros) value -= codeAt(zeroAt + (zeros > 1 ? column + lane : 0), signed);
      }
      store<i16>(out + (<usize>(k >> 1) << 5) + lane * apart + (k & 1) * below, <i16>value);
    }
  }
}

const PARTS: u32 = 64;

export function range_partials(ip: usize): void {
  const count = u32At(ip, RANGE_PARTIALS_COUNT), size = chunksOf(count, PARTS);
  for (let c = nextChunk(ip, PARTS); c >= 0; c = nextChunk(ip, PARTS)) {
    const first = min(count, <u32>c * size), last = min(count, first + size);
    let x = addressAt(ip, RANGE_PARTIALS_X) + (<usize>first << 2);
    const end = x + (<usize>(last - first) << 2);
    let low = f32x4.splat(0), high = low;
    for (; x + 16 <= end; x += 16) {
      const v = v128.load(x);
      low = f32x4.min(low, v);
      high = f32x4.max(high, v);
    }
    let least: f32 = 0, largest: f32 = 0;
    for (; x < end; x += 4) { const v = load<f32>(x); least = Mathf.min(least, v); largest = Mathf.max(largest, v); }
    const out = addressAt(ip, RANGE_PARTIALS_PARTIALS) + (<usize>c << 3);
    store<f32>(out, Mathf.min(least, lowest4(low)));
    store<f32>(out, Mathf.max(largest, highest4(high)), 4);
  }
}

@inline function lowest4(v: v128): f32 {
  return Mathf.min(
    Mathf.min(f32x4.extract_lane(v, 0), f32x4.extract_lane(v, 1)),
    Mathf.min(f32x4.extract_lane(v, 2), f32x4.extract_lane(v, 3)),
  );
}
@inline function highest4(v: v128): f32 {
  return Mathf.max(
    Mathf.max(f32x4.extract_lane(v, 0), f32x4.extract_lane(v, 1)),
    Mathf.max(f32x4.extract_lane(v, 2), f32x4.extract_lane(v, 3)),
  );
}

const QUANTIZE_CHUNK: u32 = 4096;

export function quantize_range(ip: usize): void {
  const count = u32At(ip, QUANTIZE_RANGE_COUNT);
  // One chunk at least: scale and zero point of nothing have values too.
  const total = chunksOf(count, QUANTIZE_CHUNK) + (count == 0 ? 1 : 0);
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    const partials = addressAt(ip, QUANTIZE_RANGE_PARTIALS);
    let least: f32 = 0, largest: f32 = 0;
    for (let i: u32 = 0; i < PARTS; i++) {
      least = Mathf.min(least, load<f32>(partials + (<usize>i << 3)));
      largest = Mathf.max(largest, load<f32>(partials + (<usize>i << 3), 4));
    }
    const range = largest - least;
    const step: f32 = range == 0 ? 1 : range / <f32>255;
    const origin = f32.nearest(Mathf.min(255, Mathf.max(0, -least / step)));
    if (c == 0) {
      store<f32>(addressAt(ip, QUANTIZE_RANGE_SCALE), step);
      store<u8>(addressAt(ip, QUANTIZE_RANGE_ZERO), <u8>origin);
    }
    const first = <u32>c * QUANTIZE_CHUNK, size = min(QUANTIZE_CHUNK, count - first);
    const x = addressAt(ip, QUANTIZE_RANGE_X) + (<usize>first << 2);
    codes(x, addressAt(ip, QUANTIZE_RANGE_Y) + first, size, step, <i32>origin, 0);
  }
}

/** Codes of a run with one scale. */
function codes(x: usize, y: usize, count: u32, step: f32, zero: i32, signed: u32): void {
  const s = f32x4.splat(step), z = i32x4.splat(zero);
  let i: u32 = 0;
  for (; i + 16 <= count; i += 16, x += 64, y += 16) {
    const a = i16x8.narrow_i32x4_s(code4(x, s, z), code4(x + 16, s, z));
    const b = i16x8.narrow_i32x4_s(code4(x + 32, s, z), code4(x + 48, s, z));
    v128.store(y, signed ? i8x16.narrow_i16x8_s(a, b) : i8x16.narrow_i16x8_u(a, b));
  }
  const low: i32 = signed ? -128 : 0, high: i32 = signed ? 127 : 255;
  for (; i < count; i++, x += 4, y++) {
    const code = i32x4.extract_lane(code4of(f32x4.splat(load<f32>(x)), s, z), 0);
    store<u8>(y, <u8>(code < low ? low : code > high ? high : code));
  }
}

@inline function code4(x: usize, s: v128, z: v128): v128 { return code4of(v128.load(x), s, z); }
@inline function code4of(v: v128, s: v128, z: v128): v128 {
  const rounded = i32x4.trunc_sat_f32x4_s(f32x4.nearest(f32x4.div(v, s)));
  // Far beyond the codes, where adding the zero point could wrap, the sign is all that counts.
  const limit = i32x4.splat(0x10000);
  return i32x4.add(i32x4.max_s(i32x4.min_s(rounded, limit), i32x4.neg(limit)), z);
}

export function quantize(ip: usize): void {
  const count = u32At(ip, QUANTIZE_COUNT), places = u32At(ip, QUANTIZE_PLACES), channels = u32At(ip, QUANTIZE_CHANNELS);
  const signed = u32At(ip, QUANTIZE_SIGNED), zeros = addressAt(ip, QUANTIZE_ZERO), total = runsOf(count, places, channels);
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    const first = channels > 1 ? <u32>c * places : <u32>c * QUANTIZE_CHUNK;
    const size = channels > 1 ? places : min(QUANTIZE_CHUNK, count - first), channel = channels > 1 ? <u32>c % channels : 0;
    const step = load<f32>(addressAt(ip, QUANTIZE_SCALE) + (<usize>channel << 2));
    const zero = zeros ? codeAt(zeros + channel, signed) : 0;
    codes(addressAt(ip, QUANTIZE_X) + (<usize>first << 2), addressAt(ip, QUANTIZE_Y) + first, size, step, zero, signed);
  }
}

/** Runs with one scale: those of a channel, or pieces of the whole. */
@inline function runsOf(count: u32, places: u32, channels: u32): u32 {
  if (channels <= 1) return chunksOf(count, QUANTIZE_CHUNK);
  return places == 0 ? 0 : count / places;
}

/** Types of codes: 0 unsigned and 1 signed bytes, 2 signed words of 32 bits. */
export function dequantize(ip: usize): void {
  const count = u32At(ip, DEQUANTIZE_COUNT), places = u32At(ip, DEQUANTIZE_PLACES);
  const channels = u32At(ip, DEQUANTIZE_CHANNELS);
  const type = u32At(ip, DEQUANTIZE_TYPE), zeros = addressAt(ip, DEQUANTIZE_ZERO), total = runsOf(count, places, channels);
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    const first = channels > 1 ? <u32>c * places : <u32>c * QUANTIZE_CHUNK;
    const size = channels > 1 ? places : min(QUANTIZE_CHUNK, count - first), channel = channels > 1 ? <u32>c % channels : 0;
    const step = load<f32>(addressAt(ip, DEQUANTIZE_SCALE) + (<usize>channel << 2));
    const y = addressAt(ip, DEQUANTIZE_Y) + (<usize>first << 2);
    if (type == 2) {
      const zero = zeros ? load<i32>(zeros + (<usize>channel << 2)) : 0;
      numbersOfWords(addressAt(ip, DEQUANTIZE_X) + (<usize>first << 2), y, size, step, zero);
    } else {
      const zero = zeros ? codeAt(zeros + channel, type) : 0;
      numbersOfBytes(addressAt(ip, DEQUANTIZE_X) + first, y, size, step, zero, type);
    }
  }
}

function numbersOfWords(x: usize, y: usize, count: u32, step: f32, zero: i32): void {
  const s = f32x4.splat(step), z = i32x4.splat(zero), end = x + (<usize>count << 2);
  for (; x + 16 <= end; x += 16, y += 16) {
    v128.store(y, f32x4.mul(f32x4.convert_i32x4_s(i32x4.sub(v128.load(x), z)), s));
  }
  for (; x < end; x += 4, y += 4) store<f32>(y, <f32>(load<i32>(x) - zero) * step);
}

function numbersOfBytes(x: usize, y: usize, count: u32, step: f32, zero: i32, signed: u32): void {
  const s = f32x4.splat(step), z = i16x8.splat(<i16>zero);
  let i: u32 = 0;
  for (; i + 8 <= count; i += 8, x += 8, y += 32) {
    const v = i16x8.sub(signed ? v128.load8x8_s(x) : v128.load8x8_u(x), z);
    v128.store(y, f32x4.mul(f32x4.convert_i32x4_s(i32x4.extend_low_i16x8_s(v)), s));
    v128.store(y, f32x4.mul(f32x4.convert_i32x4_s(i32x4.extend_high_i16x8_s(v)), s), 16);
  }
  for (; i < count; i++, x++, y += 4) store<f32>(y, <f32>(codeAt(x, signed) - zero) * step);
}
