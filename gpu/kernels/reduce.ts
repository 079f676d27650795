// Sums and maxima over a workgroup through its memory; every invocation gets the result. Portable: no subgroups.

import { wgsl } from "../wgsl.ts";

/**
 * A function `name(lane, value) -> f32` that combines the values of `size` invocations, a power of two. All
 * invocations must call it together.
 */
export function workgroupReduction(
  name: string,
  { size, combine }: { readonly size: number; readonly combine: string },
): string {
  return wgsl`
    var<workgroup> ${name}_parts: array<f32, ${size}>;

    fn ${name}(lane: u32, value: f32) -> f32 {
      workgroupBarrier();
      ${name}_parts[lane] = value;
      for (var step = ${size / 2}u; step > 0u; step >>= 1u) {
        workgroupBarrier();
        if (lane < step) {
          let a = ${name}_parts[lane];
          let b = ${name}_parts[lane + step];
          ${name}_parts[lane] = ${combine};
        }
      }
      workgroupBarrier();
      return ${name}_parts[0];
    }
  `;
}
