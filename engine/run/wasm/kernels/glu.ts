// WASM kernels of `glu`, best first. What passes make for other devices, gates in one row with what they gate, has none.

import { UNARY_NUMBERS, type UnaryName } from "../../../../functions/unary.ts";
import { q8RowBytes } from "../../../../quant/q8_activation.ts";
import type { Node } from "../../../graph/graph.ts";
import { countOf, emit, inputAddress, outputAddress, rowsOf } from "../lower/lower.ts";
import { lastDim } from "../../../ops/shape_rules.ts";
import type { WasmKernel, WasmLowering } from "../kernel.ts";
import { SCRATCH_BYTES } from "./quantize.ts";

/** Kernels of `glu`. */
export const gluKernels: readonly WasmKernel[] = [
  {
    name: "glu_f32",
    when: ({ node }) => writes(node, "f32") && !isClamped(node),
    lower(lowering) {
      const { inputs: [gate] } = lowering.node;
      const kind = kindOf(lowering.node);
      emit(lowering, {
        name: "glu",
        operands: { ...addresses(lowering), count: countOf(gate!), kind },
      });
    },
  },
  {
    name: "glu_q8",
    when: ({ node }) => writes(node, "q8") && !isClamped(node),
    lower(lowering) {
      const { inputs: [gate] } = lowering.node;
      const columns = lastDim(gate!) as number;
      emit(lowering, {
        name: "glu_q8",
        operands: {
          ...addresses(lowering),
          rows: rowsOf(gate!),
          columns,
          row_bytes: q8RowBytes(columns),
          kind: kindOf(lowering.node),
          scratch: lowering.scratch(SCRATCH_BYTES),
          scratch_bytes: SCRATCH_BYTES,
        },
      });
    },
  },
  {
    name: "clamped_glu_f32",
    when: ({ node }) => writes(node, "f32") && isClamped(node),
    lower(lowering) {
      const { inputs: [gate], attributes: { limit, alpha } } = lowering.node;
      emit(lowering, {
        name: "clamped_glu",
        operands: {
          ...addresses(lowering),
          count: countOf(gate!),
          limit: limit as number,
          alpha: alpha as number,
        },
      });
    },
  },
];

function writes({ inputs: [, up], attributes }: Node, type: "f32" | "q8"): boolean {
  return up !== undefined && attributes.to === type;
}

function isClamped({ attributes }: Node): boolean {
  return attributes.activation === "clamped";
}

function kindOf({ attributes }: Node): number {
  return UNARY_NUMBERS[attributes.activation as UnaryName];
}

function addresses(lowering: WasmLowering) {
  return {
    gate: inputAddress(lowering, 0),
    up: inputAddress(lowering, 1),
    y: outputAddress(lowering),
  };
}
