// Shape arithmetic while deriving (spec TL-2): ops on integer tensors whose elements are dims. What only
// moves elements (Gather, Slice, Concat, …) runs the op's own reference on the numbers of the elements;
// what computes has an entry here. The result is a tensor whose elements are dims, and no node.

import {
  add,
  ceilDiv,
  compare,
  type Dim,
  equal,
  exactDiv,
  floorDiv,
  max,
  min,
  mod,
  mul,
  product,
  sub,
} from "../../graph/dim/mod.ts";
import type { TensorType } from "../../graph/graph.ts";
import { elementCount, hostArray, type HostTensor } from "../../ops/host_tensor.ts";
import type { OpRecord } from "../../ops/op.ts";
import { broadcastIndex } from "../../ops/shape_rules.ts";
import { type OpUse, runReference } from "./fold.ts";
import { MOST_KNOWN_ELEMENTS, type Tensor } from "./tensor.ts";

const INTEGERS = new Set(["i64", "i32", "u64", "u32", "i16", "u16", "i8", "u8", "bool"]);
const FLOATS = new Set(["f32", "f64", "f16"]);

type Binary = (a: Dim, b: Dim) => Dim | undefined;

const truth = (value: boolean | undefined): Dim | undefined =>
  value === undefined ? undefined : +value;

/** Kinds of `binary`, also under the name of an op of their own. */
const BINARY: Readonly<Record<string, Binary>> = {
  add,
  sub,
  mul,
  div: divide,
  mod: (a, b) => equal(b, 0) ? undefined : mod(a, b),
  min,
  max,
  equal: (a, b) => truth(areEqual(a, b)),
  less: (a, b) => truth(isLess(a, b)),
  greater: (a, b) => truth(isLess(b, a)),
  less_equal: (a, b) => truth(not(isLess(b, a))),
  greater_equal: (a, b) => truth(not(isLess(a, b))),
  and: (a, b) => bits(a, b, (x, y) => x && y),
  or: (a, b) => bits(a, b, (x, y) => x || y),
};

const UNARY: Readonly<Record<string, (a: Dim) => Dim | undefined>> = {
  neg: (a) => mul(a, -1),
  abs: (a) => compare(a, 0) === ">=" || compare(a, 0) === ">" ? a : undefined,
  ceil: (a) => a,
  floor: (a) => a,
  round: (a) => a,
  identity: (a) => a,
  not: (a) => typeof a === "number" ? 1 - a : undefined,
};

/** Elements as dims: known integers, or what was derived. */
export function dimsOf(tensor: Tensor): readonly Dim[] | undefined {
  if (tensor.dims) return tensor.dims;
  const { known } = tensor;
  if (!known || elementCount(known.shape) > MOST_KNOWN_ELEMENTS) return undefined;
  if (!INTEGERS.has(known.dtype) && !FLOATS.has(known.dtype)) return undefined;
  const dims = Array.from(known.data as ArrayLike<number | bigint>, Number);
  const whole = INTEGERS.has(known.dtype) ||
    (known.dtype !== "f16" && dims.every(Number.isInteger));
  return whole && dims.every(Number.isSafeInteger) ? dims : undefined;
}

/** Results of an op on dims; undefined if it is none of those that shapes are computed with. */
export function evaluateOnDims(
  op: OpRecord,
  { inputs, types, attributes }: OpUse<Tensor>,
): Tensor[] | undefined {
  if (!inputs.some((input) => input?.dims && !input.known)) return undefined;
  if (!types.every(isSmall)) return undefined;
  const results = move(op, { inputs, types, attributes }) ??
    compute(op, { inputs, types, attributes });
  return results?.map((dims, i): Tensor => ({ kind: "tensor", type: types[i]!, dims }));
}

function isSmall({ dtype, shape }: TensorType): boolean {
  const count = product(shape);
  return (INTEGERS.has(dtype) || FLOATS.has(dtype)) && typeof count === "number" &&
    shape.every((dim) => typeof dim === "number") && count <= MOST_KNOWN_ELEMENTS;
}

function move(
  op: OpRecord,
  { inputs, types, attributes }: OpUse<Tensor>,
): Dim[][] | undefined {
  const moved = op.movedInputs;
  if (!moved) return undefined;
  // Number 0 is the zero that outputs are filled with.
  const elements: Dim[] = [0];
  const numbered: (HostTensor | undefined)[] = [];
  for (const [i, input] of inputs.entries()) {
    if (!input) numbered.push(undefined);
    else if (moved === "all" || moved.includes(i)) {
      const dims = dimsOf(input);
      if (!dims) return undefined;
      const data = hostArray("i64", { count: dims.length }) as BigInt64Array;
      dims.forEach((dim, at) => data[at] = BigInt(elements.push(dim) - 1));
      numbered.push({ dtype: "i64", shape: input.type.shape as readonly number[], data });
    } else if (input.known) numbered.push(input.known);
    else return undefined;
  }
  const wide = types.map(({ shape }): TensorType => ({ dtype: "i64", shape }));
  return runReference(op, { inputs: numbered, types: wide, attributes })
    .map(({ data }) => Array.from(data as BigInt64Array, (number) => elements[Number(number)]!));
}

