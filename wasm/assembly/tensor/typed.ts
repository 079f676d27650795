// Elements of any type: conversions, and arithmetic on whole numbers. These are masks, indices and lengths,
// so most loops go element by element through 64 bits; only float16 and int32 to and from float32, which
// whole models consist of, have vector loops.
//
// 1. Numbers of element types are those of ELEMENT_KINDS (wasm/opcodes_onnx.ts): below 16 whole numbers.
//    Those of 64 bits without a sign are their bits, which the few functions that can tell look at.
// 2. A float becomes a whole number by cutting; what does not fit is as `cast` of the engine defines it.
import { addressAt, chunksOf, min as least, nextChunk, u32At } from "../machine/runtime";
import { storeHalf4, toHalf4 } from "../half";
import { FIRST_TEST } from "../generated/elementwise_runs";
import { combineDoubles, combineIntegers, mapDouble, mapInteger, testDoubles } from "../generated/typed_functions";
import { rowOffset, rowsOf } from "./elementwise";
import {
  ACCUMULATE_EXCLUSIVE, ACCUMULATE_INNER, ACCUMULATE_LENGTH, ACCUMULATE_OUTER, ACCUMULATE_PRODUCTS, ACCUMULATE_REVERSE,
  ACCUMULATE_TYPE, ACCUMULATE_X, ACCUMULATE_Y, COMBINE_INTEGERS_A, COMBINE_INTEGERS_A0, COMBINE_INTEGERS_A5,
  COMBINE_INTEGERS_B, COMBINE_INTEGERS_B0, COMBINE_INTEGERS_B5, COMBINE_INTEGERS_KIND, COMBINE_INTEGERS_N0,
  COMBINE_INTEGERS_N5, COMBINE_INTEGERS_TYPE, COMBINE_INTEGERS_Y, CONTROL_STATUS, CONVERT_COUNT, CONVERT_FROM, CONVERT_TO,
  CONVERT_X, CONVERT_Y, COUNT_UP_COUNT, COUNT_UP_DELTA, COUNT_UP_START, COUNT_UP_TYPE, COUNT_UP_Y, MAP_INTEGERS_COUNT,
  MAP_INTEGERS_KIND, MAP_INTEGERS_TYPE, MAP_INTEGERS_X, MAP_INTEGERS_Y, REDUCE_INTEGERS_INNER, REDUCE_INTEGERS_KIND,
  REDUCE_INTEGERS_LENGTH, REDUCE_INTEGERS_OUTER, REDUCE_INTEGERS_TYPE, REDUCE_INTEGERS_X, REDUCE_INTEGERS_Y,
  SET_NUMBER_HIGH, SET_NUMBER_LOW, SET_NUMBER_TYPE, SET_NUMBER_Y,
} from "../generated/opcodes";

const CHUNK: u32 = 4096;
const U8: u32 = 1, I32: u32 = 4, U32: u32 = 5, I64: u32 = 6, BOOL: u32 = 7, U64: u32 = 8, I4: u32 = 9, U4: u32 = 10, I2: u32 = 11, U2: u32 = 12;
const F64: u32 = 17, F16: u32 = 18;
/** The first float. */
export const F32: u32 = 16;

/** Bytes of an element. */
export function bytesOf(type: u32): usize {
  if (type == I64 || type == U64 || type == F64) return 8;
  if (type == I32 || type == 5 || type == F32) return 4;
  return type == 2 || type == 3 || type >= F16 ? 2 : 1;
}

/** What turns the order of 64 unsigned bits into that of signed ones. */
@inline export function signOf(type: u32): i64 { return type == U64 ? i64.MIN_VALUE : 0; }

/** A whole number. */
export function loadInteger(type: u32, address: usize): i64 {
  switch (type) {
    case 0: case I4: case I2: return <i64>load<i8>(address);
    case 2: return <i64>load<i16>(address);
    case 3: return <i64>load<u16>(address);
    case 4: return <i64>load<i32>(address);
    case 5: return <i64>load<u32>(address);
    case I64: case U64: return load<i64>(address);
    default: return <i64>load<u8>(address);
  }
}

