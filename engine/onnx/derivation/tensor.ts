// Values while an ONNX graph is derived. A Tensor is a type plus what is known of the contents: all
// elements of a small constant, dims for shape computations (spec TL-2), or where a large constant can be
// loaded from. The engine value behind it is made only when an op needs it, so shape arithmetic leaves
// nothing behind. Host values are what exists outside engine graphs: strings, sequences, optionals, maps.

import type { OnnxDataType, OnnxType } from "../file/model.ts";
import type { TensorInfo } from "../../formats/source.ts";
import type { Dim } from "../../graph/dim/mod.ts";
import type { TensorType } from "../../graph/graph.ts";
import type { HostTensor } from "../../ops/host_tensor.ts";

/** Most elements of contents that are looked at while deriving. */
export const MOST_KNOWN_ELEMENTS = 4096;

/** A value of a graph that is being derived. */
export interface Tensor {
  readonly kind: "tensor";
  /** Element type and symbolic shape. */
  readonly type: TensorType;
  /** All elements, if they are known and at most `MOST_KNOWN_ELEMENTS`. */
  readonly known?: HostTensor;
  /** Elements as dims, row-major, if they are integers that depend on shapes; also where `known` is. */
  readonly dims?: readonly Dim[];
  /** A constant of any size, loaded when it is needed. */
  readonly stored?: StoredTensor;
}

/** A constant that is not looked at while deriving. */
export interface StoredTensor {
  /** All elements. */
  load(): HostTensor;
  /** Where they lie in a file, if they do so unchanged; then they stream into device memory. */
  readonly tensor?: TensorInfo;
  /** The constant of half precision that they are decoded from; its bytes are what is loaded. */
  readonly narrow?: Tensor;
}

/** Strings; they never reach a device. */
export interface StringTensor {
  readonly dtype: "string";
  readonly shape: readonly number[];
  readonly data: readonly string[];
}

/** A list of values of one type. */
export interface SequenceValue {
  readonly dtype: "sequence";
  /** Type of the elements, where it is declared. */
  readonly element?: OnnxType;
  readonly items: readonly HostValue[];
}

/** A value that may be absent. */
export interface OptionalValue {
  readonly dtype: "optional";
  readonly value?: HostValue;
}

/** A dictionary: two vectors of one length. */
export interface MapValue {
  readonly dtype: "map";
  /** Strings or integers, each once. */
  readonly keys: HostTensor | StringTensor;
  readonly values: HostTensor | StringTensor;
}

/** Everything that can flow along an edge of an ONNX graph at run time. */
export type HostValue = HostTensor | StringTensor | SequenceValue | OptionalValue | MapValue;

/** A name whose value exists on the host only: strings, a sequence, an optional, a map. */
export interface HostEntry {
  readonly kind: "object";
  /** Present for constants. */
  readonly value?: HostValue;
}

/** What a name stands for while deriving; a name that is missing is not available yet. */
export type Entry = Tensor | HostEntry;

const NO_TENSORS: readonly string[] = ["string", "sequence", "optional", "map"];

/** True for tensors of numbers and booleans. */
export function isHostTensor(value: HostValue | undefined): value is HostTensor {
  return value !== undefined && !NO_TENSORS.includes(value.dtype);
}

/** True if all its elements are constants. */
export function isConstant(tensor: Tensor): boolean {
  return tensor.known !== undefined || tensor.stored !== undefined;
}

/** `string` or a type of engine tensors, for messages. */
export type { OnnxDataType };
