// Weights that no kernel of the GPU reads packed become constants: elements as they are, with the other constants. Vectors
// of float32 are that already. Graphs of files have such weights, of whatever type; those of models have none. Filters of
// convolutions stay packed, in the file's own format, where the kernel that takes the node reads them so.

import { OFFSET_ALIGNMENT } from "../../../gpu/constants.ts";
import type { HostData, Node, Value } from "../../graph/graph.ts";
import { hostArray } from "../../ops/host_tensor.ts";
import type { Plan } from "../../plan/plan.ts";
import { plan as planGraph } from "../../plan/planner.ts";
import type { PrepareOptions } from "../backend.ts";
import { loadHostWeights } from "../host_weights.ts";
import { chooseKernel, type KernelWish } from "../kernel_choice.ts";
import { readsPacked } from "../plan_weights.ts";
import type { GpuKernel, GpuKernelContext } from "./kernel.ts";
import { GPU_KERNELS } from "./kernel_table.ts";

/** What decides about kernels. */
type Choice = KernelWish & Omit<GpuKernelContext, "node">;

/** The same plan with such weights read. */
export async function withPlainWeights(
  plan: Plan,
  { signal, ...choice }: Pick<PrepareOptions, "signal"> & Choice,
): Promise<Plan> {
  const isPlain = plainInputs(plan, choice);
  const plain = plainWeights(plan, isPlain);
  const data = await loadHostWeights(plain, { ...signal && { signal } });
  return asConstants(plan, isPlain, ({ id }) => data.get(id)!);
}

/** The same without reading anything, for counting: the constants have no elements. */
export function withUnreadWeights(plan: Plan, choice: Choice): Plan {
  return unread(plan, plainInputs(plan, choice));
}

/** Weights that are read packed though their op's are not always so. */
export function packedFilters(plan: Plan, kernels: readonly GpuKernel[]): Set<number> {
  return new Set(
    plan.steps.flatMap(({ node }, step) =>
      (kernels[step]!.packs ?? []).flatMap((index) => {
        const value = node.inputs[index];
        return value?.role === "weight" ? [value.id] : [];
      })
    ),
  );
}

/** Constants that are read by nothing but kernels which rearrange them. */
export function repackedConstants({ steps }: Plan, kernels: readonly GpuKernel[]): Set<number> {
  const repacked = new Set<number>(), plain = new Set<number>();
  steps.forEach(({ node }, step) => {
    node.inputs.forEach((value, index) => {
      if (!value?.data) return;
      (kernels[step]!.repacks?.includes(index) ? repacked : plain).add(value.id);
    });
  });
  return repacked.difference(plain);
}

type IsPlain = (node: Node, index: number) => boolean;

const mayBePlain: IsPlain = (node, index) => {
  const value = node.inputs[index];
  return value?.role === "weight" && (value.dtype !== "f32" || value.shape.length > 1) &&
    !readsPacked(node, index);
};

function unread(plan: Plan, isPlain: IsPlain): Plan {
  return asConstants(plan, isPlain, ({ dtype }) => hostArray(dtype, { count: 0 }));
}

/** What is not packed by the kernel that takes the node, unless one that rearranges constants comes before it. */
function plainInputs(plan: Plan, { capabilities, storages, ...wish }: Choice): IsPlain {
  const kernelOf = (node: Node) =>
    chooseKernel(GPU_KERNELS, { node, capabilities, storages }, wish);
  const known = unread(plan, mayBePlain).graph.nodes;
  const packing = new Map(plan.graph.nodes.flatMap((node, i) => {
    if (!GPU_KERNELS[node.op]?.some(({ packs }) => packs)) return [];
    const packs = kernelOf(node)?.packs;
    return packs && !kernelOf(known[i]!)?.repacks ? [[node, packs] as const] : [];
  }));
  return (node, index) => mayBePlain(node, index) && !packing.get(node)?.includes(index);
}

function plainWeights({ graph }: Plan, isPlain: IsPlain): Value[] {
  const plain = graph.nodes.flatMap((node) => node.inputs.filter((_, i) => isPlain(node, i)));
  return [...new Set(plain)] as Value[];
}

function asConstants(
  plan: Plan,
  isPlain: IsPlain,
  dataOf: (value: Value) => HostData,
): Plan {
  const plain = plainWeights(plan, isPlain);
  if (plain.length === 0) return plan;
  const { graph, limits, policy } = plan;
  // Packed by one node and plain for another, a weight is two values.
  const ids = graph.nodes.flatMap(({ inputs, outputs }) =>
    [...inputs, ...outputs].map((value) => value?.id ?? 0)
  );
  const free = ids.reduce((most, id) => Math.max(most, id), 0) + 1;
  const constants = new Map(plain.map((weight, i): [number, Value] => {
    const { tensor: _, ...value } = weight;
    return [value.id, { ...value, id: free + i, role: "constant", data: dataOf(weight) }];
  }));
  const nodes = graph.nodes.map((node) => ({
    ...node,
    inputs: node.inputs.map((value, i) => isPlain(node, i) ? constants.get(value!.id) : value),
  }));
  return planGraph({ ...graph, nodes }, { limits, policy, alignment: OFFSET_ALIGNMENT });
}
