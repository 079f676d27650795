// What host nodes do with whole tensors: run an engine op on them, stack and unstack them along an axis.

import type { Attributes } from "../../graph/graph.ts";
import {
  elementCount,
  getElement,
  hostArray,
  type HostTensor,
  setElement,
} from "../../ops/host_tensor.ts";
import { getOp } from "../../ops/mod.ts";
import { runReference } from "./fold.ts";

/** Result of an engine op with one output. */
export function applyOnHost(
  name: string,
  inputs: readonly (HostTensor | undefined)[],
  given: Attributes,
): HostTensor {
  const op = getOp(name);
  const attributes = op.attributes(given);
  return runReference(op, inputs, op.infer(inputs, attributes), attributes)[0]!;
}

/** The same elements under another shape. */
export function withShape({ dtype, data }: HostTensor, shape: readonly number[]): HostTensor {
  return { dtype, shape, data };
}

/** Tensors of one shape along a new axis. */
export function stack(tensors: readonly HostTensor[], axis: number): HostTensor {
  const grown = tensors.map((tensor) => withShape(tensor, tensor.shape.toSpliced(axis, 0, 1)));
  return applyOnHost("concat", grown, { axis });
}

/** Entry `index` of an axis, without the axis. */
export function sliceAt(tensor: HostTensor, axis: number, index: number): HostTensor {
  const part = slicePart(tensor, axis, index, 1);
  return withShape(part, part.shape.toSpliced(axis, 1));
}

/** `size` entries of an axis from `start` on. */
export function slicePart(
  tensor: HostTensor,
  axis: number,
  start: number,
  size: number,
): HostTensor {
  const { shape } = tensor;
  return applyOnHost("slice", [tensor], {
    starts: shape.map((_, i) => i === axis ? start : 0),
    sizes: shape.map((all, i) => i === axis ? size : all),
    steps: shape.map(() => 1),
  });
}

/** A tensor without dims. */
export function scalarTensor(dtype: HostTensor["dtype"], value: number): HostTensor {
  const tensor: HostTensor = { dtype, shape: [], data: hostArray(dtype, 1) };
  setElement(tensor, 0, value);
  return tensor;
}

/**
 * The only element of a tensor.
 *
 * @throws {RangeError} If it has none or several.
 */
export function singleElement(tensor: HostTensor, what: string): number {
  if (elementCount(tensor.shape) === 1) return getElement(tensor, 0);
  throw new RangeError(`${what} must be one element: it is of shape [${tensor.shape.join(", ")}]`);
}
