// Functions on vec4<f32> that kernels of gates and attention are made of; those by name stand in
// element_functions.ts. WGSL promises little about tanh() and exp() of large arguments, so
// nothing here overflows: what is bounded is computed from exponentials of negative numbers. Arithmetic keeps NaN, while
// min and max may lose it: where those decide, bits are looked at.

import { wgsl } from "../wgsl.ts";

/** Which lanes are NaN, by their bits. */
export const NAN_LANES: string = wgsl`
  fn nan_lanes(x: vec4<f32>) -> vec4<bool> {
    return (bitcast<vec4<u32>>(x) & vec4<u32>(0x7fffffffu)) > vec4<u32>(0x7f800000u);
  }
`;

/** tanh by the exponential of a number that is not above 0. */
export const TANH: string = wgsl`
  fn safe_tanh(x: vec4<f32>) -> vec4<f32> {
    let e = exp(-2.0 * abs(x));
    return sign(x) * (1.0 - e) / (1.0 + e);
  }
`;

/** Of any number, by the exponential of one that is not above 0. */
export const SIGMOID: string = wgsl`
  fn sigmoid(x: vec4<f32>) -> vec4<f32> {
    let e = exp(-abs(x));
    return select(e, vec4<f32>(1.0), x >= vec4<f32>(0.0)) / (1.0 + e);
  }
`;
