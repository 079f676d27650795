// Scales of a file's block on their way to their places in a header or in cells (wasm/layout_scales.ts). Kinds are those
// of quant/scale_kinds.ts. Returns the number of scales that are not finite.
import {
  SCALES_B16, SCALES_D, SCALES_DM, SCALES_DZ, SCALES_E1, SCALES_E2, SCALES_E4M3, SCALES_E8, SCALES_F, SCALES_K, SCALES_K16,
  SCALES_K8, SCALES_KN16, SCALES_SIDES,
} from "../generated/layouts";
import {
  PACK_WEIGHT_FLOATS, PACK_WEIGHT_INTEGERS, PACK_WEIGHT_INTEGERS_ABOVE, PACK_WEIGHT_OFFSET, PACK_WEIGHT_SCALES,
} from "../generated/opcodes";
import { u32At } from "../machine/runtime";
import { halfToFloat } from "../matmul/shared";
import { bitsOf, byteOf, turnOf } from "./codes";
import { notFinite } from "./pack";

@inline function notFiniteSingle(bits: u32): u32 { return (bits & 0x7f800000) == 0x7f800000 ? 1 : 0; }

/** A half-float scale as f32, or as f16 without its factor, and a zero. */
function storeZero(half: u32, factor: f32, zero: f32, to: usize, row: u32, wide: bool): u32 {
  if (wide) {
    store<f32>(to + 4 * row, halfToFloat(half) * factor);
    store<f32>(to + 32 + 4 * row, zero);
  } else {
    store<u16>(to + 2 * row, half);
    store<f32>(to + 16 + 4 * row, zero);
  }
  return notFinite(half) + notFiniteSingle(reinterpret<u32>(zero));
}

/** Scale (`shift` 0) or minimum (4) number `i` out of 12 bytes (quant/k_scales.ts). */
function sixBits(at: usize, i: u32, shift: u32): u32 {
  if (i < 4) return load<u8>(at + i + shift) & 63;
  return ((load<u8>(at + i + 4) >> <u8>shift) & 15) | (load<u8>(at + i - 4 + shift) >> 6 << 4);
}

/** Eight integers of a field as bytes, the first eight or the next: runs of 8 or 4 bytes, or bits in sequence. */
@inline function eightOf(at: usize, field: u32, half: u32): u64 {
  const start = at + byteOf(field), bits = bitsOf(field), mask = ((1 << bits) - 1) * 0x01010101;
  if (turnOf(field) == 3) return (load<u64>(start) >> (half * bits)) & (<u64>mask << 32 | mask);
  if (turnOf(field) == 2) {
    const word = load<u32>(start) >> (2 * half * bits);
    return <u64>((word >> bits) & mask) << 32 | (word & mask);
  }
  // No block ends with such a field, so what is read behind it is there.
  const word = load<u32>(start + half * bits);
  let eight: u64 = 0;
  for (let i: u32 = 0; i < 8; i++) eight |= <u64>((word >> (i * bits)) & mask & 255) << (8 * i);
  return eight;
}

/**
 * One integer for 32 columns, or one for each half, of one field or two, less an offset, to cells of `bytes`; signed ones of
 * both halves (`pairs`) side by side.
 */
function storeIntegers(ip: usize, at: usize, to: usize, bytes: usize, row: u32, halves: u32, pairs: bool): void {
  const low = u32At(ip, PACK_WEIGHT_INTEGERS), high = u32At(ip, PACK_WEIGHT_INTEGERS_ABOVE);
  const offset = u32At(ip, PACK_WEIGHT_OFFSET), apart: usize = pairs ? 1 : halves ? 8 : bytes, next = halves ? bytes : 2 * bytes;
  for (let half: u32 = 0, place = to + (pairs ? 2 * row : row); half <= halves; half++) {
    // One field is whole bytes.
    let eight = high
      ? eightOf(at, low, half) | (eightOf(at, high, half) << bitsOf(low))
      : load<u64>(at + byteOf(low) + 8 * half);
    for (let i: u32 = 0; i < 8; i += 2, place += next, eight >>= 16) {
      store<u8>(place, <u32>eight - offset);
      store<u8>(place + apart, (<u32>eight >> 8) - offset);
    }
  }
}

