// The record that every op fills in: one file in ops/, one line in ops/mod.ts. It holds the shape
// rule, the scalar reference (the living definition, by which every kernel is judged) and the ordered
// list of kernels by backend; the first kernel whose `when` holds is taken. Callers never ask for
// features themselves.

import type { Capabilities, GpuSlice, GpuTexture, GpuWeight, Shader } from "../../gpu/kernel.ts";
import type { KernelStorages } from "../../gpu/storage_choice.ts";
import type { VirtualTensor } from "../../gpu/virtual_tensor.ts";
import type { AttributeRules } from "./attributes.ts";
import type { Dim, DimEnv } from "./dim.ts";
import type { Attributes, DataType, Node, Value } from "./graph.ts";
import type { HostData, HostTensor } from "./host_tensor.ts";
import type { Rowwise } from "./row_cut.ts";
import type { CaseInput, CaseRandom, OpCase, Tolerance } from "./op_case.ts";

export type { Attributes, CaseInput, CaseRandom, HostData, HostTensor, OpCase, Tolerance };

/** What a shape rule sees and returns. */
export interface TensorType {
  /** Element type. */
  readonly dtype: DataType;
  /** Outermost dimension first. */
  readonly shape: readonly Dim[];
}

/** Everything a scalar reference may use. */
export interface ReferenceCall {
  /** `undefined` stands for an absent optional input. */
  readonly inputs: readonly (HostTensor | undefined)[];
  /** Zero-filled, shaped by the shape rule; an in-place output shares its input's data. */
  readonly outputs: readonly HostTensor[];
  /** Complete attributes of the node. */
  readonly attributes: Attributes;
  /** Values of the symbols. */
  readonly env: DimEnv;
  /**
   * States of one op call, by slot: a `state` input's HostTensor is a placeholder; the data of slot `s`
   * is `stateOf(inputIndex, s)`, shaped like the input.
   */
  stateOf(inputIndex: number, slot: number): HostTensor;
}

/** Where a lowered operand lies: a byte address, or a value that depends on the step's bindings. */
export type Operand = number | Dim;

/** What a WASM kernel's `lower` may ask and do. Addresses are byte addresses in WASM memory. */
export interface WasmLowering {
  /** The node to lower. */
  readonly node: Node;
  /** Address of an activation, input, constant or packed weight. */
  address(value: Value): number;
  /** Handle of a weight that was packed while loading: its layout id, address and extents. */
  weight(value: Value): PackedWeight;
  /** Byte offset of a state inside a slot's block; bases come from the slot table. */
  stateOffset(value: Value): number;
  /** Address of the table of slot bases: u32 per slot. */
  readonly slotTable: number;
  /** Number of slots in that table. */
  readonly slotCount: number;
  /**
   * Scratch memory of this many bytes (rounded up to 64) for each thread, allocated at planning time;
   * contents do not outlive a chunk. Thread `t` has its part at `t` times the rounded bytes.
   */
  scratch(bytesPerThread: number): number;
  /** Scratch memory for all threads together; contents live through this node's instructions. */
  sharedScratch(bytes: number): number;
  /** Address of words that instructions read and nobody changes. */
  words(data: Uint32Array): number;
  /** Threads that will run the program. */
  readonly threads: number;
  /** Appends one instruction; symbolic operands are evaluated again when bindings change. */
  emit(opcode: number, operands: readonly Operand[]): void;
}

/** A weight in WASM memory, rearranged for the kernels that read it. */
export interface PackedWeight {
  /** Id of a layout in wasm/weight_layout.ts. */
  readonly layout: number;
  /** Number format of the file. */
  readonly format: string;
  /** Byte address of the first tile. */
  readonly address: number;
  /** Rows without padding. */
  readonly rows: number;
  /** Columns without padding. */
  readonly columns: number;
}

/** What decides about a WASM kernel. */
export interface WasmKernelContext {
  /** The node to run. */
  readonly node: Node;
  /** `relaxed` = relaxed SIMD dot and multiply-add passed their probe. */
  readonly simd: "baseline" | "relaxed";
  /** Threads that take part. */
  readonly threads: number;
}

