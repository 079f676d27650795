// What a group of 32 columns adds to a product of 8-bit rows: y = sx (sw Σ qa + b Σ a), where Σ qa is an integer of
// packed dot products and sx Σ a was made with the row. Which sums there are depends on what a scale covers.

import { type CodeLayout, scaleFacts } from "../../layouts/code_layout.ts";
import { float, wgsl } from "../../wgsl.ts";
import { NEGATIVES } from "./q8_rows.ts";
import { scaleType } from "./weight_scales.ts";

/**
 * `group_product(codes, scales, x codes, x scales)`, and the x half sum for scales of 16 columns: what a group
 * adds to an output.
 */
export function groupProduct(layout: CodeLayout): string {
  const { covers, minima } = scaleFacts(layout);
  if (covers === "signs") {
    return wgsl`
      ${NEGATIVES}

      fn group_product(w: Codes, s: vec2<f32>, x: Codes, a: vec2<f32>) -> f32 {
        let low = negatives(w.low);
        let high = negatives(w.high);
        let above = f32(dot16(w.low & ~low, x.low) + dot16(w.high & ~high, x.high));
        let below = f32(dot16(w.low & low, x.low) + dot16(w.high & high, x.high));
        return a.x * (s.x * above + s.y * below);
      }
    `;
  }
  if (covers === "group") {
    return wgsl`
      fn group_product(w: Codes, s: vec2<f32>, x: Codes, a: vec2<f32>) -> f32 {
        let dot = f32(dot16(w.low, x.low) + dot16(w.high, x.high));
        return s.x * (a.x * dot) + s.y * a.y;
      }
    `;
  }
  return wgsl`
    fn group_product(w: Codes, s: ${scaleType(layout)}, x: Codes, a: vec2<f32>, half: f32) -> f32 {
      let dots = vec2<f32>(f32(dot16(w.low, x.low)), f32(dot16(w.high, x.high)));
      let sums = vec2<f32>(half, a.y - half);
      ${
    minima
      ? "return dot(s.xz, a.x * dots) + dot(s.yw, sums);"
      : `return dot(s, a.x * dots - ${float(layout.offset)} * sums);`
  }
    }
  `;
}
