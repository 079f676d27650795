// WASM kernel of `nll_loss` on float32.

import type { WasmKernel } from "../kernel.ts";
import { product } from "../../../graph/dim/mod.ts";
import { areFloat32 } from "./strided.ts";
import { elementKind } from "./typed.ts";
import { countOf, emit, inputAddress, outputAddress } from "./lower.ts";

const REDUCTIONS = ["none", "sum", "mean"];

/** WASM kernel of `nll_loss`. */
export const nllLossKernel: WasmKernel = {
  name: "nll_loss_f32",
  when: ({ node }) => areFloat32(node.inputs.slice(0, 1)),
  lower(lowering) {
    const { inputs: [x, target], attributes } = lowering.node;
    const ignored = attributes.ignore_index as number;
    emit(lowering, {
      name: "nll_loss",
      operands: {
        x: inputAddress(lowering, 0),
        target: inputAddress(lowering, 1),
        weight: inputAddress(lowering, 2),
        y: outputAddress(lowering),
        type: elementKind(target!.dtype)!,
        reduction: REDUCTIONS.indexOf(attributes.reduction as string),
        count: countOf(target!),
        classes: x!.shape[1]!,
        places: product(x!.shape.slice(2)),
        ignores: Number(attributes.ignores),
        // Operands keep the low 32 bits of a number.
        ignored_low: ignored,
        ignored_high: Math.floor(ignored / 2 ** 32),
      },
    });
  },
};