/** Stores the low bits. */
export function storeInteger(type: u32, address: usize, value: i64): void {
  switch (type) {
    case 2: case 3: store<u16>(address, <u16>value); return;
    case 4: case 5: store<u32>(address, <u32>value); return;
    case I64: case U64: store<i64>(address, value); return;
    case BOOL: store<u8>(address, value != 0 ? 1 : 0); return;
    case I4: store<i8>(address, <i8>(value << 60 >> 60)); return;
    case I2: store<i8>(address, <i8>(value << 62 >> 62)); return;
    case U4: store<u8>(address, <u8>value & 15); return;
    case U2: store<u8>(address, <u8>value & 3); return;
    default: store<u8>(address, <u8>value);
  }
}

@inline function halfToFloat(bits: u32): f32 {
  const sign = (bits & 0x8000) << 16;
  if ((bits & 0x7c00) == 0x7c00) return reinterpret<f32>(sign | 0x7f800000 | ((bits & 0x3ff) << 13));
  return reinterpret<f32>(((bits & 0x7fff) << 13) | sign) * 5.192296858534828e33; // 2^112
}

/** A float, exactly. */
export function loadFloat(type: u32, address: usize): f64 {
  if (type == F32) return <f64>load<f32>(address);
  if (type == F64) return load<f64>(address);
  if (type == F16) return <f64>halfToFloat(load<u16>(address));
  return <f64>reinterpret<f32>(<u32>load<u16>(address) << 16);
}

/** Stores a number, rounded to nearest even. */
export function storeFloat(type: u32, address: usize, value: f64): void {
  if (type == F32) { store<f32>(address, <f32>value); return; }
  if (type == F64) { store<f64>(address, value); return; }
  if (type == F16) {
    store<u16>(address, <u16>i32x4.extract_lane(toHalf4(f32x4.splat(<f32>value)), 0));
    return;
  }
  const bits = reinterpret<u32>(<f32>value);
  if ((bits & 0x7fffffff) > 0x7f800000) store<u16>(address, <u16>((bits >> 16) | 0x40));
  else store<u16>(address, <u16>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16));
}

/** Cut towards 0; all that does not fit, NaN too, is the least integer. */
@inline function whole64(value: f64): i64 {
  return abs<f64>(value) < 9223372036854775808.0 ? <i64>value : i64.MIN_VALUE;
}

@inline function whole32(value: f64): i64 {
  return abs<f64>(trunc<f64>(value) + 0.5) < 2147483648.0 ? <i64>value : <i64>i32.MIN_VALUE;
}

/** As `cast` of the engine defines it. */
function whole(to: u32, value: f64): i64 {
  if (to == U64 && value >= 9223372036854775808.0) return whole64(value - 9223372036854775808.0) ^ i64.MIN_VALUE;
  if (to == U32 && value >= 2147483648.0) return whole32(value - 2147483648.0) ^ <i64>0x80000000;
  return to == I64 || to == U64 ? whole64(value) : whole32(value);
}

function convertOne(from: u32, to: u32, x: usize, y: usize): void {
  if (from >= F32) {
    const value = loadFloat(from, x);
    if (to >= F32) storeFloat(to, y, value);
    else if (to == BOOL) store<u8>(y, value != 0 ? 1 : 0);
    else storeInteger(to, y, whole(to, value));
  } else {
    const value = loadInteger(from, x);
    if (to >= F32) storeFloat(to, y, from == U64 ? <f64><u64>value : <f64>value);
    else storeInteger(to, y, value);
  }
}

@inline function widenHalf4(address: usize): v128 {
  const moved = v128.and(i32x4.shl(v128.load16x4_s(address), 13), i32x4.splat(0x8fffe000));
  const scaled = f32x4.mul(moved, f32x4.splat(5.192296858534828e33));
  const exponent = i32x4.splat(0x0f800000);
  const isSpecial = i32x4.eq(v128.and(moved, exponent), exponent);
  return v128.bitselect(v128.or(moved, i32x4.splat(0x7f800000)), scaled, isSpecial);
}

