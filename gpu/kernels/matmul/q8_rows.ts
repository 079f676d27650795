// Rows of 8-bit activations on the GPU. They take the bytes of quant/q8_activation.ts, but pairs stand
// together that kernels read together: K int8 codes · per group of 32 (float32 scale, float32 scale · Σ codes) ·
// per group float32 scale · Σ of its first 16 codes · padding to 16 bytes. Everything is read as vec4<u32>,
// because a buffer can be bound only once where something else in it is written.

import { Q8_GROUP, q8RowBytes } from "../../../quant/q8_activation.ts";
import { wgsl } from "../../wgsl.ts";

/**
 * Functions that read a binding `x: array<vec4<u32>>` of rows of `columns` values. `Codes` is
 * weight_reader.ts's.
 * - `x_codes(row, group) -> Codes`; `x_scales(row, group) -> vec2<f32>`: the scale and the sum;
 * - `x_half(row, group) -> f32`: the sum over the first 16 codes;
 * - `x_half_codes(row, half) -> vec4<u32>`: 16 codes;
 * - `x_scale_pair(row, pair)` and `x_half_pair(row, pair)`: those of two groups, if a row has an even number.
 */
export function q8RowReader(columns: number): string {
  const stride = q8RowBytes(columns) / 16;
  const groups = columns / Q8_GROUP;
  return wgsl`
    fn x_codes(row: u32, group: u32) -> Codes {
      let at = row * ${stride}u + 2u * group;
      return Codes(x[at], x[at + 1u]);
    }

    fn x_half_codes(row: u32, half: u32) -> vec4<u32> {
      return x[row * ${stride}u + half];
    }

    fn x_scales(row: u32, group: u32) -> vec2<f32> {
      let pairs = x[row * ${stride}u + ${columns / 16}u + (group >> 1u)];
      return bitcast<vec2<f32>>(select(pairs.xy, pairs.zw, (group & 1u) == 1u));
    }

    fn x_scale_pair(row: u32, pair: u32) -> vec4<f32> {
      return bitcast<vec4<f32>>(x[row * ${stride}u + ${columns / 16}u + pair]);
    }

    fn x_half_pair(row: u32, pair: u32) -> vec2<f32> {
      let at = ${columns / 8 + groups}u + pair;
      let two = x[row * ${stride}u + (at >> 1u)];
      return bitcast<vec2<f32>>(select(two.xy, two.zw, (at & 1u) == 1u));
    }

    fn x_half(row: u32, group: u32) -> f32 {
      let at = ${columns / 4 + 2 * groups}u + group;
      return bitcast<f32>(x[row * ${stride}u + (at >> 2u)][at & 3u]);
    }
  `;
}

/**
 * The same functions on one row in workgroup memory, `row` being ignored, and `keep(quad, …)`, which puts a quad
 * there (see quantize_group.ts; `word_of` is its).
 */
export function q8TileReader(columns: number): string {
  const groups = columns / Q8_GROUP;
  return wgsl`
    var<workgroup> x_tile: array<vec4<u32>, ${columns / 16}>;
    // Of two groups each.
    var<workgroup> x_pairs: array<vec4<f32>, ${Math.ceil(groups / 2)}>;
    var<workgroup> x_halves: array<vec2<f32>, ${Math.ceil(groups / 2)}>;

    fn keep(quad: u32, scale: f32, codes: vec4<i32>, half: i32, rest: i32) {
      x_tile[quad >> 2u][quad & 3u] = word_of(codes);
      if ((quad & 7u) != 0u) { return; }
      let group = quad >> 3u;
      x_pairs[group >> 1u][2u * (group & 1u)] = scale;
      x_pairs[group >> 1u][2u * (group & 1u) + 1u] = scale * f32(half + rest);
      x_halves[group >> 1u][group & 1u] = scale * f32(half);
    }

    fn x_codes(row: u32, group: u32) -> Codes {
      return Codes(x_tile[2u * group], x_tile[2u * group + 1u]);
    }

    fn x_scales(row: u32, group: u32) -> vec2<f32> {
      let pairs = x_pairs[group >> 1u];
      return select(pairs.xy, pairs.zw, (group & 1u) == 1u);
    }

    fn x_scale_pair(row: u32, pair: u32) -> vec4<f32> {
      return x_pairs[pair];
    }

    fn x_half_pair(row: u32, pair: u32) -> vec2<f32> {
      return x_halves[pair];
    }

    fn x_half(row: u32, group: u32) -> f32 {
      return x_halves[group >> 1u][group & 1u];
    }
  `;
}

/**
 * `dot16(a, b) -> i32`: the dot product of 16 pairs of signed bytes; `dots(a, b) -> vec4<i32>`: those of the 4
 * bytes of a word with the bytes of each of four words.
 */
export function packedDot(hardware: boolean): string {
  if (hardware) {
    return wgsl`
      fn dot16(a: vec4<u32>, b: vec4<u32>) -> i32 {
        return dot4I8Packed(a.x, b.x) + dot4I8Packed(a.y, b.y) +
          dot4I8Packed(a.z, b.z) + dot4I8Packed(a.w, b.w);
      }

      fn dots(a: u32, b: vec4<u32>) -> vec4<i32> {
        return vec4<i32>(
          dot4I8Packed(a, b.x), dot4I8Packed(a, b.y), dot4I8Packed(a, b.z), dot4I8Packed(a, b.w),
        );
      }
    `;
  }
  return wgsl`
    fn byte_of(words: vec4<u32>, left: u32) -> vec4<i32> {
      return vec4<i32>(words << vec4<u32>(left)) >> vec4<u32>(24u);
    }

    fn dots_of_pairs(a: vec4<u32>, b: vec4<u32>) -> vec4<i32> {
      return byte_of(a, 0u) * byte_of(b, 0u) + byte_of(a, 8u) * byte_of(b, 8u) +
        byte_of(a, 16u) * byte_of(b, 16u) + byte_of(a, 24u) * byte_of(b, 24u);
    }

    fn dot16(a: vec4<u32>, b: vec4<u32>) -> i32 {
      let sums = dots_of_pairs(a, b);
      return sums.x + sums.y + sums.z + sums.w;
    }

    fn dots(a: u32, b: vec4<u32>) -> vec4<i32> {
      return dots_of_pairs(vec4<u32>(a), b);
    }
  `;
}

/** `negatives(words) -> vec4<u32>`: 0xff for every negative byte, 0 for the others. */
export const NEGATIVES: string = wgsl`
  fn negatives(words: vec4<u32>) -> vec4<u32> {
    return ((words >> vec4<u32>(7u)) & vec4<u32>(0x01010101u)) * vec4<u32>(0xffu);
  }
`;
