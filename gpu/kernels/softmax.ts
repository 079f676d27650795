// Softmax along one axis: a workgroup a line, whose elements are `inner` apart.

import type { Shader } from "../kernel.ts";
import { GROUP_MAIN, wgsl } from "../wgsl.ts";
import { workgroupReduction } from "./reduce.ts";

const SIZE = 128;

/** Uniforms: `lines` in all, `length` of a line, `inner` between its elements. */
export const softmaxShader: Shader = {
  name: "softmax",
  storage: { x: "array<f32>", y: "array<f32>" },
  writes: ["y"],
  uniforms: { lines: "u32", length: "u32", inner: "u32" },
  code: wgsl`
    ${workgroupReduction("sum", { size: SIZE, combine: "a + b" })}
    ${workgroupReduction("largest", { size: SIZE, combine: "max(a, b)" })}
    @compute @workgroup_size(${SIZE})
    ${GROUP_MAIN}
      let line = flat_workgroup(group, groups);
      if (line >= params.lines) { return; }
      let inner = params.inner;
      let at = line / inner * inner * params.length + line % inner;
      var most = x[at]; // no number of its own: masks hide whole lines with the least there is
      for (var i = lane; i < params.length; i += ${SIZE}u) { most = max(most, x[at + i * inner]); }
      most = largest(lane, most);
      var total = 0.0;
      for (var i = lane; i < params.length; i += ${SIZE}u) { total += exp(x[at + i * inner] - most); }
      let factor = 1.0 / sum(lane, total);
      for (var i = lane; i < params.length; i += ${SIZE}u) {
        y[at + i * inner] = exp(x[at + i * inner] - most) * factor;
      }
    }
  `,
};