function compute(
  op: OpRecord,
  { inputs, types: [type], attributes }: OpUse<Tensor>,
): Dim[][] | undefined {
  const given = inputs.map((input) => input && dimsOf(input));
  if (inputs.some((input, i) => input && !given[i])) return undefined;
  const [a, b, c] = given;
  const kind = String(attributes.kind ?? op.name);
  const shape = type!.shape as readonly number[];
  const at = (index: number, which: number) =>
    given[which]![broadcastIndex(index, { shape, source: inputs[which]!.type.shape as number[] })]!;
  const each = (apply: (index: number) => Dim | undefined): Dim[][] | undefined => {
    const result = Array.from({ length: elementCount(shape) }, (_, i) => apply(i));
    return result.every((dim) => dim !== undefined) ? [result] : undefined;
  };
  if (op.name === "cast") return castable(type!, a!) ? [[...a!]] : undefined;
  if (op.name === "where") {
    return each((i) => {
      const condition = at(i, 0);
      return typeof condition === "number" ? at(i, condition ? 1 : 2) : undefined;
    });
  }
  if (op.name === "reduce") return reduce(kind, a!, shape);
  if (a && b && !c && Object.hasOwn(BINARY, kind)) {
    const integer = INTEGERS.has(type!.dtype);
    return each((i) =>
      kind === "div" && !integer ? exact(at(i, 0), at(i, 1)) : BINARY[kind]!(at(i, 0), at(i, 1))
    );
  }
  if (a && !b && Object.hasOwn(UNARY, kind)) return each((i) => UNARY[kind]!(a[i]!));
  return undefined;
}

// To a boolean only what is known: a dim that may be 0 or not has no truth yet.
function castable({ dtype }: TensorType, dims: readonly Dim[]): boolean {
  return dtype === "bool"
    ? dims.every((dim) => dim === 0 || dim === 1)
    : ["i64", "i32", "f32", "f64"].includes(dtype);
}

function reduce(kind: string, dims: readonly Dim[], shape: readonly number[]) {
  if (elementCount(shape) !== 1) return undefined;
  if (kind === "prod") return [[product(dims)]];
  if (kind === "sum") return [[dims.reduce(add, 0)]];
  if (kind === "max" && dims.length > 0) return [[dims.reduce(max)]];
  if (kind === "min" && dims.length > 0) return [[dims.reduce(min)]];
  return undefined;
}

// ONNX rounds integer quotients towards 0; for what cannot be negative that is the floor.
function divide(a: Dim, b: Dim): Dim | undefined {
  if (equal(b, 0)) throw new RangeError("division by zero in shape arithmetic");
  if (typeof a === "number" && typeof b === "number") return Math.trunc(a / b) + 0;
  const whole = exactDiv(a, b);
  if (whole !== undefined) return whole;
  // x / -n, as exporters write a rounding up: -(x // -n).
  if (typeof b === "number" && b < 0) return undefined;
  if (isNegative(a) === true) {
    const flipped = mul(a, -1);
    return mul(floorDiv(flipped, b), -1);
  }
  return isNegative(a) === false && isLess(0, b) ? floorDiv(a, b) : ceilOrUnknown(a, b);
}

function ceilOrUnknown(a: Dim, b: Dim): Dim | undefined {
  return isLess(a, 0) && isLess(0, b) ? ceilDiv(a, b) : undefined;
}

function exact(a: Dim, b: Dim): Dim | undefined {
  if (equal(b, 0)) return undefined;
  if (typeof a === "number" && typeof b === "number") {
    return Number.isInteger(a / b) ? a / b : undefined;
  }
  return exactDiv(a, b);
}

function isNegative(a: Dim): boolean | undefined {
  return isLess(a, 0);
}

function isLess(a: Dim, b: Dim): boolean | undefined {
  const comparison = compare(a, b);
  if (comparison === "<") return true;
  return comparison === ">=" || comparison === ">" || comparison === "==" ? false : undefined;
}

function areEqual(a: Dim, b: Dim): boolean | undefined {
  if (equal(a, b)) return true;
  const comparison = compare(a, b);
  return comparison === "<" || comparison === ">" ? false : undefined;
}

function not(value: boolean | undefined): boolean | undefined {
  return value === undefined ? undefined : !value;
}

function bits(a: Dim, b: Dim, apply: (a: boolean, b: boolean) => boolean): Dim | undefined {
  return typeof a === "number" && typeof b === "number" ? +apply(a !== 0, b !== 0) : undefined;
}
