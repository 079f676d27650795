// What a WebGPU kernel is: when it can run a node, and how it becomes dispatches.

import type { PageTable } from "../../../gpu/kernels/cache_pages.ts";
import type { Capabilities, GpuSlice, GpuTexture, GpuWeight, Shader } from "../../../gpu/kernel.ts";
import type { Addends } from "../../../gpu/kernels/matmul/rows.ts";
import type { RmsNormQ8Params } from "../../../gpu/kernels/rms_norm_q8.ts";
import type { KernelStorages } from "../../../gpu/storage_choice.ts";
import type { VirtualTensor } from "../../../gpu/virtual_tensor.ts";
import type { Dim } from "../../graph/dim/mod.ts";
import type { Node, Value } from "../../graph/graph.ts";
import type { KernelWish } from "../kernel_choice.ts";

/** What decides about a GPU kernel. */
export interface GpuKernelContext {
  /** The node to run. */
  readonly node: Node;
  /** What the device can do. */
  readonly capabilities: Capabilities;
  /** Where kernels over virtual tensors keep them; absent: by the table in gpu/storage_choice.ts. */
  readonly storages?: KernelStorages | undefined;
}

/** What stands among excluded kernels for subgroup matrices, which several kernels use where a device has them. */
export const SUBGROUP_MATRICES = "subgroup_matrices";

/** What a device can do without what is excluded of it, and may. */
export function capabilitiesFor(
  capabilities: Capabilities,
  { excludeKernels, roundsToHalves }: Pick<KernelWish, "excludeKernels" | "roundsToHalves">,
): Capabilities {
  if (excludeKernels?.has(SUBGROUP_MATRICES)) return { ...capabilities, subgroupMatrix: false };
  return roundsToHalves && capabilities.subgroupMatrix
    ? { ...capabilities, roundsToHalves }
    : capabilities;
}

/** One dispatch of a GPU kernel. Symbolic sizes are evaluated again when bindings change. */
export interface GpuDispatch {
  /** What runs; equal texts share a pipeline. */
  readonly shader: Shader;
  /** Memory of the shader's storage bindings, by name. No two may overlap if one of them is written. */
  readonly storage: Readonly<Record<string, GpuSlice>>;
  /** The shader's textures, by name. */
  readonly textures?: Readonly<Record<string, GpuTexture>>;
  /** Values of the shader's uniforms, by name. */
  readonly uniforms?: Readonly<Record<string, Dim>>;
  /**
   * Workgroups along x, y, z. A single count may be over 65,535: it is then spread over x and y, and the shader
   * must ask `flat_workgroup(…)` of gpu/wgsl.ts for its index and be guarded against indices beyond the count.
   * If a count is 0 nothing runs.
   */
  readonly workgroups: readonly [Dim] | readonly [Dim, Dim] | readonly [Dim, Dim, Dim];
  /** What a join of dispatches has to know (join_norms.ts). */
  readonly joins?: JoinedPart;
}

/** Sums of splits that are added up, or the norm in front of a product. */
export interface JoinedPart {
  readonly sums?: Addends;
  readonly norm?: RmsNormQ8Params;
}

/** What a GPU kernel's `lower` may ask and do. */
export interface GpuLowering extends GpuKernelContext {
  /** Where an activation, input, constant or one-dimensional weight (float32) lies. */
  slice(value: Value): GpuSlice;
  /** A weight matrix or stack of matrices, which was packed while loading. */
  weight(value: Value): GpuWeight;
  /** All pages of a state. */
  state(value: Value): GpuSlice;
  /** Where pages of the states that the node reads or writes are found; absent: it has none. */
  readonly pages: PageTable | undefined;
  /** Numbers that are known now, in memory of their own; equal data is stored once. */
  constant(data: Float32Array | Uint32Array | Int32Array): GpuSlice;
  /** Largest value of a dim in the plan. */
  most(dim: Dim): number;
  /**
   * How many positions of a cache the step's rows may look at, rounded up to a power of two: a symbol by which sizes
   * may choose between kernels. Absent where it is not known.
   */
  readonly reach: Dim | undefined;
  /** Rows of a step in which each is of another session, which share no keys; 0 in others. Absent: that is not known. */
  readonly apart: Dim | undefined;
  /** See PrepareOptions. */
  readonly rowByRow: boolean;
  /** Memory of a name for what a dispatch makes of weights while they are loaded, once. */
  prepared(name: string, bytes: number, fill: (to: GpuSlice) => GpuDispatch): GpuSlice;
  /** Memory for this node alone, until its last dispatch; contents at start are undefined. */
  scratch(bytes: number): GpuSlice;
  /** The same, but once a node, apart from what `scratch` gives: the node before may fill it. */
  carried(bytes: number): GpuSlice;
  /**
   * A texture for this node alone, until its last dispatch; contents at start are undefined. With `contents` it holds the
   * elements of a constant in another order, x fastest, is filled while loading and never written.
   */
  texture(
    tensor: VirtualTensor,
    contents?: { readonly value: Value; texels(): Float32Array<ArrayBuffer> },
  ): GpuTexture;
  /** Appends a dispatch, which sees what the dispatches before it wrote. */
  emit(dispatch: GpuDispatch): void;
}

/** One way to run an op on WebGPU. */
export interface GpuKernel {
  /** `op_variant_format`; also the name in profiles, tests and benches. */
  readonly name: string;
  /** True if it can run the node. */
  when(context: GpuKernelContext): boolean;
  /** Inputs that it reads only as `texture` or `constant` rearranged them: they need no place of their own. */
  readonly repacks?: readonly number[];
  /** Inputs that it reads packed, by `weight`, of ops whose weights other kernels read plain. */
  readonly packs?: readonly number[];
  /** Emits the dispatches of the node. */
  lower(lowering: GpuLowering): void;
}
