// What lowerings to WebGPU share: ranges of inputs and outputs, and the number of workgroups for so many
// elements; whether there is room.

import type { Capabilities, GpuSlice } from "../../../../gpu/kernel.ts";
import type { GpuDispatch, GpuLowering } from "../kernel.ts";
import { boundsOf, ceilDiv, type Dim } from "../../../graph/dim/mod.ts";

/** Range of input `index`. */
export function inputSlice({ node, slice }: GpuLowering, index: number): GpuSlice {
  return slice(node.inputs[index]!);
}

/** `{ name: range }` for an optional input, `{}` if it is absent. */
export function optionalSlice(
  lowering: GpuLowering,
  { name, index }: { readonly name: string; readonly index: number },
): Readonly<Record<string, GpuSlice>> {
  return lowering.node.inputs[index] ? { [name]: inputSlice(lowering, index) } : {};
}

/** Range of the first output. */
export function outputSlice({ node, slice }: GpuLowering): GpuSlice {
  return slice(node.outputs[0]!);
}

/** Whether the elements of a line are so many that a workgroup shares them, rather than one invocation taking all. */
export function isLong(length: Dim): boolean {
  return boundsOf(length).max > 2048;
}

/** Workgroups for `count` things, `perGroup` in each. */
export function groupsFor(count: Dim, perGroup: number): GpuDispatch["workgroups"] {
  return [ceilDiv(count, perGroup)];
}

/** Whether scratch memory of these bytes can be bound, and leaves as much of its buffer to all values. */
export function hasScratch(
  { maxBindingBytes, maxBufferBytes }: Capabilities,
  bytes: readonly number[],
): boolean {
  const sum = bytes.reduce((sum, own) => sum + own, 0);
  return Math.max(...bytes) <= maxBindingBytes && 2 * sum <= maxBufferBytes;
}
