// Functions of single values, and of pairs with broadcasting.
//
//   glu:        y = act(gate) · up              activation: y = act(x)
//   scale:      y = x · factor                  softcap:    y = cap · tanh(x / cap)
//   binary_*:   y = a + b | a · b
//   clamped_glu: y = g · sigmoid(alpha · g) · (u + 1), g = min(gate, limit), u = clamp(up, ±limit)
//   join_columns: rows of a, each continued by that of b
//
// kinds of activation: 0 silu, 1 gelu_tanh, 2 gelu (erf), 3 relu, 4 sigmoid. kinds of binary: 0 add, 1 mul.
// 1. A chunk is 4,096 values; the last vector of a tail goes through a 16-byte window on the stack of
//    scalars, never past the end of a tensor.
// 2. gelu_tanh is x · sigmoid(2u), which is the same and accurate for negative x.
import { addressAt, chunksOf, f32At, min, nextChunk, u32At } from "../machine/runtime";
import { coarseGelu4, gelu4, sigmoid4, tanh4 } from "../exp";
import { madd } from "../simd";
import {
  ACTIVATION_COUNT, ACTIVATION_KIND, ACTIVATION_X, ACTIVATION_Y, BINARY_FLAT_A, BINARY_FLAT_B,
  BINARY_FLAT_CHUNK, BINARY_FLAT_COUNT, BINARY_FLAT_KIND, BINARY_FLAT_Y, BINARY_ROWS_A, BINARY_ROWS_B, BINARY_ROWS_COLUMNS,
  BINARY_ROWS_KIND, BINARY_ROWS_ROWS, BINARY_ROWS_Y, BINARY_STRIDED_A, BINARY_STRIDED_A0, BINARY_STRIDED_A1,
  BINARY_STRIDED_A2, BINARY_STRIDED_A3, BINARY_STRIDED_B, BINARY_STRIDED_B0, BINARY_STRIDED_B1,
  BINARY_STRIDED_B2, BINARY_STRIDED_B3, BINARY_STRIDED_KIND, BINARY_STRIDED_N0, BINARY_STRIDED_N1,
  BINARY_STRIDED_N2, BINARY_STRIDED_N3, BINARY_STRIDED_Y, CLAMPED_GLU_ALPHA, CLAMPED_GLU_COUNT, CLAMPED_GLU_GATE,
  CLAMPED_GLU_LIMIT, CLAMPED_GLU_UP, CLAMPED_GLU_Y, GLU_COUNT, GLU_GATE, GLU_KIND, GLU_UP, GLU_Y,
  JOIN_COLUMNS_A, JOIN_COLUMNS_A_BYTES, JOIN_COLUMNS_B,
  JOIN_COLUMNS_B_BYTES, JOIN_COLUMNS_ROWS, JOIN_COLUMNS_Y, SCALE_COUNT, SCALE_FACTOR, SCALE_X, SCALE_Y, SOFTCAP_CAP, SOFTCAP_COUNT, SOFTCAP_X, SOFTCAP_Y,
} from "../generated/opcodes";

const CHUNK: u32 = 4096;

/** The activation of four values. */
@inline function activate(kind: u32, x: v128): v128 {
  if (kind == 0) return f32x4.mul(x, sigmoid4(x));
  if (kind == 1) {
    const z = f32x4.mul(x, x);
    const u2 = f32x4.mul(x, madd(z, f32x4.splat(0.07135481282553), f32x4.splat(1.59576912160573)));
    return f32x4.mul(x, sigmoid4(u2));
  }
  if (kind == 2) return gelu4(x);
  if (kind == 3) return f32x4.pmax(x, f32x4.splat(0));
  return sigmoid4(x);
}

/** Kind of the gelu with erf. */
export const GELU: u32 = 2;

/** gelu, 1e-6 of the largest value: for what is rounded to 8 bit at once. A multiple of 4 values. */
export function geluRun(x: usize, y: usize, count: u32): void {
  for (const end = x + 4 * count; x < end; x += 16, y += 16) v128.store(y, coarseGelu4(v128.load(x)));
}

/** Loads 1 to 4 values; the missing ones are 0. */
@inline function loadPart(address: usize, count: u32): v128 {
  if (count >= 4) return v128.load(address);
  let v = v128.load32_zero(address);
  if (count > 1) v = v128.load32_lane(address + 4, v, 1);
  if (count > 2) v = v128.load32_lane(address + 8, v, 2);
  return v;
}

/** Stores the first 1 to 4 values. */
@inline function storePart(address: usize, v: v128, count: u32): void {
  if (count >= 4) { v128.store(address, v); return; }
  v128.store32_lane(address, v, 0);
  if (count > 1) v128.store32_lane(address + 4, v, 1);
  if (count > 2) v128.store32_lane(address + 8, v, 2);
}

