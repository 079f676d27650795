// Kernels of `nll_loss` on float32.

import { LOSS_BLOCK, nllLossShader } from "../../../../gpu/kernels/nll_loss.ts";
import type { GpuKernel } from "../../gpu/kernel.ts";
import type { WasmKernel } from "../kernel.ts";
import { product } from "../../../graph/dim/mod.ts";
import type { Node } from "../../../graph/graph.ts";
import { groupsFor, inputSlice, optionalSlice, outputSlice } from "../../gpu/lower/lower.ts";
import { areFloat32 } from "./strided.ts";
import { elementKind } from "./typed.ts";
import { countOf, emit, inputAddress, outputAddress } from "./lower.ts";

const REDUCTIONS = ["none", "sum", "mean"];

/** Sizes and attributes as both devices take them. */
function operandsOf({ inputs: [x, target], attributes }: Node) {
  const ignored = attributes.ignore_index as number;
  return {
    count: countOf(target!),
    classes: x!.shape[1]!,
    places: product(x!.shape.slice(2)),
    ignores: Number(attributes.ignores),
    // Operands keep the low 32 bits of a number.
    ignored_low: ignored,
    ignored_high: Math.floor(ignored / 2 ** 32),
  };
}

/** WASM kernel of `nll_loss`. */
export const nllLossKernel: WasmKernel = {
  name: "nll_loss_f32",
  when: ({ node }) => areFloat32(node.inputs.slice(0, 1)),
  lower(lowering) {
    const { node } = lowering;
    emit(lowering, "nll_loss", {
      x: inputAddress(lowering, 0),
      target: inputAddress(lowering, 1),
      weight: inputAddress(lowering, 2),
      y: outputAddress(lowering),
      type: elementKind(node.inputs[1]!.dtype)!,
      reduction: REDUCTIONS.indexOf(node.attributes.reduction as string),
      ...operandsOf(node),
    });
  },
};

/** WebGPU kernels of `nll_loss`; targets must be inputs, which are checked before a step. */
export const gpuNllLossKernels: readonly GpuKernel[] = [{
  name: "gpu_nll_loss_f32",
  when: ({ node: { inputs: [x, target] } }) => areFloat32([x]) && target!.role === "input",
  lower(lowering) {
    const { node } = lowering;
    const { ignored_low, ignored_high: _, ...uniforms } = operandsOf(node);
    const isWhole = node.attributes.reduction === "none";
    lowering.emit({
      shader: nllLossShader({
        reduction: node.attributes.reduction as "none" | "sum" | "mean",
        hasWeight: node.inputs[2] !== undefined,
      }),
      storage: {
        x: inputSlice(lowering, 0),
        targets: inputSlice(lowering, 1),
        ...optionalSlice(lowering, "weight", 2),
        y: outputSlice(lowering),
      },
      uniforms: {
        ...uniforms,
        ignored: ignored_low,
        wide: node.inputs[1]!.dtype === "i64" ? 2 : 1,
      },
      workgroups: isWhole ? groupsFor(uniforms.count, LOSS_BLOCK) : [1],
    });
  },
}];