/**
 * Stores the scales of the block at `at` for one row, in a layout with headers of `above` bytes or without, of cells of
 * `bytes`. `header` is where its block of the layout begins, `cell` its cell, `column` its first column.
 */
export function storeScales(ip: usize, at: usize, above: usize, bytes: usize, header: usize, cell: usize, column: u32, row: u32): u32 {
  const wide = above > 0, to = wide ? header : cell, floats = u32At(ip, PACK_WEIGHT_FLOATS);
  const first = at + (floats & 0xffff), second = at + (floats >> 16), kind = u32At(ip, PACK_WEIGHT_SCALES);
  // Those without halves in front are bytes.
  const integers = at + (u32At(ip, PACK_WEIGHT_INTEGERS) & 0xffff);
  switch (kind) {
    case 0: return 0;
    case SCALES_D: case SCALES_K8: case SCALES_K16: {
      store<u16>(to + 2 * row, load<u16>(first));
      if (kind != SCALES_D) storeIntegers(ip, at, header + above, bytes, row, kind == SCALES_K8 ? 0 : 1, kind == SCALES_K16);
      return notFinite(load<u16>(first));
    }
    case SCALES_DM: case SCALES_KN16: {
      store<u16>(to + 2 * row, load<u16>(first));
      store<u16>(to + 16 + 2 * row, load<u16>(second));
      if (kind == SCALES_KN16) storeIntegers(ip, at, header + above, bytes, row, 1, false);
      return notFinite(load<u16>(first)) + notFinite(load<u16>(second));
    }
    case SCALES_K: {
      store<u16>(to + 2 * row, load<u16>(first));
      store<u16>(to + 16 + 2 * row, load<u16>(second));
      for (let i: u32 = 0; i < 8; i++) {
        const place = header + above + <usize>i * bytes + row;
        store<u8>(place, sixBits(second + 2, i, 0));
        store<u8>(place, sixBits(second + 2, i, 4), 8);
      }
      return notFinite(load<u16>(first)) + notFinite(load<u16>(second));
    }
    case SCALES_F: {
      store<u32>(to + 4 * row, load<u32>(first));
      // Codes that are not bytes have a zero beside their scale.
      if (above == 64) store<f32>(to + 32 + 4 * row, -<f32>u32At(ip, PACK_WEIGHT_OFFSET));
      return notFiniteSingle(load<u32>(first));
    }
    case SCALES_SIDES: {
      store<f32>(to + 4 * row, load<f32>(first));
      store<f32>(to + 32 + 4 * row, -load<f32>(second));
      return notFiniteSingle(load<u32>(first)) + notFiniteSingle(load<u32>(second));
    }
    case SCALES_E1: case SCALES_E2: {
      // Steps of 2^n / 16 from the lowest level, 2^n.
      const perUnit: f32 = kind == SCALES_E1 ? 8 : 4, bias = load<u16>(second);
      const zero: f32 = 16 - halfToFloat(bias) * perUnit;
      return notFinite(bias) + storeZero(load<u16>(first), 1 / perUnit, zero, to, row, wide);
    }
    case SCALES_DZ: return storeZero(load<u16>(first), 1, -<f32>load<i16>(second), to, row, wide);
    case SCALES_E8: {
      // 2^(e - 128) as bf16; the two smallest are subnormal.
      const e = <u32>load<u8>(integers);
      store<u16>(to + 2 * row, <u16>(e < 2 ? <u32>0x20 << e : (e - 1) << 7));
      return 0;
    }
    case SCALES_E4M3: {
      for (let g: u32 = 0; g < 4; g++) {
        const code = load<u8>(integers + g);
        store<u8>(cell + <usize>(g >> 1) * bytes + 8 * (g & 1) + row, code == 0x7f ? 0 : code & 0x7f);
      }
      return 0;
    }
    case SCALES_B16: {
      const group = cell + ((column & 31) >> 1) + row;
      store<u8>(group, load<u8>(integers, 1));
      store<u8>(group + 16, load<u8>(integers));
      return 0;
    }
  }
  return unreachable();
}
