// Sine, cosine and tangent of any float as WGSL, which promises its own between -π and π only. An angle is first
// reduced to a remainder within an eighth of a turn and the number of quarter turns (Payne and Hanek, 1983): of x · 2/π
// only the bits around the point are computed, in integers, so that nothing cancels however large x is.

import { wgsl } from "../wgsl.ts";

/** `sin_of`, `cos_of` and `tan_of`; of infinity they are NaN, of NaN anything. */
export const ANGLE_FUNCTIONS: string = wgsl`
  // 2/π from the bit of 2 on, 32 bits each, behind a word of zeros.
  const TWO_OVER_PI = array<u32, 8>(
    0u, 0x28be60dbu, 0x9391054au, 0x7f09d5f4u, 0x7d4d3770u, 0x36d8a566u, 0x4f10e410u, 0x7f9458eau,
  );

  struct Angle { rest: f32, quarters: u32 }

  fn high_product(a: u32, b: u32) -> u32 {
    let p = a & 0xffffu;
    let q = a >> 16u;
    let r = b & 0xffffu;
    let s = b >> 16u;
    let middle = q * r + ((p * r) >> 16u);
    let other = p * s + (middle & 0xffffu);
    return q * s + (middle >> 16u) + (other >> 16u);
  }

  fn reduced(x: f32) -> Angle {
    let bits = bitcast<u32>(x);
    let exponent = (bits >> 23u) & 255u;
    if (abs(x) < 0.785398) { return Angle(x, 0u); }
    if (exponent == 255u) { return Angle(bitcast<f32>(bits | 0x7fc00000u), 0u); }
    // x is digits · 2^(e - 32); e is above 0 here, or not below by more than what the word of zeros holds.
    let digits = (bits << 8u) | 0x80000000u;
    let e = exponent - 126u;
    var words = TWO_OVER_PI;
    let word = e >> 5u;
    let shift = e & 31u;
    var high = words[word];
    var middle = words[word + 1u];
    var low = words[word + 2u];
    if (shift > 0u) {
      high = (high << shift) | (middle >> (32u - shift));
      middle = (middle << shift) | (low >> (32u - shift));
      low = (low << shift) | (words[word + 3u] >> (32u - shift));
    }
    // The product with 2 bits before the point and 62 behind it.
    let carried = digits * middle + high_product(digits, low);
    let carry = select(0u, 1u, carried < digits * middle);
    var top = digits * high + high_product(digits, middle) + carry;
    var bottom = carried;
    var quarters = top >> 30u;
    top &= 0x3fffffffu;
    var sign = 1.0;
    if ((top & 0x20000000u) != 0u) {
      // The other way round is nearer.
      quarters += 1u;
      sign = -1.0;
      bottom = 0u - bottom;
      top = (0u - top - select(0u, 1u, bottom != 0u)) & 0x3fffffffu;
    }
    let size = (f32(top) * 4294967296.0 + f32(bottom)) * 3.40612158e-19;
    if (x < 0.0) { return Angle(-sign * size, 0u - quarters); }
    return Angle(sign * size, quarters);
  }

  // Polynomials of Cephes between -π/4 and π/4.
  fn sin_near(x: f32) -> f32 {
    let z = x * x;
    return x + x * z * ((-1.9515295891e-4 * z + 8.3321608736e-3) * z - 1.6666654611e-1);
  }

  fn cos_near(x: f32) -> f32 {
    let z = x * x;
    let p = (2.443315711809948e-5 * z - 1.388731625493765e-3) * z + 4.166664568298827e-2;
    return 1.0 - 0.5 * z + z * z * p;
  }

  fn turned(x: f32, more: u32) -> f32 {
    let angle = reduced(x);
    let quarters = angle.quarters + more;
    let y = select(sin_near(angle.rest), cos_near(angle.rest), (quarters & 1u) == 1u);
    return select(y, -y, (quarters & 2u) == 2u);
  }

  fn sin_of(x: f32) -> f32 { return turned(x, 0u); }

  fn cos_of(x: f32) -> f32 { return turned(x, 1u); }

  fn tan_of(x: f32) -> f32 {
    let angle = reduced(x);
    let y = sin_near(angle.rest);
    let z = cos_near(angle.rest);
    return select(y / z, -z / y, (angle.quarters & 1u) == 1u);
  }
`;
