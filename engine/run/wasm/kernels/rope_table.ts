// WASM kernels of `rope_table`, best first.

import { emit, hasStaticColumns, inputAddress, outputAddress } from "../lower/lower.ts";
import type { WasmKernel } from "../kernel.ts";

/** Kernels of `rope_table`. */
export const ropeTableKernels: readonly WasmKernel[] = [
  {
    name: "rope_table_f32",
    when: (context) => hasStaticColumns(context, 1),
    lower(lowering) {
      const { inputs: [positions, frequencies], attributes } = lowering.node;
      emit(lowering, {
        name: "rope_table",
        operands: {
          positions: inputAddress(lowering, 0),
          frequencies: inputAddress(lowering, 1),
          y: outputAddress(lowering),
          rows: positions!.shape[0]!,
          pairs: frequencies!.shape[0]!,
          magnitude: attributes.magnitude as number,
          spans: inputAddress(lowering, 2),
          long: inputAddress(lowering, 3),
          beyond: attributes.beyond as number,
        },
      });
    },
  },
];
