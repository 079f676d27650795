// WASM kernels of `kv_append`, best first.

import { cacheKind, emit, inputAddress, isStatic } from "../lower/lower.ts";
import { rowsPerChunk } from "../../../ops/row_cut.ts";
import type { WasmKernel } from "../kernel.ts";

/** Kernels of `kv_append`. */
export const kvAppendKernels: readonly WasmKernel[] = [
  {
    name: "kv_append",
    inRowChunks: true,
    when: ({ node: { inputs: [cache] } }) => cache!.shape.every(isStatic),
    lower(lowering) {
      const { node: { inputs: [cache, x] }, slotCount } = lowering;
      const [capacity, heads, width] = cache!.shape as [number, number, number];
      const { address, table } = lowering.state(cache!);
      emit(lowering, {
        name: "kv_append",
        operands: {
          x: inputAddress(lowering, 1),
          state: address,
          positions: inputAddress(lowering, 2),
          slots: inputAddress(lowering, 3),
          page_table: table,
          slot_count: slotCount,
          rows: x!.shape[0]!,
          group: rowsPerChunk({ rows: x!.shape[0]!, width: heads * width }),
          width: heads * width,
          capacity,
          cache: cacheKind(cache!),
        },
      });
    },
  },
];
