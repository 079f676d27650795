// What lowerings to WASM share: addresses of optional inputs, extents of rows, and the one call that
// emits an instruction by name.

import { instruction, type OpcodeName, type OperandsOf } from "../../../../wasm/opcodes.ts";
import { CACHE_KINDS } from "../../../../wasm/opcodes_activation.ts";
import type { Operand, WasmLowering } from "../kernel.ts";
import { type Dim, product } from "../../../graph/dim/mod.ts";
import type { Node, StateType, Value } from "../../../graph/graph.ts";
import { ATTENTION_INPUTS, type AttentionInput } from "../../../ops/attention_inputs.ts";
import { rowCut, rowsPerChunk } from "../../../ops/row_cut.ts";

/** Appends one instruction, operands by name. */
export function emit<Name extends OpcodeName>(
  lowering: WasmLowering,
  { name, operands }: { readonly name: Name; readonly operands: OperandsOf<Name, Operand> },
): void {
  lowering.emit(...instruction<Name, Operand>(name, operands));
}

/** Address of input `index`, 0 for an absent optional one. */
export function inputAddress({ node, address }: WasmLowering, index: number): number {
  const value = node.inputs[index];
  return value ? address(value) : 0;
}

/** Address of an input of attention, 0 for an absent one. */
export function attentionAddress(lowering: WasmLowering, name: AttentionInput): number {
  return inputAddress(lowering, ATTENTION_INPUTS.indexOf(name));
}

/** Address of the first output. */
export function outputAddress({ node, address }: WasmLowering): number {
  return address(node.outputs[0]!);
}

/** Number of elements of a value. */
export function countOf({ shape }: Value): Dim {
  return product(shape);
}

/** Number of rows: the product of all dims but the last. */
export function rowsOf({ shape }: Value): Dim {
  return product(shape.slice(0, -1));
}

/** Rows, in the sense of `rowsOf`, of a chunk of an op that works row by row; the last dim is known. */
export function rowsOfChunk({ shape }: Value): number {
  const cut = rowCut(shape);
  // Nothing is cut where there is nothing.
  return cut ? rowsPerChunk(cut) * cut.width / (shape.at(-1) as number) : 1;
}

/** Whether input `index` (0 by default) has a last dim that is known now, and is not empty. */
export function hasStaticColumns({ node }: { readonly node: Node }, index = 0): boolean {
  return isStatic(node.inputs[index]!.shape.at(-1));
}

/** Number of the element type of keys or values, for kernels that read or write them. */
export function cacheKind({ dtype }: Value): number {
  return CACHE_KINDS[dtype as StateType];
}

/** A positive number and no expression. */
export function isStatic(dim: Dim | undefined): dim is number {
  return typeof dim === "number" && dim > 0;
}
