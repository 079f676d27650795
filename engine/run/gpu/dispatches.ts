// How many dispatches a step takes on a GPU, known without a weight being read: nodes are lowered to ranges of no
// buffer, as they are when memory is measured, and those dispatches are counted that have something to do. Encoding a
// dispatch costs microseconds, as much as a small kernel takes to run, hence a budget for a layer.

import type { GpuMemory } from "../../../gpu/gpu.ts";
import type { Capabilities, GpuSlice, GpuTexture } from "../../../gpu/kernel.ts";
import { isStorageCopy } from "../../../gpu/kernels/virtual_map.ts";
import type { ProgramDispatch } from "../../../gpu/program.ts";
import type { KernelStorages } from "../../../gpu/storage_choice.ts";
import type { DimEnv } from "../../graph/dim/mod.ts";
import { chooseGpuKernels, createLowering } from "./lowering.ts";
import { createPreparedWeights } from "./prepared_weights.ts";
import { packedFilters } from "./plain_weights.ts";
import { reachTo } from "./cache_reach.ts";
import { layOutTables } from "./page_tables.ts";
import { createGpuTextures } from "./textures.ts";
import { allocateGpuWeights } from "./weights.ts";
import type { Plan } from "../../plan/plan.ts";

/** What one node takes. */
export interface NodeDispatches {
  /** Path of the node. */
  readonly node: string;
  /** Name of its kernel. */
  readonly kernel: string;
  /** Dispatches that have something to do. */
  readonly count: number;
  /** Those of them that only copy a tensor into another storage or back. */
  readonly copies: number;
  /** Bytes of textures; those that nodes share are charged to the first. */
  readonly textureBytes: number;
}

/**
 * Counts the dispatches of a step, by node.
 *
 * @throws {UnsupportedError} If a node has no kernel on the device.
 */
export function countDispatches(
  plan: Plan,
  { capabilities, bindings, position = 0, storages }: {
    readonly capabilities: Capabilities;
    /** Sizes of the step. */
    readonly bindings: DimEnv;
    /** Largest position of its rows; default 0. */
    readonly position?: number;
    /** Where kernels over virtual tensors keep them; default: by gpu/storage_choice.ts. */
    readonly storages?: KernelStorages;
  },
): NodeDispatches[] {
  const kernels = chooseGpuKernels(plan, capabilities, { storages });
  const buffer = undefined as unknown as GPUBuffer;
  const nowhere: GpuSlice = { buffer, offset: 0, bytes: 0, access: "either" };
  const memory = { capabilities, createBuffer: () => buffer } as unknown as GpuMemory;
  const { matrices } = allocateGpuWeights(memory, { plan, packed: packedFilters(plan, kernels) });
  const textures = createGpuTextures(undefined);
  const map = {
    slice: () => nowhere,
    weight: ({ id }: { readonly id: number }) => matrices.get(id),
    state: () => nowhere,
    scratch: () => nowhere,
    carried: () => nowhere,
    constant: () => nowhere,
    texture: textures.texture,
    prepared: createPreparedWeights(undefined).prepared,
  };
  const env = reachTo(plan)(bindings, position);
  const isActive = ({ workgroups }: ProgramDispatch<DimEnv>) =>
    workgroups.every((count) => (typeof count === "number" ? count : count(env)) > 0);
  const charged = new Set<GpuTexture>();
  const charge = (texture: GpuTexture) => {
    if (charged.has(texture)) return 0;
    charged.add(texture);
    return texture.bytes;
  };
  const chosen = {
    plan,
    kernels,
    capabilities,
    storages,
    tables: layOutTables(plan, { slots: 1 }),
  };
  return createLowering(chosen)(map).map((dispatches, i) => {
    const active = dispatches.filter(isActive);
    return {
      node: plan.steps[i]!.node.name,
      kernel: kernels[i]!.name,
      count: active.length,
      copies: active.filter(({ shader }) => isStorageCopy(shader)).length,
      textureBytes: dispatches.flatMap(({ textures = {} }) => Object.values(textures))
        .reduce((sum, texture) => sum + charge(texture), 0),
    };
  });
}

/** Dispatches of one layer, or of what is in none. */
export interface LayerDispatches {
  /** Path of the layer, e.g. `layers.3`; empty for nodes outside of layers. */
  readonly layer: string;
  readonly count: number;
  readonly nodes: readonly NodeDispatches[];
}

/** The same by layer, in order of execution; a layer's path ends with the first number in a node's path. */
export function dispatchesByLayer(counts: readonly NodeDispatches[]): LayerDispatches[] {
  const layers = new Map<string, NodeDispatches[]>();
  for (const one of counts) {
    const layer = /^(?:[^.]+\.)*?\d+(?=\.|$)/.exec(one.node)?.[0] ?? "";
    if (!layers.has(layer)) layers.set(layer, []);
    layers.get(layer)!.push(one);
  }
  return [...layers].map(([layer, nodes]) => ({
    layer,
    count: nodes.reduce((sum, { count }) => sum + count, 0),
    nodes,
  }));
}
