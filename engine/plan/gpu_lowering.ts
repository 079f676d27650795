// Plan to dispatches: chooses a kernel for every step and collects what it emits. Lowering needs to know
// where things lie, and memory needs to know what lowerings ask for; so it runs twice, first on ranges
// without buffers.

import type { Capabilities, GpuSlice, GpuWeight } from "../../gpu/kernel.ts";
import type { Count, ProgramDispatch } from "../../gpu/program.ts";
import { UnsupportedError } from "../errors.ts";
import { compile, type Dim, type DimEnv, formatDim } from "../graph/dim.ts";
import type { Node, Value } from "../graph/graph.ts";
import type { GpuKernel, GpuLowering } from "../graph/op.ts";
import { getOp } from "../graph/ops/mod.ts";
import type { PrepareOptions } from "./backend.ts";
import { aligned } from "./gpu_values.ts";
import { limitsWithReach, reachDim } from "./gpu_reach.ts";
import { type Plan, rootOf } from "./plan.ts";
import { maximumOf } from "./sizes.ts";

/** Where things lie. */
export interface GpuMemoryMap {
  slice(value: Value): GpuSlice;
  weight(value: Value): GpuWeight | undefined;
  state(value: Value): GpuSlice;
  scratch(bytes: number): GpuSlice;
  constant(data: ArrayBufferView): GpuSlice;
}

/** The kernel of each step of a plan. */
export function chooseGpuKernels(
  plan: Plan,
  capabilities: Capabilities,
  { forceKernels, excludeKernels }: Pick<PrepareOptions, "forceKernels" | "excludeKernels">,
): GpuKernel[] {
  return plan.steps.map(({ node }) => {
    const forced = forceKernels?.[node.op];
    const kernel = getOp(node.op).kernels.gpu.find((candidate) =>
      (forced === undefined || candidate.name === forced) &&
      !excludeKernels?.has(candidate.name) && candidate.when({ node, capabilities })
    );
    if (kernel) return kernel;
    throw noKernel(node, forced);
  });
}

function noKernel(node: Node, forced: string | undefined): UnsupportedError {
  const formats = node.inputs.flatMap((input) => input?.tensor?.format ?? []);
  const wanted = forced === undefined ? `no kernel for ${node.op}` : `no kernel ${forced}`;
  const detail = formats.length > 0 ? ` on ${formats.join(", ")}` : "";
  return new UnsupportedError(`the GPU backend has ${wanted}${detail} with these shapes`, {
    place: node.name,
    remedy: "Use device wasm",
  });
}

/** Dispatches of a plan, in order. */
export function lowerToGpu(
  plan: Plan,
  kernels: readonly GpuKernel[],
  capabilities: Capabilities,
  slotCount: number,
  memory: GpuMemoryMap,
): ProgramDispatch<DimEnv>[] {
  const counts = createCounts();
  const limits = limitsWithReach(plan), reach = reachDim(plan);
  return plan.steps.flatMap(({ node }, index) => {
    const kernel = kernels[index]!;
    const dispatches: ProgramDispatch<DimEnv>[] = [];
    let scratch = 0;
    const lowering: GpuLowering = {
      node,
      capabilities,
      slotCount,
      slice: memory.slice,
      weight(value) {
        const packed = memory.weight(value);
        if (packed) return packed;
        throw new TypeError(`${value.name} is not a weight matrix`);
      },
      state: (value) => memory.state(rootOf(plan, value)),
      constant: memory.constant,
      most: (dim) => maximumOf(dim, limits),
      reach,
      scratch(bytes) {
        const at = scratch;
        scratch += aligned(bytes);
        const all = memory.scratch(scratch);
        return { ...all, offset: all.offset + at, bytes };
      },
      emit({ shader, storage, uniforms = {}, workgroups }) {
        dispatches.push({
          name: kernel.name,
          shader,
          storage,
          uniforms: Object.fromEntries(
            Object.entries(uniforms).map(([name, dim]) => [name, counts(dim)]),
          ),
          workgroups: workgroups.map(counts),
        });
      },
    };
    kernel.lower(lowering);
    return dispatches;
  });
}

/** Equal dims become the same function, so that equal uniforms are found to be equal. */
function createCounts(): (dim: Dim) => Count<DimEnv> {
  const known = new Map<string, Count<DimEnv>>();
  return (dim) => {
    if (typeof dim === "number") return dim;
    const key = formatDim(dim);
    if (!known.has(key)) known.set(key, compile(dim));
    return known.get(key)!;
  };
}
