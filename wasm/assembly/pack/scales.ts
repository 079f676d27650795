// Scales of a file's block on their way to their places in a header or in cells (wasm/layout_scales.ts). Sources
// are those of wasm/format_layouts.ts. Returns the number of scales that are not finite.
import {
  SOURCE_ABOVE_BELOW, SOURCE_BASE_SCALE, SOURCE_BYTES, SOURCE_E0M4_1, SOURCE_E0M4_2, SOURCE_E4M3, SOURCE_E8M0,
  SOURCE_HALF, SOURCE_INT4, SOURCE_IQ4_XS, SOURCE_NONE, SOURCE_Q2_K, SOURCE_Q3_K, SOURCE_SINGLE,
  SOURCE_SINGLE_8,
} from "../generated/layouts";
import { halfToFloat } from "../matmul/shared";
import { notFinite } from "./pack";

@inline function notFiniteSingle(bits: u32): u32 { return (bits & 0x7f800000) == 0x7f800000 ? 1 : 0; }

/** A scale as f32, or as f16 without its factor, and a zero. */
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

/** Steps of 2^n / 16 from the lowest level, 2^n. */
function storeE0M4(at: usize, exponent: i32, to: usize, row: u32, wide: bool): u32 {
  const perUnit: f32 = exponent == 1 ? 8 : 4, bias = load<u16>(at, 2);
  const zero: f32 = 16 - halfToFloat(bias) * perUnit;
  return notFinite(bias) + storeZero(load<u16>(at), 1 / perUnit, zero, to, row, wide);
}

/** Header and sixteen pairs of nibbles. */
function storeQ2K(at: usize, header: usize, row: u32, bytes: usize): u32 {
  store<u16>(header + 2 * row, load<u16>(at, 80));
  store<u16>(header + 16 + 2 * row, load<u16>(at, 82));
  for (let i: usize = 0; i < 16; i++) {
    store<u8>(header + 32 + (i >> 1) * bytes + 8 * (i & 1) + row, load<u8>(at + i));
  }
  return notFinite(load<u16>(at, 80)) + notFinite(load<u16>(at, 82));
}

/** Header and sixteen scales; `at` is where they are, 12 bytes in front of d. */
function storeQ3K(at: usize, header: usize, row: u32, bytes: usize): u32 {
  store<u16>(header + 2 * row, load<u16>(at, 12));
  for (let i: usize = 0; i < 16; i++) {
    const low = (<u32>load<u8>(at + (i & 7)) >> (i < 8 ? 0 : 4)) & 15;
    const high = (<u32>load<u8>(at + 8 + (i & 3)) >> (2 * (<u32>i >> 2))) & 3;
    store<u8>(header + 16 + (i >> 1) * bytes + 8 * (i & 1) + row, <i32>(low | (high << 4)) - 32);
  }
  return notFinite(load<u16>(at, 12));
}

/** Header and eight scales. */
function storeIq4Xs(at: usize, header: usize, row: u32, bytes: usize): u32 {
  store<u16>(header + 2 * row, load<u16>(at));
  const highs = <u32>load<u16>(at, 2);
  for (let i: usize = 0; i < 8; i++) {
    const low = (<u32>load<u8>(at + 4 + (i >> 1)) >> (4 * (<u32>i & 1))) & 15;
    store<u8>(header + 16 + i * bytes + row, <i32>(low | (((highs >> (2 * <u32>i)) & 3) << 4)) - 32);
  }
  return notFinite(load<u16>(at));
}

/**
 * Stores the scales of the block at `at` for one row, in a layout with headers (`wide`) or without, of cells of
 * `bytes`. `header` is where its block of the layout begins, `cell` its cell, `column` its first column.
 */
export function storeScales(source: u32, wide: bool, bytes: usize, at: usize, header: usize, cell: usize, column: u32, row: u32): u32 {
  const to = wide ? header : cell;
  switch (source) {
    case SOURCE_HALF: {
      store<u16>(to + 2 * row, load<u16>(at));
      return notFinite(load<u16>(at));
    }
    case SOURCE_BASE_SCALE: {
      store<u16>(to + 2 * row, load<u16>(at, 2));
      store<u16>(to + 16 + 2 * row, load<u16>(at));
      return notFinite(load<u16>(at)) + notFinite(load<u16>(at, 2));
    }
    case SOURCE_SINGLE: {
      store<u32>(to + 4 * row, load<u32>(at));
      return notFiniteSingle(load<u32>(at));
    }
    case SOURCE_ABOVE_BELOW: {
      store<f32>(to + 4 * row, load<f32>(at));
      store<f32>(to + 32 + 4 * row, -load<f32>(at, 4));
      return notFiniteSingle(load<u32>(at)) + notFiniteSingle(load<u32>(at, 4));
    }
    case SOURCE_NONE: return 0;
    case SOURCE_SINGLE_8: {
      store<u32>(to + 4 * row, load<u32>(at));
      store<f32>(to + 32 + 4 * row, -8);
      return notFiniteSingle(load<u32>(at));
    }
    case SOURCE_E0M4_1: return storeE0M4(at, 1, to, row, wide);
    case SOURCE_E0M4_2: return storeE0M4(at, 2, to, row, wide);
    case SOURCE_INT4: return storeZero(load<u16>(at), 1, -<f32>load<i16>(at, 2), to, row, wide);
    case SOURCE_E8M0: {
      // 2^(e - 128) as bf16; the two smallest are subnormal.
      const e = <u32>load<u8>(at);
      store<u16>(to + 2 * row, <u16>(e < 2 ? <u32>0x20 << e : (e - 1) << 7));
      return 0;
    }
    case SOURCE_E4M3: {
      for (let g: usize = 0; g < 4; g++) {
        const code = load<u8>(at + g);
        store<u8>(cell + (g >> 1) * bytes + 8 * (g & 1) + row, code == 0x7f ? 0 : code & 0x7f);
      }
      return 0;
    }
    case SOURCE_BYTES: {
      const group = cell + ((column & 31) >> 1) + row;
      store<u8>(group, load<u8>(at, 1));
      store<u8>(group + 16, load<u8>(at));
      return 0;
    }
    case SOURCE_Q2_K: return storeQ2K(at, header, row, bytes);
    case SOURCE_Q3_K: return storeQ3K(at, header, row, bytes);
    case SOURCE_IQ4_XS: return storeIq4Xs(at, header, row, bytes);
  }
  return unreachable();
}
