// WASM kernels of `route`, best first.

import { emit, inputAddress, isStatic } from "../lower/lower.ts";
import { SCORES } from "../../../ops/records/route.ts";
import type { WasmKernel } from "../kernel.ts";

/** Kernels of `route`. */
export const routeKernels: readonly WasmKernel[] = [
  {
    name: "route_f32",
    when: ({ node: { inputs: [logits] } }) => isStatic(logits!.shape[1]),
    lower(lowering) {
      const { inputs: [logits], outputs: [chosen, weights], attributes } = lowering.node;
      const experts = logits!.shape[1] as number;
      const groups = attributes.groups as number;
      const scratchBytes = Math.ceil(4 * (2 * experts + groups) / 64) * 64;
      emit(lowering, {
        name: "route",
        operands: {
          logits: inputAddress(lowering, 0),
          correction: inputAddress(lowering, 1),
          chosen: lowering.address(chosen!),
          weights: lowering.address(weights!),
          rows: logits!.shape[0]!,
          experts,
          count: attributes.count as number,
          groups,
          group_count: attributes.groupCount as number,
          kind: SCORES.indexOf(attributes.score as typeof SCORES[number]),
          best_two: attributes.groupScore === "best_two" ? 1 : 0,
          normalize: attributes.normalize ? 1 : 0,
          scale: attributes.scale as number,
          scratch: lowering.scratch(scratchBytes),
          scratch_bytes: scratchBytes,
        },
      });
    },
  },
];
