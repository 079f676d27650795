// The WebGPU kernel of rope_append.

import { ropeAppendShader } from "../../gpu/kernels/rope_append.ts";
import { type Dim, mul } from "./dim.ts";
import { inputSlice, optionalSlice, outputSlice } from "./lower_gpu.ts";
import { isStatic } from "./lower_wasm.ts";
import type { GpuKernel } from "./op.ts";

/** Kernels of `rope_append`. */
export const gpuRopeAppendKernels: readonly GpuKernel[] = [{
  name: "gpu_rope_append",
  when: ({ node: { inputs: [, table, keys] } }) =>
    keys!.shape.every(isStatic) && (keys!.shape[2] as number) % 2 === 0 &&
    isStatic(table!.shape[1]) && table!.shape[1] % 2 === 0,
  lower(lowering) {
    const { inputs, outputs: [queries], attributes } = lowering.node;
    const [, table, keys, values, , , queryNorm, keyNorm, k] = inputs;
    const [capacity, groups, width] = keys!.shape as [number, number, number];
    const [rows, heads] = queries!.shape as [Dim, number];
    const items = mul(rows, heads + 2 * groups);
    const hasNorms = queryNorm !== undefined || keyNorm !== undefined;
    lowering.emit({
      shader: ropeAppendShader({
        width,
        interleaved: attributes.style === "interleaved",
        f16: keys!.dtype === "f16",
        hasQueryNorm: queryNorm !== undefined,
        hasKeyNorm: keyNorm !== undefined,
        isApart: k !== undefined,
      }),
      storage: {
        qkv: inputSlice(lowering, 0),
        table: inputSlice(lowering, 1),
        keys: lowering.state(keys!),
        values: lowering.state(values!),
        positions: inputSlice(lowering, 4),
        slots: inputSlice(lowering, 5),
        ...optionalSlice(lowering, "query_norm", 6),
        ...optionalSlice(lowering, "key_norm", 7),
        ...optionalSlice(lowering, "k", 8),
        ...optionalSlice(lowering, "v", 9),
        y: outputSlice(lowering),
      },
      uniforms: {
        ...{ items, heads, groups, pairs: (table!.shape[1] as number) / 2, capacity },
        ...hasNorms && {
          epsilon: attributes.epsilon as number,
          base: attributes.base as number,
        },
      },
      workgroups: [items],
    });
  },
}];