export function convert(ip: usize): void {
  const count = u32At(ip, CONVERT_COUNT), from = u32At(ip, CONVERT_FROM), to = u32At(ip, CONVERT_TO);
  const total = chunksOf(count, CHUNK), sx = bytesOf(from), sy = bytesOf(to);
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    const n = least(CHUNK, count - <u32>c * CHUNK);
    const x = addressAt(ip, CONVERT_X) + <usize>c * CHUNK * sx, y = addressAt(ip, CONVERT_Y) + <usize>c * CHUNK * sy;
    let i: u32 = 0;
    if (from == F32 && to == F16) {
      for (; i + 4 <= n; i += 4) storeHalf4(y + (<usize>i << 1), toHalf4(v128.load(x + (<usize>i << 2))));
    } else if (from == F16 && to == F32) {
      for (; i + 4 <= n; i += 4) v128.store(y + (<usize>i << 2), widenHalf4(x + (<usize>i << 1)));
    } else if (from == I32 && to == F32) {
      for (; i + 4 <= n; i += 4) v128.store(y + (<usize>i << 2), f32x4.convert_i32x4_s(v128.load(x + (<usize>i << 2))));
    } else if (to == F32 && from == I64) {
      for (; i < n; i++) store<f32>(y + (<usize>i << 2), <f32>load<i64>(x + (<usize>i << 3)));
    } else if (to == F32 && (from == BOOL || from == U8)) {
      for (; i < n; i++) store<f32>(y + (<usize>i << 2), <f32>load<u8>(x + i));
    } else if (from == F32 && to == I64) {
      for (; i < n; i++) store<i64>(y + (<usize>i << 3), whole64(load<f32>(x + (<usize>i << 2))));
    } else if (from == I64 && to == I32) {
      for (; i < n; i++) store<i32>(y + (<usize>i << 2), <i32>load<i64>(x + (<usize>i << 3)));
    } else if (from == I32 && to == I64) {
      for (; i < n; i++) store<i64>(y + (<usize>i << 3), <i64>load<i32>(x + (<usize>i << 2)));
    }
    for (; i < n; i++) convertOne(from, to, x + i * sx, y + i * sy);
  }
}

/** Whether a divisor is 0, which fails the step. */
@inline function isZero(b: i64): bool {
  if (b == 0) atomic.or<u32>(CONTROL_STATUS, 8);
  return b == 0;
}

/** Cut towards 0. */
export function quotient(type: u32, a: i64, b: i64): i64 {
  if (isZero(b)) return 0;
  if (type == U64) return <i64>(<u64>a / <u64>b);
  // The least number has no opposite; a division would trap.
  return b == -1 ? -a : a / b;
}

/** With the sign of the dividend. */
export function remainder(type: u32, a: i64, b: i64): i64 {
  if (isZero(b)) return 0;
  return type == U64 ? <i64>(<u64>a % <u64>b) : a % b;
}

