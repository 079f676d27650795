// What a WASM kernel is: when it can run a node, and how it becomes instructions of a program.

import type { Dim } from "../../graph/dim/mod.ts";
import type { Node, Value } from "../../graph/graph.ts";
import type { StatePlace } from "./states.ts";

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
  /** Where the pages of a state lie, and the table of their numbers. */
  state(value: Value): StatePlace;
  /** Number of slots in such a table. */
  readonly slotCount: number;
  /**
   * Scratch memory of this many bytes (rounded up to 64) for each thread, allocated at planning time;
   * contents do not outlive a chunk. Thread `t` has its part at `t` times the rounded bytes.
   */
  scratch(bytesPerThread: number): number;
  /** Scratch memory for all threads together; contents live through this node's instructions. */
  sharedScratch(bytes: number): number;
  /**
   * Address of a value in another layout of so many bytes, which instructions that `emit` appends make of it: of a
   * constant once, before the first run; else in shared scratch memory. `inPlace`: `to` may be `from`, where nobody else
   * reads the value and `bytes` are as many as it has.
   */
  prepared(
    value: Value,
    layout: OtherLayout & { readonly emit: (from: number, to: number) => void },
  ): number;
  /** Address of words that instructions read and nobody changes. */
  words(data: Uint32Array): number;
  /** Threads that will run the program. */
  readonly threads: number;
  /** Appends one instruction; symbolic operands are evaluated again when bindings change. */
  emit(opcode: number, operands: readonly Operand[]): void;
}

/** Another layout of a value. */
export interface OtherLayout {
  readonly bytes: number;
  /** Whether it may lie where the value does. */
  readonly inPlace?: boolean;
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
  /** In which layout it wants a node's weight, input 1, to be `prepared`; absent: as it is, or packed. */
  readonly laysOut?: (node: Node) => OtherLayout;
  /** Appends the instructions of the node. */
  lower(lowering: WasmLowering): void;
}
