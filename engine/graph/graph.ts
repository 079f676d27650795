// The one intermediate form. ONNX files and model specs both become a Graph; passes turn a Graph into
// another Graph; the planner and every backend read it. All records are frozen data: a value knows its
// shape (with symbolic dims) and its role, a node knows its op by name. Behaviour lives in op records
// (op.ts), never here.

import type { TensorInfo } from "../formats/source.ts";
import type { Dim, Expression } from "./dim/mod.ts";

/**
 * Element types of values. 8- and 4-bit floats and `i4 u4 i2 u2` exist for ONNX files: a device keeps one
 * element a byte, floats as their codes, integers as their value. `q8` is an activation row quantised to signed 8 bit in groups of 32 with
 * a float32 scale each (spec LF-3, MD-11); it exists only between what writes and what multiplies such rows. `q8_0` is for
 * states: keys and values whose channels lie in blocks of quant/formats/q8_0.ts.
 */
export type DataType =
  | "f32"
  | "f16"
  | "bf16"
  | "f64"
  | "i8"
  | "u8"
  | "i16"
  | "u16"
  | "i32"
  | "u32"
  | "i64"
  | "u64"
  | "bool"
  | "f8e4m3fn"
  | "f8e4m3fnuz"
  | "f8e5m2"
  | "f8e5m2fnuz"
  | "f8e8m0"
  | "f4e2m1"
  | "i4"
  | "u4"
  | "i2"
  | "u2"
  | "q8"
  | "q8_low"
  | "q8_0";

/** Element types of states. */
export type StateType = "f32" | "f16" | "q8_0";

/**
 * What a value is:
 * - `input`: given for every run (token ids, positions, or ONNX inputs);
 * - `weight`: bytes of a model file, in the number format of the file, loaded once;
 * - `constant`: small host data known when the graph is built;
 * - `state`: memory that outlives a run, one copy per session (KV cache);
 * - `activation`: produced by a node, planned into the arena.
 */
export type ValueRole = "input" | "weight" | "constant" | "state" | "activation";

/** A tensor in the graph. */
export interface Value {
  /** Unique in its graph. */
  readonly id: number;
  /** Path-like name, e.g. `layers.3.attention.q`. */
  readonly name: string;
  /** What it is. */
  readonly role: ValueRole;
  /** Element type; of a weight, of the numbers it stands for. */
  readonly dtype: DataType;
  /** Outermost dimension first. */
  readonly shape: readonly Dim[];
  /** Where a weight's bytes are (role `weight`). */
  readonly tensor?: TensorInfo;
  /** Contents of a constant (role `constant`), `shape` elements in row-major order. */
  readonly data?: ArrayBufferView;
}

/** Attribute of a node: plain data only. Numbers may be dims, so that they follow the bindings. */
export type Attribute =
  | number
  | string
  | boolean
  | Expression
  | readonly number[]
  | readonly string[]
  | readonly Dim[];

/** Attributes of one node by name. */
export type Attributes = Readonly<Record<string, Attribute>>;

/** One application of an op. */
export interface Node {
  /** Unique in its graph. */
  readonly id: number;
  /** Name of an op record. */
  readonly op: string;
  /** Path-like name for messages and profiles, e.g. `layers.3.attention.q`. */
  readonly name: string;
  /** `undefined` stands for an absent optional input. */
  readonly inputs: readonly (Value | undefined)[];
  /** Values that it makes. */
  readonly outputs: readonly Value[];
  /** Complete attributes, as the op record returns them. */
  readonly attributes: Attributes;
}

/** A computation: nodes in an order in which every value is produced before it is used. */
export interface Graph {
  /** For messages. */
  readonly name: string;
  /** In an order of execution. */
  readonly nodes: readonly Node[];
  /** Given for every run. */
  readonly inputs: readonly Value[];
  /** In the order in which they are saved. */
  readonly states: readonly Value[];
  /** Read after every run. */
  readonly outputs: readonly Value[];
}

/** What a shape rule sees and returns. */
export interface TensorType {
  /** Element type. */
  readonly dtype: DataType;
  /** Outermost dimension first. */
  readonly shape: readonly Dim[];
}

/**
 * Storage of a HostTensor.
 * @category ONNX graphs
 */
export type HostData =
  | Float32Array
  | Float64Array
  | Int8Array
  | Uint8Array
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | BigInt64Array
  | BigUint64Array;
