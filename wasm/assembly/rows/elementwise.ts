// Gates, and rows side by side.
//
//   glu:        y = act(gate) · up
//   clamped_glu: y = g · sigmoid(alpha · g) · (u + 1), g = min(gate, limit), u = clamp(up, ±limit)
//   join_columns: rows of a, each continued by that of b
//
// 1. Activations are those of functions/unary.ts by their numbers; their loops are generated
//    (gen/elementwise_runs.ts). The last vector of a tail never passes the end of a tensor.
import { addressAt, chunksOf, f32At, min, nextSmallChunk, u32At } from "../machine/runtime";
import { coarseGelu4, sigmoid4 } from "../exp";
import { gluRun } from "../generated/elementwise_runs";
import { loadPart, storePart } from "../tensor/functions";
import {
  CLAMPED_GLU_ALPHA, CLAMPED_GLU_COUNT, CLAMPED_GLU_GATE, CLAMPED_GLU_LIMIT, CLAMPED_GLU_UP, CLAMPED_GLU_Y, GLU_COUNT,
  GLU_GATE, GLU_KIND, GLU_UP, GLU_Y, JOIN_COLUMNS_A, JOIN_COLUMNS_A_BYTES, JOIN_COLUMNS_B, JOIN_COLUMNS_B_BYTES,
  JOIN_COLUMNS_ROWS, JOIN_COLUMNS_Y,
} from "../generated/opcodes";

/** gelu, 1e-6 of the largest value: for what is rounded to 8 bit at once. A multiple of 4 values. */
export function geluRun(x: usize, y: usize, count: u32): void {
  for (const end = x + 4 * count; x < end; x += 16, y += 16) v128.store(y, coarseGelu4(v128.load(x)));
}

export function glu(ip: usize): void {
  const count = u32At(ip, GLU_COUNT), kind = u32At(ip, GLU_KIND), total = chunksOf(count, 1024);
  for (let c = nextSmallChunk(ip, total); c >= 0; c = nextSmallChunk(ip, total)) {
    const first = <u32>c * 1024, at = <usize>first << 2, n = min(1024, count - first);
    gluRun(kind, addressAt(ip, GLU_GATE) + at, addressAt(ip, GLU_UP) + at, addressAt(ip, GLU_Y) + at, n);
  }
}

export function clamped_glu(ip: usize): void {
  const count = u32At(ip, CLAMPED_GLU_COUNT), total = chunksOf(count, 1024);
  const limit = f32x4.splat(f32At(ip, CLAMPED_GLU_LIMIT)), alpha = f32x4.splat(f32At(ip, CLAMPED_GLU_ALPHA));
  const one = f32x4.splat(1), low = f32x4.neg(limit);
  for (let c = nextSmallChunk(ip, total); c >= 0; c = nextSmallChunk(ip, total)) {
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
  for (let c = nextSmallChunk(ip, total); c >= 0; c = nextSmallChunk(ip, total)) {
    const last = min(rows, <u32>c * 32 + 32);
    for (let row = <u32>c * 32; row < last; row++) {
      const y = addressAt(ip, JOIN_COLUMNS_Y) + <usize>row * (a + b);
      memory.copy(y, addressAt(ip, JOIN_COLUMNS_A) + <usize>row * a, a);
      memory.copy(y + a, addressAt(ip, JOIN_COLUMNS_B) + <usize>row * b, b);
    }
  }
}
