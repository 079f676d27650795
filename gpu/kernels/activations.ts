// Activation functions on vec4<f32>. WGSL promises little about tanh() and exp() of large arguments, so
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
export const TANH = wgsl`
  fn safe_tanh(x: vec4<f32>) -> vec4<f32> {
    let e = exp(-2.0 * abs(x));
    return sign(x) * (1.0 - e) / (1.0 + e);
  }
`;

const SIGMOID = wgsl`
  fn sigmoid(x: vec4<f32>) -> vec4<f32> {
    let e = exp(-abs(x));
    return select(e, vec4<f32>(1.0), x >= vec4<f32>(0.0)) / (1.0 + e);
  }
`;

// erf by Abramowitz and Stegun 7.1.26: within 1.5e-7.
const ERF = wgsl`
  fn erf(x: vec4<f32>) -> vec4<f32> {
    let size = abs(x);
    let t = 1.0 / (1.0 + 0.3275911 * size);
    let series = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t +
      0.254829592) * t;
    return sign(x) * (1.0 - series * exp(-min(size * size, vec4<f32>(80.0))));
  }
`;

/** Functions by name of the activation; each defines `activation(vec4<f32>)`. */
export const ACTIVATIONS: Readonly<Record<string, string>> = {
  relu: [
    NAN_LANES,
    wgsl`
      fn activation(x: vec4<f32>) -> vec4<f32> {
        return select(max(x, vec4<f32>(0.0)), x, nan_lanes(x));
      }
    `,
  ].join("\n"),
  sigmoid: [SIGMOID, "fn activation(x: vec4<f32>) -> vec4<f32> { return sigmoid(x); }"].join("\n"),
  silu: [SIGMOID, "fn activation(x: vec4<f32>) -> vec4<f32> { return x * sigmoid(x); }"].join("\n"),
  gelu: [
    ERF,
    "fn activation(x: vec4<f32>) -> vec4<f32> { return 0.5 * x * (1.0 + erf(x * 0.70710678)); }",
  ].join("\n"),
  gelu_tanh: [
    TANH,
    wgsl`
      fn activation(x: vec4<f32>) -> vec4<f32> {
        return 0.5 * x * (1.0 + safe_tanh(0.79788456 * (x + 0.044715 * x * x * x)));
      }
    `,
  ].join("\n"),
};

/** `sigmoid`, for gates of other forms. */
export const SIGMOID_FUNCTION: string = SIGMOID;
