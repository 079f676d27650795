// WASM kernels of `rope`, best first.

import type { Dim } from "../../../graph/dim/mod.ts";
import { emit, inputAddress, isStatic, outputAddress } from "../lower/lower.ts";
import { rowsPerChunk } from "../../../ops/row_cut.ts";
import type { WasmKernel } from "../kernel.ts";

/** Kernels of `rope`. */
export const ropeKernels: readonly WasmKernel[] = [
  {
    name: "rope_f32",
    inRowChunks: true,
    when: ({ node: { inputs: [x, table], attributes } }) =>
      attributes.heads === 0 && isStatic(x!.shape[1]) && isStatic(x!.shape[2]) &&
      isStatic(table!.shape[1]) &&
      table!.shape[1] % 2 === 0,
    lower(lowering) {
      const { inputs: [x, table], attributes } = lowering.node;
      const [rows, heads, width] = x!.shape as [Dim, number, number];
      emit(lowering, {
        name: "rope",
        operands: {
          x: inputAddress(lowering, 0),
          table: inputAddress(lowering, 1),
          y: outputAddress(lowering),
          rows,
          group: rowsPerChunk({ rows, width: heads * width }),
          heads,
          head_size: width,
          pairs: (table!.shape[1] as number) / 2,
          interleaved: attributes.style === "interleaved" ? 1 : 0,
        },
      });
    },
  },
];