/** One way to run an op on WASM. */
export interface WasmKernel {
  /** `op_variant_format`; also the name in profiles, tests and benches. */
  readonly name: string;
  /** True if it can run the node. */
  when(context: WasmKernelContext): boolean;
  /** True: its only instruction takes the rows of the op's `rowwise`, `rowsPerChunk` of them a chunk. */
  readonly inRowChunks?: boolean;
  /** Appends the instructions of the node. */
  lower(lowering: WasmLowering): void;
}

/** What decides about a GPU kernel. */
export interface GpuKernelContext {
  /** The node to run. */
  readonly node: Node;
  /** What the device can do. */
  readonly capabilities: Capabilities;
  /** Where kernels over virtual tensors keep them; absent: by the table in gpu/storage_choice.ts. */
  readonly storages?: KernelStorages | undefined;
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
}

/** What a GPU kernel's `lower` may ask and do. */
export interface GpuLowering extends GpuKernelContext {
  /** Where an activation, input, constant or one-dimensional weight (float32) lies. */
  slice(value: Value): GpuSlice;
  /** A weight matrix or stack of matrices, which was packed while loading. */
  weight(value: Value): GpuWeight;
  /** A state of all slots: slot `s` begins at element `s` times the elements of the state. */
  state(value: Value): GpuSlice;
  /** Number of slots. */
  readonly slotCount: number;
  /** Numbers that are known now, in memory of their own; equal data is stored once. */
  constant(data: Float32Array | Uint32Array | Int32Array): GpuSlice;
  /** Largest value of a dim in the plan. */
  most(dim: Dim): number;
  /**
   * How many positions of a cache the step's rows may look at, rounded up to a power of two: a symbol by which sizes
   * may choose between kernels. Absent where it is not known.
   */
  readonly reach: Dim | undefined;
  /** Memory for this node alone, until its last dispatch; contents at start are undefined. */
  scratch(bytes: number): GpuSlice;
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
  /** Emits the dispatches of the node. */
  lower(lowering: GpuLowering): void;
}

/** One op. */
export interface OpRecord {
  /** Name by which nodes refer to it; also the name of its file. */
  readonly name: string;
  /** One line: what it computes. */
  readonly summary: string;
  /** What each attribute may be, and its default. */
  readonly rules: AttributeRules;
  /**
   * The same attributes, checked and with defaults filled in; nodes hold what this returns.
   *
   * @throws {TypeError} On an attribute that is unknown, missing or of the wrong kind or value.
   */
  attributes(given: Attributes): Attributes;
  /**
   * Shape rule.
   *
   * @throws {TypeError} On wrong kinds of inputs. @throws {RangeError} On shapes that do not fit.
   */
  infer(
    inputs: readonly (TensorType | undefined)[],
    attributes: Attributes,
  ): TensorType[];
  /** Plain loops, float64 accumulation, never optimised. */
  reference(call: ReferenceCall): void;
  /** `inPlace[o] = i`: output `o` is input `i`'s memory, changed (states) or seen anew (views). */
  readonly inPlace?: Readonly<Record<number, number>>;
  /** True if nothing is computed: the node is no step of a plan and has no kernel. */
  readonly view?: boolean;
  /** How a node works row by row, so that it can follow another one without a barrier; absent: it does not. */
  rowwise?(node: Node): Rowwise | undefined;
  /** Inputs to judge kernels by: sizes 0, 1, around SIMD widths and blocks, every attribute. */
  readonly cases?: (random: CaseRandom) => OpCase[];
  /** How far a kernel may be from the reference; the default is 1e-5 of the largest magnitude. */
  readonly tolerance?: Tolerance;
  /** Kernels by backend; the first whose `when` holds is taken. */
  readonly kernels: {
    /** WASM kernels, best first. */
    readonly wasm: readonly WasmKernel[];
    /** WebGPU kernels, best first. */
    readonly gpu: readonly GpuKernel[];
  };
}
