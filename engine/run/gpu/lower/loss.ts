// WebGPU kernel of `nll_loss` on float32.

import { LOSS_BLOCK, type LossShape, nllLossShader } from "../../../../gpu/kernels/nll_loss.ts";
import type { GpuKernel } from "../kernel.ts";
import { product } from "../../../graph/dim/mod.ts";
import { groupsFor, inputSlice, optionalSlice, outputSlice } from "./lower.ts";

/** WebGPU kernels of `nll_loss`; targets must be inputs, which are checked before a step. */
export const gpuNllLossKernels: readonly GpuKernel[] = [{
  name: "gpu_nll_loss_f32",
  when: ({ node: { inputs: [x, target] } }) => x!.dtype === "f32" && target!.role === "input",
  lower(lowering) {
    const { inputs: [x, target, weight], attributes } = lowering.node;
    const count = product(target!.shape);
    lowering.emit({
      shader: nllLossShader({
        reduction: attributes.reduction as LossShape["reduction"],
        hasWeight: weight !== undefined,
      }),
      storage: {
        x: inputSlice(lowering, 0),
        targets: inputSlice(lowering, 1),
        ...optionalSlice(lowering, { name: "weight", index: 2 }),
        y: outputSlice(lowering),
      },
      uniforms: {
        count,
        classes: x!.shape[1]!,
        places: product(x!.shape.slice(2)),
        ignores: Number(attributes.ignores),
        ignored: attributes.ignore_index as number,
        wide: target!.dtype === "i64" ? 2 : 1,
      },
      workgroups: attributes.reduction === "none" ? groupsFor(count, LOSS_BLOCK) : [1],
    });
  },
}];
