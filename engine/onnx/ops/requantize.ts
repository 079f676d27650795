// 32-bit sums of products of codes as codes again.

import { applyBinary, castTo, type Translating } from "../derivation/elementwise.ts";
import type { Tensor } from "../derivation/tensor.ts";

/** Codes of `sums · scale` with the scale and zero point of a result. */
export function requantize(
  call: Translating,
  sums: Tensor,
  scale: Tensor,
  outScale: Tensor,
  outZero: Tensor,
): Tensor {
  const x = applyBinary(call, "mul", castTo(call, sums, "f32"), scale);
  const step = castTo(call, outScale, "f32");
  return call.one("quantize_linear", [x, step, outZero], { to: outZero.type.dtype });
}
