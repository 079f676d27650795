// Lowering of normalisations by channel over float32 planes.

import type { WasmKernel } from "../kernel.ts";
import { product } from "../../../graph/dim/mod.ts";
import type { Node } from "../../../graph/graph.ts";
import { activationOf } from "./conv.ts";
import { emit, inputAddress, isStatic, outputAddress } from "./lower.ts";

/** All inputs float32, the channels known. */
function isPlain({ inputs }: Node): boolean {
  return inputs.every((input) => !input || input.dtype === "f32") && isStatic(inputs[0]!.shape[1]);
}

/** By given means and variances. */
export const batchNormKernel: WasmKernel = {
  name: "batch_norm_f32",
  when: ({ node }) => isPlain(node),
  lower(lowering) {
    const { inputs: [x], attributes } = lowering.node;
    emit(lowering, {
      name: "batch_norm",
      operands: {
        x: inputAddress(lowering, 0),
        w: inputAddress(lowering, 1),
        b: inputAddress(lowering, 2),
        mean: inputAddress(lowering, 3),
        variance: inputAddress(lowering, 4),
        y: outputAddress(lowering),
        batch: x!.shape[0]!,
        channels: x!.shape[1]!,
        places: product(x!.shape.slice(2)),
        epsilon: attributes.epsilon as number,
      },
    });
  },
};

/** By the means and variances of groups of channels. */
export const groupNormKernel: WasmKernel = {
  name: "group_norm_f32",
  when: ({ node }) => isPlain(node),
  lower(lowering) {
    const { inputs: [x], attributes } = lowering.node;
    emit(lowering, {
      name: "group_norm",
      operands: {
        x: inputAddress(lowering, 0),
        w: inputAddress(lowering, 1),
        b: inputAddress(lowering, 2),
        y: outputAddress(lowering),
        batch: x!.shape[0]!,
        channels: x!.shape[1]!,
        groups: (attributes.groups as number) || x!.shape[1]!,
        places: product(x!.shape.slice(2)),
        epsilon: attributes.epsilon as number,
        activation: activationOf(lowering.node),
      },
    });
  },
};
