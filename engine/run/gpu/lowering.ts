// Plan to dispatches: chooses a kernel for every step and collects what it emits. Lowering needs to know
// where things lie, and memory needs to know what lowerings ask for; so it runs twice, first on ranges
// without buffers. What is known of a kind of node by then is only looked up the second time.

import type { Capabilities } from "../../../gpu/kernel.ts";
import type { Count, ProgramDispatch } from "../../../gpu/program.ts";
import { ResourceError, UnsupportedError } from "../../errors.ts";
import { compile, type Dim, type DimEnv, formatDim } from "../../graph/dim/mod.ts";
import type { Node, Value } from "../../graph/graph.ts";
import { chooseKernel, type KernelWish } from "../kernel_choice.ts";
import { GPU_KERNELS } from "./kernel_table.ts";
import type { GpuDispatch, GpuKernel, GpuKernelContext, GpuLowering } from "./kernel.ts";
import { apartDim, limitsWithReach, reachDim } from "./cache_reach.ts";
import { type JoinableDispatch, joinNorms } from "./join_norms.ts";
import { createRecorder, type GpuMemoryMap, kindOf } from "./replay.ts";
import type { TableLayout } from "./page_tables.ts";
import { aligned } from "./values.ts";
import { type Plan, rootOf } from "../../plan/plan.ts";
import { maximumOf } from "../../plan/sizes.ts";

/** Whether a device has a kernel for a node. */
export function takenBy(
  capabilities: Capabilities,
  wish: KernelWish = {},
): (node: Node) => boolean {
  return (node) => chooseKernel(GPU_KERNELS, { node, capabilities }, wish) !== undefined;
}

/** The kernel of each step of a plan. */
export function chooseGpuKernels(
  plan: Plan,
  capabilities: Capabilities,
  { storages, ...wish }: KernelWish & Pick<GpuKernelContext, "storages">,
): GpuKernel[] {
  return plan.steps.map(({ node }) => {
    const kernel = chooseKernel(GPU_KERNELS, { node, capabilities, storages }, wish);
    if (kernel) return kernel;
    throw noKernel(node, wish.forceKernels?.[node.name]);
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

/** A plan with the kernels of its steps, and what they are lowered for. */
export interface ChosenPlan
  extends Pick<GpuLowering, "capabilities">, Pick<GpuKernelContext, "storages"> {
  readonly plan: Plan;
  readonly kernels: readonly GpuKernel[];
  readonly tables: TableLayout;
  /** See PrepareOptions; default false. */
  readonly rowByRow?: boolean | undefined;
}

/** Dispatches of a plan in some memory, in order, a list for each step. */
export type Lowering = (memory: GpuMemoryMap) => ProgramDispatch<DimEnv>[][];

/**
 * What lowers a plan, once in any memory and then in another one. Ranges of one memory are of the same buffer from the same
 * offset on wherever they are in the other.
 */
export function createLowering(
  { plan, kernels, capabilities, storages, tables, rowByRow = false }: ChosenPlan,
): Lowering {
  const counts = createCounts();
  const limits = limitsWithReach(plan), reach = reachDim(plan), apart = apartDim(plan);
  const replays = new Map<string, (node: Node) => JoinableDispatch[]>();
  const kinds = new Map<Node, string>();
  let memory!: GpuMemoryMap;
  const recorded = {
    slice: (value: Value) => memory.slice(value),
    weight: (value: Value) => memory.weight(value),
    state: (value: Value) => memory.state(rootOf(plan, value)),
    constant: (data: ArrayBufferView) => memory.constant(data),
  };

  function lower(node: Node, kernel: GpuKernel): JoinableDispatch[] {
    const pages = tables.tableOf(node, ({ shape }) => maximumOf(shape[0]!, limits));
    let kind = kinds.get(node);
    if (!kind) kinds.set(node, kind = kindOf(kernel.name, node) + JSON.stringify(pages));
    const known = replays.get(kind);
    if (known) return known(node);
    const recorder = createRecorder(node, recorded);
    const dispatches: JoinableDispatch[] = [];
    const programmed = (
      { shader, storage, textures, uniforms = {}, workgroups, joins }: GpuDispatch,
    ) => ({
      ...{ name: kernel.name, shader, storage, textures, ...joins && { joins } },
      uniforms: Object.fromEntries(
        Object.entries(uniforms).map(([name, dim]) => [name, counts(dim)]),
      ),
      workgroups: workgroups.map(counts),
    });
    const bounded = (bytes: number) => {
      if (bytes > capabilities.maxBindingBytes) throw tooLarge(node, bytes, capabilities);
      return bytes;
    };
    let scratch = 0, textures = 0;
    kernel.lower({
      node,
      capabilities,
      storages,
      pages,
      slice: recorder.slice,
      weight(value) {
        const packed = recorder.weight(value);
        if (packed) return packed;
        throw new TypeError(`${value.name} is not a weight matrix`);
      },
      state: recorder.state,
      constant: recorder.constant,
      most: (dim) => maximumOf(dim, limits),
      reach,
      apart,
      rowByRow,
      carried: (bytes) => recorder.keep(() => memory.carried(bounded(bytes))),
      scratch(bytes) {
        const at = scratch, end = scratch += aligned(bounded(bytes));
        return recorder.keep(() => {
          const all = memory.scratch(end);
          return { ...all, offset: all.offset + at, bytes };
        });
      },
      texture: (tensor, contents) => memory.texture(tensor, textures++, contents),
      prepared: (name, bytes, fill) => memory.prepared(name, bytes, (to) => programmed(fill(to))),
      emit: (dispatch) => dispatches.push(programmed(dispatch)),
    });
    const replay = recorder.replay(dispatches);
    if (replay) replays.set(kind, replay);
    return dispatches;
  }

  return (given) => {
    memory = given;
    const lists = plan.steps.map(({ node }, index) => lower(node, kernels[index]!));
    return joinNorms(plan, lists);
  };
}

function tooLarge(node: Node, bytes: number, { maxBindingBytes }: Capabilities): ResourceError {
  return new ResourceError(
    `takes ${bytes} bytes beside its results, and the GPU's kernels can address ${maxBindingBytes} at once`,
    { place: node.name, remedy: "Lower the batch, or use device wasm" },
  );
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
