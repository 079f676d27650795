// The WebGPU kernel of `group_norm`: two dispatches over parts of groups.

import {
  GROUP_PART,
  groupMomentsShader,
  groupNormShader,
} from "../../../../gpu/kernels/group_norm.ts";
import type { GpuKernel } from "../kernel.ts";
import { ceilDiv, exactDiv, mul, product } from "../../../graph/dim/mod.ts";
import { areFloat32 } from "../../wasm/lower/strided.ts";
import { isStatic } from "../../wasm/lower/lower.ts";
import { inputSlice, optionalSlice, outputSlice } from "./lower.ts";

/** Kernels of `group_norm`. */
export const gpuGroupNormKernels: readonly GpuKernel[] = [{
  name: "gpu_group_norm_f32",
  when: ({ node: { inputs } }) =>
    areFloat32(inputs.filter((input) => input !== undefined)) && isStatic(inputs[0]!.shape[1]),
  lower(lowering) {
    const { inputs: [x, weight, bias], attributes } = lowering.node;
    const channels = x!.shape[1] as number, places = product(x!.shape.slice(2));
    const groups = (attributes.groups as number) || channels;
    const size = mul(exactDiv(channels, groups)!, places), parts = ceilDiv(size, GROUP_PART);
    const count = mul(mul(x!.shape[0]!, groups), parts);
    const moments = lowering.scratch(8 * lowering.most(count));
    const uniforms = { count, parts, size };
    lowering.emit({
      shader: groupMomentsShader,
      storage: { x: inputSlice(lowering, 0), moments },
      uniforms,
      workgroups: [count],
    });
    lowering.emit({
      shader: groupNormShader({
        hasWeight: weight !== undefined,
        hasBias: bias !== undefined,
        activation: attributes.activation as string,
      }),
      storage: {
        x: inputSlice(lowering, 0),
        moments,
        ...optionalSlice(lowering, { name: "w", index: 1 }),
        ...optionalSlice(lowering, { name: "b", index: 2 }),
        y: outputSlice(lowering),
      },
      uniforms: { ...uniforms, places, channels, epsilon: attributes.epsilon as number },
      workgroups: [count],
    });
  },
}];
