// What an ONNX file says, as plain records: nodes, tensors by place, declared types. Nothing here knows
// what an op means. Names are the file's; "" stands for an absent optional input or an unwanted output.
// Source: onnx.proto (IR version 13). Field numbers are in read_graph.ts and read_tensor.ts.

import type { DataType } from "../../graph/graph.ts";
import type { TensorInfo } from "../../formats/source.ts";

/** Element types of ONNX tensors; strings exist on the host only. */
export type OnnxDataType = DataType | "string";

/** A tensor of the file. */
export interface OnnxTensor {
  /** Name; empty in attributes. */
  readonly name: string;
  /** Element type. */
  readonly dtype: OnnxDataType;
  /** Outermost dimension first; empty for a scalar. */
  readonly shape: readonly number[];
  /**
   * Where its elements lie, row-major and little-endian. `format` is `F32`, `F16`, `BF16` or the name of
   * a scalar (formats/scalars.ts); 4- and 2-bit elements are packed, low bits first. Absent for strings.
   */
  readonly tensor?: TensorInfo;
  /** Elements of a string tensor. */
  readonly strings?: readonly string[];
}

/** A dim of a declared type: a number, a name or expression, or nothing known. */
export type OnnxDim = number | string | undefined;

/** A declared type. */
export type OnnxType =
  | {
    readonly kind: "tensor";
    readonly dtype: OnnxDataType;
    /** Absent: not even the rank is declared. */
    readonly shape?: readonly OnnxDim[];
  }
  | { readonly kind: "sequence" | "optional"; readonly element: OnnxType }
  | { readonly kind: "map"; readonly key: OnnxDataType; readonly value: OnnxType }
  | { readonly kind: "sparse" | "opaque" };

/** An input, output or intermediate value with its declared type. */
export interface OnnxValueInfo {
  readonly name: string;
  /** Absent where the file gives none. */
  readonly type?: OnnxType;
}

/** An attribute of a node. Integers beyond 2^53 are in `bigints` exactly and in `ints` rounded. */
export type OnnxAttribute =
  | { readonly kind: "float"; readonly value: number }
  | { readonly kind: "int"; readonly value: number; readonly exact: bigint }
  | { readonly kind: "string"; readonly value: string }
  | { readonly kind: "tensor"; readonly value: OnnxTensor }
  | { readonly kind: "graph"; readonly value: OnnxGraph }
  | { readonly kind: "floats"; readonly value: readonly number[] }
  | { readonly kind: "ints"; readonly value: readonly number[]; readonly exact: readonly bigint[] }
  | { readonly kind: "strings"; readonly value: readonly string[] }
  | { readonly kind: "tensors"; readonly value: readonly OnnxTensor[] }
  | { readonly kind: "graphs"; readonly value: readonly OnnxGraph[] }
  | { readonly kind: "type"; readonly value: OnnxType }
  | { readonly kind: "sparse"; readonly value: OnnxSparseTensor }
  /** In a function body: the value of that attribute of the calling node. */
  | { readonly kind: "reference"; readonly value: string };

/** A sparse constant (COO): values, and linear or per-axis indices. */
export interface OnnxSparseTensor {
  readonly values: OnnxTensor;
  readonly indices: OnnxTensor;
  readonly shape: readonly number[];
}

/** One application of an op. */
export interface OnnxNode {
  /** As the file says, or made from its outputs. */
  readonly name: string;
  readonly opType: string;
  /** "" for ai.onnx. */
  readonly domain: string;
  readonly overload: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly attributes: ReadonlyMap<string, OnnxAttribute>;
}

/** The main graph, or a body of If, Loop and Scan. */
export interface OnnxGraph {
  readonly name: string;
  readonly nodes: readonly OnnxNode[];
  readonly initializers: ReadonlyMap<string, OnnxTensor>;
  /** Sparse initializers by name. */
  readonly sparse: ReadonlyMap<string, OnnxSparseTensor>;
  /** Also those that an initializer gives a default. */
  readonly inputs: readonly OnnxValueInfo[];
  readonly outputs: readonly OnnxValueInfo[];
  /** Declared types of intermediate values by name. */
  readonly values: ReadonlyMap<string, OnnxValueInfo>;
}

/** A model-local function: an op that the file itself defines. */
export interface OnnxFunction {
  readonly name: string;
  readonly domain: string;
  readonly overload: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  /** Attributes without a default. */
  readonly attributes: readonly string[];
  /** Attributes with one. */
  readonly defaults: ReadonlyMap<string, OnnxAttribute>;
  readonly nodes: readonly OnnxNode[];
  readonly opsets: ReadonlyMap<string, number>;
}

/** A whole file. */
export interface OnnxModel {
  /** Path, for messages. */
  readonly file: string;
  readonly irVersion: number;
  /** Version by domain; "" for ai.onnx. */
  readonly opsets: ReadonlyMap<string, number>;
  readonly producer: string;
  readonly graph: OnnxGraph;
  /** By `functionKey`. */
  readonly functions: ReadonlyMap<string, OnnxFunction>;
  readonly metadata: ReadonlyMap<string, string>;
  /** Closes the file and the external data that was opened. */
  close(): void;
}

/** Key of a function in `OnnxModel.functions`. */
export function functionKey(
  domain: string,
  { name, overload }: { readonly name: string; readonly overload: string },
): string {
  return `${domain}::${name}::${overload}`;
}