/** Whole vectors of a run, two at a time, so that neither waits for its own exponential. */
@inline function gluVectors(kind: u32, gate: usize, up: usize, y: usize, count: u32): void {
  const end = gate + 4 * (count & ~3), even = gate + 4 * (count & ~7);
  for (; gate < even; gate += 32, up += 32, y += 32) {
    const a = activate(kind, v128.load(gate)), b = activate(kind, v128.load(gate, 16));
    v128.store(y, f32x4.mul(a, v128.load(up)));
    v128.store(y, f32x4.mul(b, v128.load(up, 16)), 16);
  }
  if (gate < end) v128.store(y, f32x4.mul(activate(kind, v128.load(gate)), v128.load(up)));
}

/** A run of glu; `y` may be `gate`. */
export function gluRun(kind: u32, gate: usize, up: usize, y: usize, count: u32): void {
  if (kind == 0) gluVectors(0, gate, up, y, count);
  else if (kind == 1) gluVectors(1, gate, up, y, count);
  else gluVectors(kind, gate, up, y, count);
  const at = <usize>(count & ~3) << 2, n = count & 3;
  if (n) storePart(y + at, f32x4.mul(activate(kind, loadPart(gate + at, n)), loadPart(up + at, n)), n);
}

export function glu(ip: usize): void {
  const count = u32At(ip, GLU_COUNT), kind = u32At(ip, GLU_KIND), total = chunksOf(count, 1024);
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    const first = <u32>c * 1024, at = <usize>first << 2, n = min(1024, count - first);
    gluRun(kind, addressAt(ip, GLU_GATE) + at, addressAt(ip, GLU_UP) + at, addressAt(ip, GLU_Y) + at, n);
  }
}

export function clamped_glu(ip: usize): void {
  const count = u32At(ip, CLAMPED_GLU_COUNT), total = chunksOf(count, 1024);
  const limit = f32x4.splat(f32At(ip, CLAMPED_GLU_LIMIT)), alpha = f32x4.splat(f32At(ip, CLAMPED_GLU_ALPHA));
  const one = f32x4.splat(1), low = f32x4.neg(limit);
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    const end = min(count, <u32>c * 1024 + 1024);
    for (let i = <u32>c * 1024; i < end; i += 4) {
      const at = <usize>i << 2, n = end - i;
      const g = f32x4.pmin(loadPart(addressAt(ip, CLAMPED_GLU_GATE) + at, n), limit);
      const u = f32x4.pmax(f32x4.pmin(loadPart(addressAt(ip, CLAMPED_GLU_UP) + at, n), limit), low);
      const y = f32x4.mul(f32x4.mul(g, sigmoid4(f32x4.mul(alpha, g))), f32x4.add(u, one));
      storePart(addressAt(ip, CLAMPED_GLU_Y) + at, y, n);
    }
  }
}

export function join_columns(ip: usize): void {
  const rows = u32At(ip, JOIN_COLUMNS_ROWS), total = chunksOf(rows, 32);
  const a = <usize>u32At(ip, JOIN_COLUMNS_A_BYTES), b = <usize>u32At(ip, JOIN_COLUMNS_B_BYTES);
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    const last = min(rows, <u32>c * 32 + 32);
    for (let row = <u32>c * 32; row < last; row++) {
      const y = addressAt(ip, JOIN_COLUMNS_Y) + <usize>row * (a + b);
      memory.copy(y, addressAt(ip, JOIN_COLUMNS_A) + <usize>row * a, a);
      memory.copy(y + a, addressAt(ip, JOIN_COLUMNS_B) + <usize>row * b, b);
    }
  }
}

/** A run of activation; `y` may be `x`. */
export function activationRun(kind: u32, x: usize, y: usize, count: u32): void {
  const whole = <usize>(count & ~3) << 2;
  for (let at: usize = 0; at < whole; at += 16) v128.store(y + at, activate(kind, v128.load(x + at)));
  if (count & 3) storePart(y + whole, activate(kind, loadPart(x + whole, count & 3)), count & 3);
}

export function activation(ip: usize): void {
  const count = u32At(ip, ACTIVATION_COUNT), kind = u32At(ip, ACTIVATION_KIND), total = chunksOf(count, CHUNK);
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    const first = <u32>c * CHUNK, at = <usize>first << 2;
    activationRun(kind, addressAt(ip, ACTIVATION_X) + at, addressAt(ip, ACTIVATION_Y) + at, min(count - first, CHUNK));
  }
}

export function scale(ip: usize): void {
  const count = u32At(ip, SCALE_COUNT), total = chunksOf(count, CHUNK);
  const factor = f32x4.splat(f32At(ip, SCALE_FACTOR));
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    const end = min(count, <u32>c * CHUNK + CHUNK);
    for (let i = <u32>c * CHUNK; i < end; i += 4) {
      const at = <usize>i << 2;
      storePart(addressAt(ip, SCALE_Y) + at, f32x4.mul(loadPart(addressAt(ip, SCALE_X) + at, end - i), factor), end - i);
    }
  }
}

