// WebGPU kernels of the choice of experts.

import { MOST_EXPERTS, ROUTE_BLOCK, routeShader } from "../../../../gpu/kernels/route.ts";
import type { GpuKernel } from "../kernel.ts";
import { groupsFor, inputSlice, optionalSlice } from "./lower.ts";
import { isStatic } from "../../wasm/lower/lower.ts";

/** Kernels of `route`. */
export const gpuRouteKernels: readonly GpuKernel[] = [{
  name: "gpu_route_f32",
  when: ({ node: { inputs: [logits] } }) =>
    isStatic(logits!.shape[1]) && logits!.shape[1] <= MOST_EXPERTS,
  lower(lowering) {
    const { inputs: [logits, correction], outputs: [chosen, weights], attributes } = lowering.node;
    const rows = logits!.shape[0]!;
    lowering.emit({
      shader: routeShader({
        experts: logits!.shape[1] as number,
        groups: attributes.groups as number,
        softmax: attributes.score === "softmax",
        bestTwo: attributes.groupScore === "best_two",
        normalize: attributes.normalize as boolean,
        hasCorrection: correction !== undefined,
      }),
      storage: {
        logits: inputSlice(lowering, 0),
        ...optionalSlice(lowering, { name: "correction", index: 1 }),
        chosen: lowering.slice(chosen!),
        weights: lowering.slice(weights!),
      },
      uniforms: {
        rows,
        count: attributes.count as number,
        group_count: attributes.groupCount as number,
        scale: attributes.scale as number,
      },
      workgroups: groupsFor(rows, ROUTE_BLOCK),
    });
  },
}];
