// Tensors as callers hold them: a typed array (or strings) and dims. The model's declared type decides
// what an array means where several types share one: Uint8Array is uint8 or bool, Uint16Array may be
// the codes of bfloat16. float16 is a Float16Array, or a Uint16Array of its codes. A map of the model is a Map.

import type { OnnxDataType, OnnxType } from "../file/model.ts";
import type { DataType, HostData } from "../../graph/graph.ts";
import { elementCount, hostArray, type HostTensor, isStorageOf } from "../../ops/host_tensor.ts";
import { heldOf, type HeldValue, readTensor } from "../../run/held.ts";
import { type HostValue, isHostTensor, type MapValue } from "../derivation/tensor.ts";
import { isQ8, type Q8Type } from "../../ops/q8_rows.ts";

/**
 * Elements of a tensor.
 * @category ONNX graphs
 */
export type TensorData = HostData | Float16Array | readonly string[];

/**
 * A tensor: elements in row-major order, outermost dimension first.
 * @category ONNX graphs
 */
export interface GraphTensor {
  /** The elements. */
  readonly data: TensorData;
  /** Sizes; empty for a scalar. */
  readonly dims: readonly number[];
  /** Element type by its ONNX name, e.g. `float32`; results have it, inputs may leave it out. */
  readonly type?: string;
}

/**
 * A dictionary of a model, as classifiers of scikit-learn give one for each row: labels, which are strings or bigint as
 * in a tensor of labels, and what belongs to each.
 * @category ONNX graphs
 */
export type GraphMap = ReadonlyMap<string | bigint, string | number | bigint>;

/**
 * A result that stayed on its device (`keep` of a run): what graphs there take as an input, any number of times.
 * @category ONNX graphs
 */
export interface KeptTensor extends Disposable {
  /** Sizes; empty for a scalar. */
  readonly dims: readonly number[];
  /** Element type by its ONNX name, e.g. `float32`. */
  readonly type: string;
  /** A copy on the host. @throws {TypeError} If it has been disposed. */
  read(): Promise<GraphTensor>;
  /** Frees its memory. */
  dispose(): void;
}

/**
 * What a graph takes and gives: a tensor, a list, a map, or nothing where the model allows that.
 * @category ONNX graphs
 */
export type GraphValue = GraphTensor | KeptTensor | GraphMap | readonly GraphValue[] | null;

const NAMES: Readonly<Record<Exclude<OnnxDataType, Q8Type | "q8_0">, string>> = {
  f32: "float32",
  f16: "float16",
  bf16: "bfloat16",
  f64: "float64",
  i8: "int8",
  u8: "uint8",
  i16: "int16",
  u16: "uint16",
  i32: "int32",
  u32: "uint32",
  i64: "int64",
  u64: "uint64",
  bool: "bool",
  f8e4m3fn: "float8e4m3fn",
  f8e4m3fnuz: "float8e4m3fnuz",
  f8e5m2: "float8e5m2",
  f8e5m2fnuz: "float8e5m2fnuz",
  f8e8m0: "float8e8m0",
  f4e2m1: "float4e2m1",
  i4: "int4",
  u4: "uint4",
  i2: "int2",
  u2: "uint2",
  string: "string",
};

/** ONNX name of an element type. */
export function typeName(dtype: OnnxDataType): string {
  return dtype !== "string" && isQ8(dtype) || dtype === "q8_0" ? dtype : NAMES[dtype];
}

const OF_ARRAY: readonly (readonly [new (count: number) => HostData, DataType])[] = [
  [Float32Array, "f32"],
  [Float64Array, "f64"],
  [Int8Array, "i8"],
  [Uint8Array, "u8"],
  [Int16Array, "i16"],
  [Uint16Array, "u16"],
  [Int32Array, "i32"],
  [Uint32Array, "u32"],
  [BigInt64Array, "i64"],
  [BigUint64Array, "u64"],
];

/**
 * A caller's value as the engine holds it.
 *
 * @param declared Type that the model declares.
 * @throws {TypeError} If the array is not one for that type. @throws {RangeError} If it does not fill the dims.
 */
export function hostValueOf(
  name: string,
  { value, declared }: { readonly value: GraphValue; readonly declared: OnnxType | undefined },
): HostValue {
  if (declared?.kind === "optional") {
    if (value === null) return { dtype: "optional" };
    return { dtype: "optional", value: hostValueOf(name, { value, declared: declared.element }) };
  }
  if (value === null) throw new TypeError(`Cannot run: input "${name}" is null`);
  if (isList(value)) {
    const element = declared?.kind === "sequence" ? declared.element : undefined;
    const items = value.map((item, i) =>
      hostValueOf(`${name}[${i}]`, { value: item, declared: element })
    );
    return { dtype: "sequence", items };
  }
  const held = kept.get(value);
  if (held) return held;
  return value instanceof Map
    ? hostMapOf(name, value, declared)
    : hostTensorOf(name, value as GraphTensor, declared);
}

