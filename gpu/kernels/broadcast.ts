// Sums and products of two tensors whose dims repeat: an index is taken apart once and put together twice. Up to
// four dims; dims that repeat alike have been merged before.

import type { Shader } from "../kernel.ts";
import { wgsl } from "../wgsl.ts";

/** Elements of a workgroup. */
export const BROADCAST_BLOCK = 64;

/** y = a ∘ b; uniforms: sizes n1..n3 of the inner dims, strides a0..a3 and b0..b3, and `count`. */
export function broadcastShader(operator: "+" | "*"): Shader {
  const sizes = ["n1", "n2", "n3"];
  const strides = ["a0", "a1", "a2", "a3", "b0", "b1", "b2", "b3"];
  return {
    name: operator === "+" ? "add_strided" : "mul_strided",
    storage: { a: "array<f32>", b: "array<f32>", y: "array<f32>" },
    writes: ["y"],
    uniforms: Object.fromEntries([...sizes, ...strides, "count"].map((name) => [name, "u32"])),
    code: wgsl`
      @compute @workgroup_size(64)
      fn main(
        @builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32,
      ) {
        let i = flat_workgroup(group, groups) * 64u + lane;
        if (i >= params.count) { return; }
        let i3 = i % params.n3;
        let rest3 = i / params.n3;
        let i2 = rest3 % params.n2;
        let rest2 = rest3 / params.n2;
        let i1 = rest2 % params.n1;
        let i0 = rest2 / params.n1;
        let at_a = i0 * params.a0 + i1 * params.a1 + i2 * params.a2 + i3 * params.a3;
        let at_b = i0 * params.b0 + i1 * params.b1 + i2 * params.b2 + i3 * params.b3;
        y[i] = a[at_a] ${operator} b[at_b];
      }
    `,
  };
}