/** With the sign of the divisor. */
export function floorMod(type: u32, a: i64, b: i64): i64 {
  const rest = remainder(type, a, b);
  return type != U64 && rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

export function combine_integers(ip: usize): void {
  const rows = rowsOf(ip, 5, COMBINE_INTEGERS_N0), n5 = u32At(ip, COMBINE_INTEGERS_N5);
  const type = u32At(ip, COMBINE_INTEGERS_TYPE), sign = signOf(type);
  const group: u32 = n5 == 0 || n5 > CHUNK ? 1 : CHUNK / n5, total = chunksOf(rows, group);
  const kind = u32At(ip, COMBINE_INTEGERS_KIND), result = kind >= FIRST_TEST ? BOOL : type;
  const sa = addressAt(ip, COMBINE_INTEGERS_A5), sb = addressAt(ip, COMBINE_INTEGERS_B5), sy = bytesOf(result);
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    const last = least(rows, <u32>c * group + group);
    for (let row = <u32>c * group; row < last; row++) {
      let a = addressAt(ip, COMBINE_INTEGERS_A) + rowOffset(ip, row, 5, COMBINE_INTEGERS_N0, COMBINE_INTEGERS_A0);
      let b = addressAt(ip, COMBINE_INTEGERS_B) + rowOffset(ip, row, 5, COMBINE_INTEGERS_N0, COMBINE_INTEGERS_B0);
      let y = addressAt(ip, COMBINE_INTEGERS_Y) + <usize>row * n5 * sy;
      if (type >= F32) {
        for (let i: u32 = 0; i < n5; i++, a += sa, b += sb, y += sy) {
          const p = loadFloat(type, a), q = loadFloat(type, b);
          if (kind >= FIRST_TEST) store<u8>(y, testDoubles(kind, p, q));
          else storeFloat(type, y, combineDoubles(kind, p, q));
        }
        continue;
      }
      for (let i: u32 = 0; i < n5; i++, a += sa, b += sb, y += sy) {
        storeInteger(result, y, combineIntegers(kind, type, sign, loadInteger(type, a), loadInteger(type, b)));
      }
    }
  }
}

export function map_integers(ip: usize): void {
  const count = u32At(ip, MAP_INTEGERS_COUNT), kind = u32At(ip, MAP_INTEGERS_KIND), type = u32At(ip, MAP_INTEGERS_TYPE);
  const total = chunksOf(count, CHUNK), bytes = bytesOf(type);
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    const last = least(count, <u32>c * CHUNK + CHUNK);
    for (let i = <u32>c * CHUNK; i < last; i++) {
      const x = addressAt(ip, MAP_INTEGERS_X) + <usize>i * bytes, y = addressAt(ip, MAP_INTEGERS_Y) + <usize>i * bytes;
      if (type >= F32) storeFloat(type, y, mapDouble(kind, loadFloat(type, x)));
      else storeInteger(type, y, mapInteger(kind, loadInteger(type, x)));
    }
  }
}

/** Kinds are those of REDUCE_KINDS; of log Σ exp only the sum, of exponentials shifted by `shift`. */
function reduceFloats(kind: u32, type: u32, x: usize, length: u32, stride: usize, shift: f64): f64 {
  let total: f64 = kind == 5 ? 1 : kind == 3 ? -Infinity : kind == 4 ? Infinity : 0;
  for (let i: u32 = 0; i < length; i++, x += stride) {
    const value = loadFloat(type, x);
    if (kind == 3) total = max<f64>(total, value);
    else if (kind == 4) total = min<f64>(total, value);
    else if (kind == 5) total *= value;
    else if (kind == 6) total += abs<f64>(value);
    else if (kind == 7 || kind == 8) total += value * value;
    else total += kind == 10 ? NativeMath.exp(value - shift) : value;
  }
  return total;
}

function reduceFloatLine(kind: u32, type: u32, x: usize, length: u32, stride: usize): f64 {
  let shift: f64 = 0;
  if (kind == 10) {
    const largest = reduceFloats(3, type, x, length, stride, 0);
    if (abs<f64>(largest) < Infinity) shift = largest;
  }
  const total = reduceFloats(kind, type, x, length, stride, shift);
  if (kind == 2) return total / <f64>length;
  if (kind == 7) return sqrt<f64>(total);
  return kind >= 9 ? NativeMath.log(total) + shift : total;
}