function isList(value: GraphValue): value is readonly GraphValue[] {
  return Array.isArray(value);
}

function hostMapOf(name: string, map: GraphMap, declared: OnnxType | undefined): MapValue {
  if (declared?.kind !== "map" || declared.value.kind !== "tensor") {
    throw new TypeError(`Cannot run: input "${name}" is a Map, and the model declares none`);
  }
  const vector = (dtype: OnnxDataType, elements: readonly (string | number | bigint)[]) => {
    const isText = dtype === "string";
    const wrong = elements.find((element) => (typeof element === "string") !== isText);
    if (wrong !== undefined) {
      throw new TypeError(
        `Cannot run: "${wrong}" in input "${name}" must be of ${typeName(dtype)}`,
      );
    }
    const shape = [elements.length];
    if (isText) return { dtype, shape, data: elements as readonly string[] };
    const data = hostArray(dtype, { count: elements.length });
    const isWide = data instanceof BigInt64Array || data instanceof BigUint64Array;
    elements.forEach((element, i) => data[i] = isWide ? BigInt(element) : Number(element));
    return { dtype, shape, data };
  };
  return {
    dtype: "map",
    keys: vector(declared.key, [...map.keys()]),
    values: vector(declared.value.dtype, [...map.values()]),
  };
}

function hostTensorOf(
  name: string,
  { data, dims }: GraphTensor,
  declared: OnnxType | undefined,
): HostValue {
  if (dims === undefined) {
    throw new TypeError(
      `Cannot run: input "${name}" is no tensor. Give one with its sizes: { data, dims: [2, 3] }`,
    );
  }
  if (!Array.isArray(dims) || !dims.every((size) => Number.isSafeInteger(size) && size >= 0)) {
    throw new TypeError(`Cannot run: input "${name}" has dims ${JSON.stringify(dims)}`);
  }
  const count = elementCount(dims);
  const wanted = declared?.kind === "tensor" ? declared.dtype : undefined;
  if (data?.length !== count) {
    throw new RangeError(
      `Cannot run: input "${name}" has ${data?.length} elements for dims [${dims.join(", ")}]`,
    );
  }
  if (isPlainArray(data)) {
    if (data.every((one) => typeof one === "string")) return { dtype: "string", shape: dims, data };
    const array = OF_ARRAY.find(([, dtype]) => dtype === wanted)?.[0].name ?? "Float32Array";
    throw new TypeError(
      `Cannot run: input "${name}" is a plain array with something else than strings. Give a typed array: ` +
        (array.startsWith("Big") ? `${array}.from(data, BigInt)` : `${array}.from(data)`),
    );
  }
  if (data instanceof Float16Array) return { dtype: "f16", shape: dims, data: codesOf(data) };
  const plain = OF_ARRAY.find(([array]) => data instanceof array)?.[1];
  if (plain === undefined) throw new TypeError(`Cannot run: input "${name}" is no typed array`);
  const shared = wanted !== undefined && wanted !== "string" && isStorageOf(wanted, data);
  return { dtype: shared ? wanted : plain, shape: dims, data };
}

/** Float16 numbers as the codes that the engine holds; any other array as it is. */
export function codesOf(data: HostData | Float16Array): HostData {
  return data instanceof Float16Array
    ? new Uint16Array(data.buffer, data.byteOffset, data.length)
    : data;
}

function isPlainArray(data: TensorData): data is readonly string[] {
  return Array.isArray(data);
}

const kept = new WeakMap<object, HostTensor>();

function keptTensor(tensor: HostTensor, place: HeldValue): KeptTensor {
  const { dtype, shape } = tensor;
  const dispose = () => place.dispose();
  const value: KeptTensor = {
    ...{ dims: shape, type: typeName(dtype) },
    read: async () => graphValueOf(await readTensor(tensor)) as GraphTensor,
    ...{ dispose, [Symbol.dispose]: dispose },
  };
  kept.set(value, tensor);
  return value;
}

/** A value of the engine as callers hold it. */
export function graphValueOf(value: HostValue): GraphValue {
  const place = heldOf(value);
  if (place) return keptTensor(value as HostTensor, place);
  if (value.dtype === "sequence") return value.items.map(graphValueOf);
  if (value.dtype === "optional") return value.value ? graphValueOf(value.value) : null;
  if (value.dtype === "map") {
    const keys = value.keys.data as ArrayLike<string | bigint>, { data } = value.values;
    return new Map(Array.from(keys, (key, i) => [key, data[i]!]));
  }
  const { dtype, shape, data } = value;
  const type = typeName(dtype);
  if (!isHostTensor(value) || value.dtype !== "f16") return { data, dims: shape, type };
  const { buffer, byteOffset, length } = value.data as Uint16Array;
  return { data: new Float16Array(buffer, byteOffset, length), dims: shape, type };
}
