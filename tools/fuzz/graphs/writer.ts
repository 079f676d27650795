// Writes one random graph, node by node. Every value knows its element type, its shape in each binding, about how
// large its elements are, and whether they are the same on every device (`exact`: whole numbers, and floats that
// are small multiples of 1/8): only those go where a last bit decides, as in comparisons and roundings.

import { ELEMENT_TYPES } from "../../../engine/onnx/file/data_types.ts";
import type { DataType } from "../../../engine/graph/graph.ts";
import {
  elementCount,
  hostArray,
  type HostTensor,
  setElement,
} from "../../../engine/ops/host_tensor.ts";
import type {
  Attribute,
  GraphParts,
  NodeParts,
  Port,
  Tensor,
} from "../../../tests/support/write_onnx.ts";
import type { Draw } from "../../support/draw.ts";
import { type Shape, shapeAt, type Size } from "./sizes.ts";

/** A value of the graph. */
export interface Value {
  readonly name: string;
  readonly type: DataType;
  readonly shape: Shape;
  /** About the largest magnitude of its elements; what is not exact may exceed it. */
  readonly scale: number;
  readonly exact: boolean;
}

/** What a node makes. */
export type Made = Omit<Value, "name">;

/** Attributes of a node. */
export type Attributes = Readonly<Record<string, Attribute>>;

/** What is needed to run a graph, with its inputs in each binding. */
export interface GraphCase {
  readonly graph: GraphParts;
  readonly opset: number;
  readonly runs: readonly ReadonlyMap<string, HostTensor>[];
}

/** Draws and nodes of a graph in the making. */
export interface Writer {
  readonly opset: number;
  /** Element type of this graph's floats. */
  readonly float: DataType;
  /** What has been made, inputs included, oldest first. */
  readonly values: readonly Value[];
  /** A whole number below. */
  readonly below: Draw;
  chance(probability: number): boolean;
  choose<T>(list: readonly T[]): T;
  /** A number in a range. */
  real(low: number, high: number): number;
  /** A size that is the same in every binding. */
  fixed(size: number): Size;
  /** A random size; one that differs between bindings where the graph has such. */
  size(): Size;
  /** A value that fits, mostly a late one. */
  pick(fits: (value: Value) => boolean): Value | undefined;
  /** A new input of the graph. */
  input(made: Made): Value;
  /** A constant of given numbers. */
  constant(type: DataType, shape: readonly number[], elements: readonly number[]): Value;
  /** A constant of random numbers in a range. */
  random(type: DataType, shape: readonly number[], low: number, high: number): Value;
  /** int64 constant of one dimension. */
  longs(...elements: readonly number[]): Value;
  /** A constant of one number of the graph's float type. */
  scalar(value: number): Value;
  /** A node of one output. */
  one(op: string, inputs: readonly (Value | undefined)[], made: Made, more?: More): Value;
  /** A node. */
  node(
    op: string,
    inputs: readonly (Value | undefined)[],
    made: readonly Made[],
    more?: More,
  ): Value[];
}

/** What not every node has. */
export interface More {
  readonly attributes?: Attributes | undefined;
  readonly domain?: string;
}

/** Options of {@linkcode createWriter}. */
export interface WriterOptions {
  readonly draw: Draw;
  readonly opset: number;
  readonly float: DataType;
  /** Sizes that differ between bindings. */
  readonly symbols: readonly Size[];
  readonly bindings: number;
  /** Sizes that are fixed. */
  readonly palette: readonly number[];
}

/** A writer, and what ends its work. */
export interface OpenWriter extends Writer {
  finish(outputs: readonly Value[]): GraphCase;
}

/** Largest magnitude of exact floats: with their three binary places they fit float16. */
export const MOST_EXACT = 128;

const NUMBER_OF: ReadonlyMap<string, number> = new Map(
  [...ELEMENT_TYPES].map(([number, { dtype }]) => [dtype, number]),
);

/** Number of TensorProto.DataType. */
export function typeNumber(type: DataType): number {
  return NUMBER_OF.get(type)!;
}

/** The bytes of a tensor. */
export function bytesOf({ data }: Pick<HostTensor, "data">): Uint8Array {
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}