export function softcap(ip: usize): void {
  const count = u32At(ip, SOFTCAP_COUNT), total = chunksOf(count, CHUNK);
  const cap = f32x4.splat(f32At(ip, SOFTCAP_CAP));
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    const end = min(count, <u32>c * CHUNK + CHUNK);
    for (let i = <u32>c * CHUNK; i < end; i += 4) {
      const at = <usize>i << 2;
      const x = loadPart(addressAt(ip, SOFTCAP_X) + at, end - i);
      storePart(addressAt(ip, SOFTCAP_Y) + at, f32x4.mul(cap, tanh4(f32x4.div(x, cap))), end - i);
    }
  }
}

@inline function combine(kind: u32, a: v128, b: v128): v128 { return kind ? f32x4.mul(a, b) : f32x4.add(a, b); }

function combineRun(kind: u32, a: usize, b: usize, y: usize, count: u32): void {
  let i: u32 = 0;
  for (; i + 4 <= count; i += 4) {
    const at = <usize>i << 2;
    v128.store(y + at, combine(kind, v128.load(a + at), v128.load(b + at)));
  }
  for (; i < count; i++) {
    const at = <usize>i << 2, p = load<f32>(a + at), q = load<f32>(b + at);
    store<f32>(y + at, kind ? p * q : p + q);
  }
}

/** Equal shapes. */
export function binary_flat(ip: usize): void {
  const count = u32At(ip, BINARY_FLAT_COUNT), chunk = u32At(ip, BINARY_FLAT_CHUNK), total = chunksOf(count, chunk);
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    const first = <u32>c * chunk, at = <usize>first << 2;
    combineRun(
      u32At(ip, BINARY_FLAT_KIND), addressAt(ip, BINARY_FLAT_A) + at, addressAt(ip, BINARY_FLAT_B) + at,
      addressAt(ip, BINARY_FLAT_Y) + at, min(chunk, count - first),
    );
  }
}

/** b is one row for all rows of a. */
export function binary_rows(ip: usize): void {
  const rows = u32At(ip, BINARY_ROWS_ROWS), columns = u32At(ip, BINARY_ROWS_COLUMNS);
  const size: u32 = columns >= CHUNK ? 1 : CHUNK / columns, total = chunksOf(rows, size);
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    const last = min(rows, <u32>c * size + size);
    for (let row = <u32>c * size; row < last; row++) {
      const at = <usize>row * columns * 4;
      combineRun(
        u32At(ip, BINARY_ROWS_KIND), addressAt(ip, BINARY_ROWS_A) + at, addressAt(ip, BINARY_ROWS_B),
        addressAt(ip, BINARY_ROWS_Y) + at, columns,
      );
    }
  }
}

/** Any broadcasting over four dimensions; strides in elements, 0 where a dimension is repeated. */
export function binary_strided(ip: usize): void {
  const n0 = u32At(ip, BINARY_STRIDED_N0), n1 = u32At(ip, BINARY_STRIDED_N1);
  const n2 = u32At(ip, BINARY_STRIDED_N2), n3 = u32At(ip, BINARY_STRIDED_N3);
  const kind = u32At(ip, BINARY_STRIDED_KIND);
  const sa = u32At(ip, BINARY_STRIDED_A3), sb = u32At(ip, BINARY_STRIDED_B3);
  const total = n0 * n1;
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    const i0 = <u32>c / n1, i1 = <u32>c % n1;
    const a1 = i0 * u32At(ip, BINARY_STRIDED_A0) + i1 * u32At(ip, BINARY_STRIDED_A1);
    const b1 = i0 * u32At(ip, BINARY_STRIDED_B0) + i1 * u32At(ip, BINARY_STRIDED_B1);
    let y = addressAt(ip, BINARY_STRIDED_Y) + <usize>c * n2 * n3 * 4;
    for (let i2: u32 = 0; i2 < n2; i2++) {
      let a = addressAt(ip, BINARY_STRIDED_A) + (<usize>(a1 + i2 * u32At(ip, BINARY_STRIDED_A2)) << 2);
      let b = addressAt(ip, BINARY_STRIDED_B) + (<usize>(b1 + i2 * u32At(ip, BINARY_STRIDED_B2)) << 2);
      for (let i3: u32 = 0; i3 < n3; i3++, y += 4, a += <usize>sa << 2, b += <usize>sb << 2) {
        const p = load<f32>(a), q = load<f32>(b);
        store<f32>(y, kind ? p * q : p + q);
      }
    }
  }
}
