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
  { inputs, given }: {
    readonly inputs: readonly (HostTensor | undefined)[];
    readonly given: Attributes;
  },
): HostTensor {
  const op = getOp(name);
  const attributes = op.attributes(given);
  return runReference(op, { inputs, types: op.infer(inputs, attributes), attributes })[0]!;
}

/** The same elements under another shape. */
export function withShape({ dtype, data }: HostTensor, shape: readonly number[]): HostTensor {
  return { dtype, shape, data };
}

/** Tensors of one shape along a new axis. */
export function stack(tensors: readonly HostTensor[], axis: number): HostTensor {
  const grown = tensors.map((tensor) => withShape(tensor, tensor.shape.toSpliced(axis, 0, 1)));
  return applyOnHost("concat", { inputs: grown, given: { axis } });
}

/** Entry `index` of an axis, without the axis. */
export function sliceAt(
  tensor: HostTensor,
  { axis, index }: { readonly axis: number; readonly index: number },
): HostTensor {
  const part = slicePart(tensor, { axis, start: index, size: 1 });
  return withShape(part, part.shape.toSpliced(axis, 1));
}

/** `size` entries of an axis from `start` on. */
export function slicePart(
  tensor: HostTensor,
  { axis, start, size }: { readonly axis: number; readonly start: number; readonly size: number },
): HostTensor {
  const { shape } = tensor;
  return applyOnHost("slice", {
    inputs: [tensor],
    given: {
      starts: shape.map((_, i) => i === axis ? start : 0),
      sizes: shape.map((all, i) => i === axis ? size : all),
      steps: shape.map(() => 1),
    },
  });
}

/** A tensor without dims. */
export function scalarTensor(dtype: HostTensor["dtype"], value: number): HostTensor {
  const tensor: HostTensor = { dtype, shape: [], data: hostArray(dtype, { count: 1 }) };
  setElement(tensor, { index: 0, value });
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