/** Starts a graph. */
export function createWriter(options: WriterOptions): OpenWriter {
  const { draw, opset, float, symbols, bindings, palette } = options;
  const nodes: NodeParts[] = [], initializers: Tensor[] = [], inputs: Value[] = [];
  const values: Value[] = [];
  let count = 0;
  const nextName = (prefix: string): string => `${prefix}${count++}`;
  const chance = (probability: number): boolean => draw(1000) < probability * 1000;
  const choose = <T>(list: readonly T[]): T => list[draw(list.length)]!;
  const real = (low: number, high: number): number => low + (high - low) * draw(2 ** 20) / 2 ** 20;
  const fixed = (size: number): Size => Array<number>(bindings).fill(size);

  function keep(made: Made, prefix: string): Value {
    const value = { ...made, name: nextName(prefix) };
    values.push(value);
    return value;
  }

  // Constants are no chain to go on with: they stay out of `values`.
  function constant(type: DataType, shape: readonly number[], elements: readonly number[]): Value {
    const tensor = { dtype: type, shape, data: hostArray(type, { count: elementCount(shape) }) };
    for (let i = 0; i < tensor.data.length; i++) {
      setElement(tensor, { index: i, value: elements[i]! });
    }
    const name = nextName("c");
    const written = { name, type: typeNumber(type), dims: shape, raw: bytesOf(tensor) };
    if (chance(0.8)) initializers.push(written);
    else {
      const { name: _, ...value } = written;
      const attributes = { value: { t: value } };
      nodes.push({ op: "Constant", inputs: [], outputs: [name], attributes });
    }
    const scale = Math.max(0, ...elements.map(Math.abs));
    const exact = scale <= MOST_EXACT && elements.every((value) => value * 8 % 1 === 0);
    return { name, type, shape: shape.map(fixed), scale, exact };
  }

  function node(
    op: string,
    given: readonly (Value | undefined)[],
    made: readonly Made[],
    { attributes, domain }: More = {},
  ): Value[] {
    const outputs = made.map((one) => keep(one, "v"));
    nodes.push({
      op,
      inputs: given.map((value) => value?.name ?? ""),
      outputs: outputs.map(({ name }) => name),
      ...attributes && { attributes },
      ...domain !== undefined && { domain },
    });
    return outputs;
  }

  return {
    opset,
    float,
    values,
    below: draw,
    chance,
    choose,
    real,
    fixed,
    size: () => symbols.length > 0 && chance(0.4) ? choose(symbols) : fixed(choose(palette)),
    pick(fits) {
      const fitting = values.filter(fits);
      if (fitting.length === 0) return undefined;
      return chance(0.6) ? fitting.at(-1) : choose(fitting);
    },
    input(made) {
      const value = keep(made, "x");
      inputs.push(value);
      return value;
    },
    constant,
    random(type, shape, low, high) {
      const elements = Array.from({ length: elementCount(shape) }, () => real(low, high));
      return constant(type, shape, elements);
    },
    longs: (...elements) => constant("i64", [elements.length], elements),
    scalar: (value) => constant(float, chance(0.8) ? [] : [1], [value]),
    one: (op, given, made, more) => node(op, given, [made], more)[0]!,
    node,
    finish(outputs) {
      const graph = {
        nodes,
        initializers,
        inputs: inputs.map((value) => portOf(value, { choose, chance, symbols })),
        outputs: outputs.map((value) => portOf(value, { choose, chance, symbols: [] })),
      };
      const runs = Array.from(
        { length: bindings },
        (_, i) =>
          new Map(inputs.map((value) => [value.name, randomTensor(value, i, { draw, real })])),
      );
      return { graph, opset, runs };
    },
  };
}

// Sizes that differ have a symbol, the same or one of the axis' own; fixed ones mostly a number.
function portOf(
  { name, type, shape }: Value,
  { chance, symbols }: Pick<Writer, "choose" | "chance"> & { readonly symbols: readonly Size[] },
): Port {
  const dims = shape.map((size, axis) => {
    const at = symbols.findIndex((symbol) => symbol.every((one, i) => one === size[i]));
    if (at >= 0) return chance(0.85) ? `N${at}` : `${name}_${axis}`;
    const isFixed = size.every((one) => one === size[0]);
    return isFixed && chance(0.9) ? size[0]! : `${name}_${axis}`;
  });
  return [name, typeNumber(type), dims];
}

function randomTensor(
  { type, shape, scale, exact }: Value,
  binding: number,
  { draw, real }: { readonly draw: Draw; readonly real: Writer["real"] },
): HostTensor {
  const sizes = shapeAt(shape, binding);
  const tensor = {
    dtype: type,
    shape: sizes,
    data: hostArray(type, { count: elementCount(sizes) }),
  };
  const isFloat = /^(f|bf)/.test(type), low = /^(u|bool)/.test(type) ? 0 : -scale;
  for (let i = 0; i < tensor.data.length; i++) {
    const value = isFloat && exact
      ? (draw(16 * scale + 1) - 8 * scale) / 8
      : isFloat
      ? draw(20) === 0 ? 0 : real(low, scale)
      : low + draw(scale - low + 1);
    setElement(tensor, { index: i, value });
  }
  return tensor;
}
