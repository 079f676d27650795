// All memory of a plan on the GPU. How much its kernels ask for is found by lowering to ranges of no buffer; then every buffer
// is made, before the first byte of a weight is read, and a model that does not fit is refused.

import type { GpuMemory } from "../../../gpu/gpu.ts";
import type { GpuSlice } from "../../../gpu/kernel.ts";
import { writeBytes } from "../../../gpu/write.ts";
import type { Value } from "../../graph/graph.ts";
import { rootOf } from "../../plan/plan.ts";
import type { StateSizes } from "../pages/groups.ts";
import type { StreamPlan } from "../streaming/slots.ts";
import type { ChosenPlan, Lowering } from "./lowering.ts";
import { packedFilters, repackedConstants } from "./plain_weights.ts";
import { createPreparedWeights, type PreparedWeights } from "./prepared_weights.ts";
import type { GpuMemoryMap } from "./replay.ts";
import { createGpuStates, type GpuStates } from "./states.ts";
import { createGpuTextures, type GpuTextures } from "./textures.ts";
import {
  aligned,
  createGpuValues,
  type GpuValueLayout,
  type GpuValues,
  layOutValues,
} from "./values.ts";
import { allocateGpuWeights, type GpuWeights } from "./weights.ts";

/** Where everything of a plan lies. */
export interface PlanMemory {
  readonly states: GpuStates;
  readonly values: GpuValues;
  readonly weights: GpuWeights;
  readonly layout: GpuValueLayout;
  readonly textures: GpuTextures;
  readonly prepared: PreparedWeights;
  /** For lowerings. */
  readonly map: GpuMemoryMap;
}

/** Makes all buffers. What kernels ask for is found by lowering to ranges of no buffer. */
export function allocate(
  gpu: GpuMemory,
  chosen: ChosenPlan & {
    readonly stream: StreamPlan | undefined;
    readonly lower: Lowering;
    readonly sizes: StateSizes;
  },
): PlanMemory {
  const { plan, kernels, tables, sizes } = chosen;
  const packed = packedFilters(plan, kernels), repacked = repackedConstants(plan, kernels);
  const layout = layOutValues(plan, { repacked, packed, tables });
  const textures = createGpuTextures(gpu), prepared = createPreparedWeights(gpu);
  const weights = allocateGpuWeights(gpu, { ...chosen, packed });
  const states = createGpuStates(gpu, { graph: plan.graph, sizes });
  const constants = new Map<string, { readonly offset: number; readonly data: ArrayBufferView }>();
  const keyOf = createKeys();
  let scratchBytes = 0;
  let carriedBytes = 0;
  let constantBytes = 0;
  const none = { offset: 0, bytes: 0, access: "read_write" } as const;
  // Lowerings ask which ranges are the same: those of values with one root.
  const nowhere = (owner?: Value): GpuSlice => ({ buffer: owner as unknown as GPUBuffer, ...none });
  chosen.lower({
    slice: (value) => nowhere(rootOf(plan, value)),
    weight: ({ id }) => weights.matrices.get(id),
    state: states.slice,
    scratch(bytes) {
      scratchBytes = Math.max(scratchBytes, aligned(bytes));
      return nowhere();
    },
    carried(bytes) {
      carriedBytes = Math.max(carriedBytes, aligned(bytes));
      return nowhere();
    },
    constant(data) {
      const key = keyOf(data);
      if (!constants.has(key)) {
        constants.set(key, { offset: layout.constantBytes + constantBytes, data });
        constantBytes += aligned(data.byteLength);
      }
      return nowhere();
    },
    texture: textures.texture,
    prepared: prepared.prepared,
  });
  const values = createGpuValues(gpu, { plan, layout, states }, {
    scratchBytes: scratchBytes + carriedBytes,
    extraConstantBytes: constantBytes,
  });
  for (const { offset, data } of constants.values()) {
    writeBytes(gpu.device, { target: { buffer: values.constantBuffer, offset }, data });
  }
  const map: GpuMemoryMap = {
    slice: values.slice,
    weight: ({ id }) => weights.matrices.get(id),
    state: states.slice,
    scratch: values.scratch,
    carried(bytes) {
      const { offset, ...all } = values.scratch(scratchBytes + bytes);
      return { ...all, offset: offset + scratchBytes, bytes };
    },
    constant: (data): GpuSlice => ({
      buffer: values.constantBuffer,
      offset: constants.get(keyOf(data))!.offset,
      bytes: data.byteLength,
      access: "read",
    }),
    texture: textures.texture,
    prepared: prepared.prepared,
  };
  return { states, values, weights, layout, textures, prepared, map };
}

/** What constants are known by: their bytes, which are looked at once. */
function createKeys(): (data: ArrayBufferView) => string {
  const known = new WeakMap<ArrayBufferView, string>();
  return (data) => {
    let key = known.get(data);
    if (key === undefined) {
      const { buffer, byteOffset, byteLength } = data;
      known.set(data, key = new Uint8Array(buffer, byteOffset, byteLength).toBase64());
    }
    return key;
  };
}
