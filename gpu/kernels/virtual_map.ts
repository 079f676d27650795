// From one virtual tensor to another of the same shape, wherever the two lie: a copy, or a function of each vec4. It is
// how a tensor gets from a buffer into a texture and back.

import { declare, read, type VirtualTensor, virtualTensor, write } from "../virtual_tensor.ts";
import { wgsl } from "../wgsl.ts";

/** Invocations of a workgroup; there is one for each vec4. */
export const MAP_BLOCK = 64;

/**
 * A module whose bindings are source and target.
 *
 * @param expression A vec4<f32> of `value`; default: the value itself.
 * @throws {RangeError} If the shapes differ.
 */
export function virtualMap(
  source: VirtualTensor,
  target: VirtualTensor,
  expression = "value",
): string {
  const { b, h, w, d, c } = source.shape;
  if (Object.entries(target.shape).some(([axis, size]) => ({ b, h, w, d, c })[axis] !== size)) {
    throw new RangeError(`Cannot copy ${source.name} to ${target.name}: their shapes differ`);
  }
  // The coordinates of the vec4 of a buffer, in its order.
  const [count] = virtualTensor("order", source.shape, "buffer").extent;
  const at = { b: "b", x: "x", y: "y", s: "s", d: "d" };
  const usesHalf = [source, target].some(({ storage, element }) =>
    storage === "buffer" && element === "f16"
  );
  return wgsl`
    ${usesHalf ? "enable f16;" : ""}
    ${declare(source, 0, "read")}
    ${declare(target, 1, "write")}

    @compute @workgroup_size(${MAP_BLOCK})
    fn main(@builtin(global_invocation_id) id: vec3<u32>) {
      var i = id.x;
      if (i >= ${count}u) { return; }
      let b = i % ${b}u;
      i /= ${b}u;
      let x = i % ${w}u;
      i /= ${w}u;
      let y = i % ${h}u;
      i /= ${h}u;
      let s = i % ${source.slices}u;
      let d = i / ${source.slices}u;
      let value = ${read(source, at)};
      ${write(target, at, expression)}
    }
  `;
}
