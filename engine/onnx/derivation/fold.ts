// Constants computed while deriving, by the references of the ops: at once where everything is small and
// known, later (when the result is loaded) where weights take part, so that no weight is held twice.

import { product } from "../../graph/dim/mod.ts";
import type { Attributes, TensorType } from "../../graph/graph.ts";
import { elementCount, hostArray, type HostTensor } from "../../ops/host_tensor.ts";
import type { OpRecord } from "../../ops/op.ts";
import { foldFast } from "./weight_folds.ts";
import { load } from "./constants.ts";
import { isConstant, MOST_KNOWN_ELEMENTS, type Tensor } from "./tensor.ts";
import { isQ8 } from "../../ops/q8_rows.ts";

/** What an op is given, and the types of what it gives. */
export interface OpUse<T> {
  readonly inputs: readonly (T | undefined)[];
  readonly types: readonly TensorType[];
  readonly attributes: Attributes;
}

/** Runs an op's reference on host tensors. */
export function runReference(
  op: OpRecord,
  { inputs, types, attributes }: OpUse<HostTensor>,
): HostTensor[] {
  const inPlace = op.inPlace?.(attributes);
  const outputs = types.map(({ dtype, shape }, i): HostTensor => {
    const sizes = shape as readonly number[];
    const source = inputs[inPlace?.[i] ?? -1];
    return {
      dtype,
      shape: sizes,
      data: source?.data ?? hostArray(dtype, { count: elementCount(sizes) }),
    };
  });
  op.reference({
    inputs,
    outputs,
    attributes,
    env: {},
    stateOf: () => {
      throw new TypeError(`Cannot fold ${op.name}: it needs a state`);
    },
  });
  return outputs;
}

/** Results of an op on constants; undefined if they are to be computed at run time. */
export function fold(
  op: OpRecord,
  { inputs, types, attributes }: OpUse<Tensor>,
): Tensor[] | undefined {
  const given = inputs.filter((input) => input !== undefined);
  if (!given.every(isConstant) || !types.every(isStatic)) return undefined;
  const counts = types.map(({ shape }) => elementCount(shape as readonly number[]));
  const small = given.every(({ known }) => known) &&
    counts.every((count) => count <= MOST_KNOWN_ELEMENTS);
  if (small) {
    const known = runReference(op, {
      inputs: inputs.map((input) => input?.known),
      types,
      attributes,
    });
    return known.map((tensor, i) => ({ kind: "tensor", type: types[i]!, known: tensor }));
  }
  // A result much larger than what it is made of is better made on the device, if at all.
  const room = 2 * given.reduce((sum, { type }) => sum + elementCount(type.shape as number[]), 64);
  if (counts.some((count) => count > room)) return undefined;
  return types.map((type, i): Tensor => ({
    kind: "tensor",
    type,
    stored: {
      load() {
        const given = inputs.map((input) => input && load(input));
        return foldFast(op.name, { inputs: given, type, attributes }) ??
          runReference(op, { inputs: given, types, attributes })[i]!;
      },
    },
  }));
}

function isStatic({ dtype, shape }: TensorType): boolean {
  return !isQ8(dtype) && typeof product(shape) === "number" &&
    shape.every((dim) => typeof dim === "number");
}
