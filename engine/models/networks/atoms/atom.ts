// What an atom of a network is: a name of a spec's steps that is code, a few ops of the graph with their weights.

import { FormatError } from "../../../errors.ts";
import type { TensorInfo } from "../../../formats/source.ts";
import type { GraphBuilder } from "../../../graph/builder.ts";
import type { Value } from "../../../graph/graph.ts";
import type { Attributes } from "../../../ops/op.ts";
import { sliceTensor } from "../../../formats/tensor_slice.ts";
import type { Known } from "../expression.ts";

/** A low-rank change of a layer: factor · up (down x). */
export interface LowRank {
  readonly down: TensorInfo;
  readonly up: TensorInfo;
  readonly factor: number;
}

/** The i-th of n equal parts of a tensor's rows. */
export type Part = readonly [index: number, count: number];

/** Where an atom stands. */
export interface Site {
  readonly builder: GraphBuilder;
  /** Path of its weights, and of its nodes. */
  readonly path: string;
  /** Values of its parameters. */
  readonly given: Readonly<Record<string, Known>>;
  /** How many results the spec names. */
  readonly results: number;
  /** Applies an op with one result. */
  op(name: string, inputs: readonly (Value | undefined)[], attributes?: Attributes): Value;
  /**
   * A weight below the path.
   *
   * @param shape What it must be; leading or trailing dims of 1 may be missing or more.
   * @param part Where the file has several such tensors as one: which is wanted.
   * @throws {FormatError} If it is absent or has another shape.
   */
  weight(name: string, shape: readonly number[], part?: Part): Value;
  /** The same, or undefined where the file has none. */
  find(name: string, shape: readonly number[], part?: Part): Value | undefined;
  /** What adapters add to the layer. */
  lowRank(): readonly LowRank[];
}

/** A record of an atom. */
export interface Atom {
  /** Least and most values that it is given. */
  readonly inputs: readonly [least: number, most: number];
  /** Names of parameters with what they are where they are not given; undefined: they must be. */
  readonly parameters: Readonly<Record<string, Known | undefined>>;
  build(site: Site, inputs: readonly Value[]): Value | readonly Value[];
}

/** A parameter that is a number. @throws {TypeError} If it is none. */
export function numberOf({ given, path }: Site, name: string): number {
  const value = given[name];
  if (typeof value === "number") return value;
  throw new TypeError(`${path}: ${name} must be a number, and is ${JSON.stringify(value)}`);
}

/** Channels of [batch, channels, …], or of rows. @throws {TypeError} If they hang on a run. */
export function widthOf(value: Value, axis: number): number {
  const size = value.shape.at(axis);
  if (typeof size === "number") return size;
  throw new TypeError(`${value.name} has no known width`);
}

/** A tensor under another shape, by dims of 1. @throws {FormatError} If it is another shape in more than that. */
export function viewed(tensor: TensorInfo, shape: readonly number[]): TensorInfo {
  const wide = (sizes: readonly number[]) => sizes.filter((size) => size !== 1).join();
  if (tensor.shape.join() === shape.join()) return tensor;
  if (wide(tensor.shape) === wide(shape)) return { ...tensor, shape };
  throw new FormatError(`has shape [${tensor.shape}] where [${shape}] is needed`, {
    file: tensor.source.name,
    place: `tensor ${tensor.name}`,
    remedy: "Weights and config do not belong together",
  });
}

/** A part of a tensor's rows; the tensor itself where that is all of it. */
export function partOf(tensor: TensorInfo, [index, groups]: Part): TensorInfo {
  if (groups === 1) return tensor;
  const stride = tensor.shape[0]!, count = stride / groups;
  return sliceTensor(tensor, { axis: 0, start: index * count, count, groups: 1, stride });
}
