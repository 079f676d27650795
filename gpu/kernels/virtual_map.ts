// From one virtual tensor to another of the same shape, wherever the two lie: how a tensor gets from a buffer into a
// texture and back.

import type { Shader } from "../kernel.ts";
import { bindingsOf, read, type VirtualTensor, virtualTensor, write } from "../virtual_tensor.ts";
import { GROUP_MAIN, wgsl } from "../wgsl.ts";

const NAME = "virtual_map";
/** Invocations of a workgroup; there is one for each vec4. */
export const MAP_BLOCK = 64;

/**
 * A shader whose variables are source and target.
 *
 * @throws {RangeError} If the shapes differ.
 */
export function virtualMapShader(
  source: VirtualTensor,
  { target }: { readonly target: VirtualTensor },
): Shader {
  const { b, h, w, d, c } = source.shape;
  if (Object.entries(target.shape).some(([axis, size]) => ({ b, h, w, d, c })[axis] !== size)) {
    throw new RangeError(`Cannot copy ${source.name} to ${target.name}: their shapes differ`);
  }
  const at = { b: "b", x: "x", y: "y", s: "s", d: "d" };
  return {
    name: NAME,
    ...bindingsOf([[source, "read"], [target, "write"]]),
    uniforms: {},
    code: wgsl`
      @compute @workgroup_size(${MAP_BLOCK})
      ${GROUP_MAIN}
        var i = flat_workgroup(group, groups) * ${MAP_BLOCK}u + lane;
        if (i >= ${mapCount(source)}u) { return; }
        ${coordinatesOf(source)}
        let value = ${read(source, at)};
        ${write(target, { at, value: "value" })}
      }
    `,
  };
}

/** Whether a shader only moves a tensor between storages. */
export function isStorageCopy({ name }: Pick<Shader, "name">): boolean {
  return name === NAME;
}

/** Slices of a tensor at all its places: invocations of a kernel that makes one each. */
export function mapCount({ shape }: VirtualTensor): number {
  return virtualTensor("order", { shape, storage: "buffer" }).extent[0];
}

/** Statements that take the coordinates `b`, `x`, `y`, `s`, `d` from the variable `i`, places of a row one by one. */
export function coordinatesOf({ shape: { b, h, w }, slices }: VirtualTensor): string {
  return wgsl`
    let b = i % ${b}u;
    i /= ${b}u;
    let x = i % ${w}u;
    i /= ${w}u;
    let y = i % ${h}u;
    i /= ${h}u;
    let s = i % ${slices}u;
    let d = i / ${slices}u;
  `.trim();
}
