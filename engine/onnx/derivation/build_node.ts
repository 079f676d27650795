// What one node's translation can do (OnnxCall): apply engine ops, which fold where all is known, become
// shape arithmetic where elements are dims, and nodes otherwise; and look at contents.

import type { OnnxGraph, OnnxNode } from "../file/model.ts";
import { type Dim, equal } from "../../graph/dim/mod.ts";
import type { Attributes, TensorType } from "../../graph/graph.ts";
import {
  elementCount,
  getElement,
  hostArray,
  type HostTensor,
  setElement,
} from "../../ops/host_tensor.ts";
import { errorAt } from "../../graph/node_error.ts";
import { getOp } from "../../ops/mod.ts";

import { DimsDiffer } from "../../ops/shape_rules.ts";
import type { Derivation } from "./derivation.ts";
import { fold } from "./fold.ts";
import { NeedsContents, NeedsHost, NotSupported, type OnnxCall, type OnnxOp } from "./op.ts";
import { constantTensor } from "./constants.ts";
import { dimsOf, evaluateOnDims } from "./dim_arithmetic.ts";
import type { Tensor } from "./tensor.ts";

/** A node to be translated. */
export interface NodeBuild extends Derivation {
  readonly op: OnnxOp;
  readonly version: number;
  readonly node: OnnxNode;
  inline(body: OnnxGraph, inputs: readonly Tensor[]): Tensor[];
}

/**
 * Translates a node.
 *
 * @throws {NeedsContents | NeedsHost | NotSupported} See op.ts.
 * @throws {TypeError | RangeError} If inputs do not fit.
 */
export function buildNode(
  build: NodeBuild,
  inputs: readonly (Tensor | undefined)[],
): readonly (Tensor | undefined)[] {
  const { op, version, node, inline } = build;
  const attributes = op.read(node, version);
  const present = inputs.slice(0, inputs.findLastIndex((input) => input !== undefined) + 1);
  let count = 0;

  function input(index: number): Tensor {
    const found = present[index];
    if (found) return found;
    throw new TypeError(`input ${index} is missing`);
  }

  function apply(
    name: string,
    given: readonly (Tensor | undefined)[],
    attributes: Attributes = {},
  ): Tensor[] {
    return applyOp(
      build,
      {
        name,
        inputs: given,
        given: attributes,
        label: count++ ? `${node.name}.${count - 1}` : node.name,
      },
    );
  }

  const call: OnnxCall = {
    node,
    version,
    attributes,
    inputs: present,
    wanted: node.outputs.map((name) => name !== ""),
    input,
    take: (required, optional = 0) =>
      Array.from({ length: required + optional }, (_, i) => i < required ? input(i) : present[i]),
    op: apply,
    one: (name, given, attributes) => apply(name, given, attributes)[0]!,
    constant: constantTensor,
    scalar(dtype, value) {
      const tensor: HostTensor = { dtype, shape: [], data: hostArray(dtype, { count: 1 }) };
      setElement(tensor, { index: 0, value });
      return constantTensor(tensor);
    },
    fromDims(dims, dtype = "i64", shape = [dims.length]) {
      return tensorOfDims(dims, { dtype, shape });
    },
    dims(index) {
      const found = dimsOf(input(index)), { known, stored } = input(index);
      if (found) return found;
      if (!known && !stored) throw new NeedsContents(index);
      throw new RangeError(
        `input ${index} is no list of sizes: they are few whole numbers within 2^53`,
      );
    },
    numbers(index) {
      const { known, dims, stored } = input(index), found = known ?? stored?.load();
      if (found) return Array.from({ length: found.data.length }, (_, i) => getElement(found, i));
      if (dims?.every((dim) => typeof dim === "number")) return dims as readonly number[];
      throw new NeedsContents(index);
    },
    contents(index) {
      const { known, stored } = input(index);
      const found = known ?? stored?.load();
      if (found) return found;
      throw new NeedsContents(index);
    },
    inline,
    onHost() {
      throw new NeedsHost();
    },
    unsupported(detail) {
      throw new NotSupported(detail);
    },
  };
  return op.build!(call);
}

/** Integers that may depend on symbols; known if none does. */
function tensorOfDims(
  dims: readonly Dim[],
  { dtype, shape }: { readonly dtype: HostTensor["dtype"]; readonly shape: readonly number[] },
): Tensor {
  if (elementCount(shape) !== dims.length) {
    throw new RangeError(`${dims.length} dims for [${shape.join(", ")}]`);
  }
  if (!dims.every((dim) => typeof dim === "number")) {
    return { kind: "tensor", type: { dtype, shape }, dims };
  }
  const known: HostTensor = { dtype, shape, data: hostArray(dtype, { count: dims.length }) };
  dims.forEach((dim, i) => setElement(known, { index: i, value: dim }));
  return constantTensor(known);
}

function applyOp(
  { builder, values }: NodeBuild,
  { name, inputs, given, label }: {
    readonly name: string;
    readonly inputs: readonly (Tensor | undefined)[];
    readonly given: Attributes;
    readonly label: string;
  },
): Tensor[] {
  const op = getOp(name);
  let attributes: Attributes, types: TensorType[];
  try {
    attributes = op.attributes(given);
    types = op.infer(inputs.map((input) => input?.type), attributes);
    const early = fold(op, { inputs, types, attributes }) ??
      evaluateOnDims(op, { inputs, types, attributes });
    if (early) return early.map(simplified);
  } catch (error) {
    if (error instanceof DimsDiffer) error.related.push(...otherPairs(inputs));
    throw errorAt(error, `Cannot add ${name} at ${label}`);
  }
  const made = inputs.map((input, i) => input && values.valueOf(input, op.packedInput === i));
  return builder.op(name, made, attributes, label, types).map(values.adopt);
}

// What is wrong with one axis is often wrong with its neighbours for the same reason.
function otherPairs(inputs: readonly (Tensor | undefined)[]): [Dim, Dim][] {
  const [first, ...others] = inputs.flatMap((input) => input ? [input.type.shape] : []);
  return others.filter((shape) => shape.length === first?.length)
    .flatMap((shape) => shape.map((dim, axis): [Dim, Dim] => [first![axis]!, dim]))
    .filter(([a, b]) => !equal(a, b));
}

// Dims that turned out to be numbers are contents.
function simplified(tensor: Tensor): Tensor {
  const { dims, type } = tensor;
  return dims?.every((dim) => typeof dim === "number")
    ? tensorOfDims(dims, { dtype: type.dtype, shape: type.shape as readonly number[] })
    : tensor;
}