export function reduce_integers(ip: usize): void {
  const inner = u32At(ip, REDUCE_INTEGERS_INNER), length = u32At(ip, REDUCE_INTEGERS_LENGTH);
  const lines = u32At(ip, REDUCE_INTEGERS_OUTER) * inner, kind = u32At(ip, REDUCE_INTEGERS_KIND);
  const type = u32At(ip, REDUCE_INTEGERS_TYPE), bytes = bytesOf(type), stride = inner * bytes;
  const sign = kind == 3 || kind == 4 ? signOf(type) : 0;
  for (let c = nextChunk(ip, lines); c >= 0; c = nextChunk(ip, lines)) {
    let x = addressAt(ip, REDUCE_INTEGERS_X) + (<usize>(<u32>c / inner) * length * inner + <u32>c % inner) * bytes;
    if (type >= F32) {
      storeFloat(type, addressAt(ip, REDUCE_INTEGERS_Y) + <usize>c * bytes, reduceFloatLine(kind, type, x, length, stride));
      continue;
    }
    let total: i64 = kind == 5 ? 1 : kind == 3 ? i64.MIN_VALUE : kind == 4 ? i64.MAX_VALUE : 0;
    for (let i: u32 = 0; i < length; i++, x += stride) {
      const value = loadInteger(type, x) ^ sign;
      if (kind == 3) total = value > total ? value : total;
      else if (kind == 4) total = value < total ? value : total;
      else if (kind == 5) total *= value;
      else total += kind == 8 ? value * value : value;
    }
    storeInteger(type, addressAt(ip, REDUCE_INTEGERS_Y) + <usize>c * bytes, total ^ sign);
  }
}

export function count_up(ip: usize): void {
  const count = u32At(ip, COUNT_UP_COUNT), type = u32At(ip, COUNT_UP_TYPE), total = chunksOf(count, CHUNK);
  const step = bytesOf(type), start = addressAt(ip, COUNT_UP_START), delta = addressAt(ip, COUNT_UP_DELTA);
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    const last = least(count, <u32>c * CHUNK + CHUNK);
    for (let i = <u32>c * CHUNK; i < last; i++) {
      const y = addressAt(ip, COUNT_UP_Y) + <usize>i * step;
      if (type >= F32) storeFloat(type, y, loadFloat(type, start) + <f64>i * loadFloat(type, delta));
      else storeInteger(type, y, loadInteger(type, start) + <i64>i * loadInteger(type, delta));
    }
  }
}

export function set_number(ip: usize): void {
  const type = u32At(ip, SET_NUMBER_TYPE);
  const value = <i64>u32At(ip, SET_NUMBER_HIGH) << 32 | <i64>u32At(ip, SET_NUMBER_LOW);
  for (let c = nextChunk(ip, 1); c >= 0; c = nextChunk(ip, 1)) {
    if (type >= F32) storeFloat(type, addressAt(ip, SET_NUMBER_Y), <f64>value);
    else storeInteger(type, addressAt(ip, SET_NUMBER_Y), value);
  }
}

export function accumulate(ip: usize): void {
  const inner = u32At(ip, ACCUMULATE_INNER), length = u32At(ip, ACCUMULATE_LENGTH), type = u32At(ip, ACCUMULATE_TYPE);
  const lines = u32At(ip, ACCUMULATE_OUTER) * inner, products = u32At(ip, ACCUMULATE_PRODUCTS);
  const exclusive = u32At(ip, ACCUMULATE_EXCLUSIVE), reverse = u32At(ip, ACCUMULATE_REVERSE);
  const bytes = bytesOf(type);
  for (let c = nextChunk(ip, lines); c >= 0; c = nextChunk(ip, lines)) {
    const first = (<u32>c / inner * length * inner) + <u32>c % inner;
    let exact: i64 = products ? 1 : 0;
    let real: f64 = products ? 1 : 0;
    for (let i: u32 = 0; i < length; i++) {
      const at = <usize>(first + (reverse ? length - 1 - i : i) * inner) * bytes;
      const x = addressAt(ip, ACCUMULATE_X) + at, y = addressAt(ip, ACCUMULATE_Y) + at;
      if (type >= F32) {
        const value = loadFloat(type, x);
        if (exclusive) storeFloat(type, y, real);
        real = products ? real * value : real + value;
        if (!exclusive) storeFloat(type, y, real);
      } else {
        const value = loadInteger(type, x);
        if (exclusive) storeInteger(type, y, exact);
        exact = products ? exact * value : exact + value;
        if (!exclusive) storeInteger(type, y, exact);
      }
    }
  }
}
