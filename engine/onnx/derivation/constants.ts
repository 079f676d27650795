// Constants of any size: where a file's tensor lies, how it is read, and how a constant that is computed
// from others looks like a file to the backends, so that it streams into device memory like any weight.

import type { ByteSource } from "../../byte_source.ts";
import { ELEMENT_TYPE_OF } from "../file/data_types.ts";
import type { OnnxSparseTensor, OnnxTensor } from "../file/model.ts";
import { isAbsent } from "../file/open_onnx.ts";
import type { TensorInfo } from "../../formats/source.ts";
import type { DataType } from "../../graph/graph.ts";
import {
  elementCount,
  hostArray,
  hostElementBytes,
  type HostTensor,
} from "../../ops/host_tensor.ts";
import { numbersOf } from "../../ops/host_numbers.ts";
import {
  type Entry,
  type HostValue,
  MOST_KNOWN_ELEMENTS,
  type StringTensor,
  type Tensor,
} from "./tensor.ts";

/** A host tensor as a constant: known if it is small. */
export function constantTensor(tensor: HostTensor): Tensor {
  const { dtype, shape } = tensor;
  const small = elementCount(shape) <= MOST_KNOWN_ELEMENTS;
  return {
    kind: "tensor",
    type: { dtype, shape },
    ...small ? { known: tensor } : { stored: { load: () => tensor } },
  };
}

/** A tensor of a file as a constant; a string tensor exists on the host only. */
export function tensorOfFile(tensor: OnnxTensor): Entry {
  const { dtype, shape, tensor: info } = tensor;
  if (dtype === "string" || !info) return { kind: "object", value: stringTensor(tensor) };
  const small = elementCount(shape) <= MOST_KNOWN_ELEMENTS && !isAbsent(info.source);
  if (small) return constantTensor(readTensor(tensor));
  return {
    kind: "tensor",
    type: { dtype, shape },
    stored: { load: () => readTensor(tensor), ...isWhole(dtype) && { tensor: info } },
  };
}

/** What a name is known to hold: a constant, or something on the host; undefined where it is made in a run. */
export function valueOfEntry(entry: Entry | undefined): HostValue | undefined {
  if (entry?.kind === "object") return entry.value;
  return entry?.known ?? entry?.stored?.load();
}

/** Elements of a constant tensor. */
export function load({ known, stored }: Tensor): HostTensor {
  const found = known ?? stored?.load();
  if (found) return found;
  throw new TypeError("Cannot load a tensor that is no constant");
}

/** A constant of half precision as a float32 weight, decoded when it is loaded; itself if it is none. */
export function widenedConstant(tensor: Tensor): Tensor {
  const { dtype, shape } = tensor.type;
  if (dtype !== "f16" && dtype !== "bf16") return tensor;
  return {
    kind: "tensor",
    type: { dtype: "f32", shape },
    stored: {
      load() {
        const narrow = load(tensor);
        return { dtype: "f32", shape: narrow.shape, data: Float32Array.from(numbersOf(narrow)) };
      },
      narrow: tensor,
    },
  };
}

function stringTensor({ shape, strings = [] }: OnnxTensor): StringTensor {
  return { dtype: "string", shape, data: strings };
}

// Elements of less than a byte are packed in files.
function isWhole(dtype: DataType): boolean {
  return (ELEMENT_TYPE_OF.get(dtype)?.bits ?? 0) >= 8;
}

/** Reads a tensor of a file. */
export function readTensor({ dtype, shape, tensor }: OnnxTensor): HostTensor {
  if (dtype === "string" || !tensor) throw new TypeError("Cannot read strings as numbers");
  const bytes = new Uint8Array(tensor.byteLength);
  if (tensor.source.readInto(tensor.offset, bytes)) {
    throw new TypeError(`Cannot read ${tensor.source.name}: it does not answer at once`);
  }
  const count = elementCount(shape);
  const bits = ELEMENT_TYPE_OF.get(dtype)!.bits;
  const data = bits >= 8 ? hostArray(dtype, { count, buffer: bytes.buffer }) : unpack(bytes, {
    bits,
    data: hostArray(dtype, { count }) as Uint8Array,
    signed: dtype[0] === "i",
  });
  return { dtype, shape, data };
}

// The first element lies in the low bits.
function unpack(
  bytes: Uint8Array,
  { bits, data, signed }: {
    readonly bits: number;
    readonly data: Uint8Array;
    readonly signed: boolean;
  },
): Uint8Array {
  const perByte = 8 / bits, mask = (1 << bits) - 1;
  for (let i = 0; i < data.length; i++) {
    const code = (bytes[Math.floor(i / perByte)]! >> (i % perByte) * bits) & mask;
    data[i] = signed && code >> (bits - 1) ? code - (1 << bits) : code;
  }
  return data;
}

/** A sparse tensor as a constant, filled in with zeros. */
export function tensorOfSparse({ values, indices, shape }: OnnxSparseTensor): Entry {
  const count = elementCount(shape);
  if (values.dtype === "string") throw new TypeError("sparse tensors of strings are not supported");
  const { dtype } = values;
  return {
    kind: "tensor",
    type: { dtype, shape },
    stored: {
      load() {
        const dense = hostArray(dtype, { count }) as unknown as Record<number, unknown>;
        const given = readTensor(values), at = readTensor(indices);
        const places = Array.from(at.data as BigInt64Array, Number);
        for (let i = 0; i < given.data.length; i++) {
          const place = at.shape.length === 1
            ? places[i]!
            : shape.reduce((flat, size, axis) => flat * size + places[i * shape.length + axis]!, 0);
          if (!(place >= 0 && place < count)) {
            throw new RangeError(`sparse index ${place} is outside [${shape}]`);
          }
          dense[place] = given.data[i];
        }
        return { dtype, shape, data: dense as unknown as HostTensor["data"] };
      },
    },
  };
}

/** A constant as a tensor of a file: where it lies, or a file that is computed when it is read. */
export function storedInfo(name: string, tensor: Tensor): TensorInfo {
  const { stored, type } = tensor;
  if (stored?.tensor) return stored.tensor;
  if (stored?.narrow) return storedInfo(name, stored.narrow);
  const shape = type.shape as readonly number[];
  const byteLength = elementCount(shape) * hostElementBytes(type.dtype);
  const format = ELEMENT_TYPE_OF.get(type.dtype)?.format ?? type.dtype;
  const source = lazySource(name, byteLength, () => load(tensor));
  return { name, shape, format, source, offset: 0, byteLength };
}

function lazySource(name: string, size: number, make: () => HostTensor): ByteSource {
  let bytes: Uint8Array | undefined;
  return {
    name: `constant ${name}`,
    size,
    readInto(offset, target) {
      if (!bytes) {
        const { data } = make();
        bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
      }
      target.set(bytes.subarray(offset, offset + target.length));
      // Whoever reads the end has read the rest.
      if (offset + target.length >= size) bytes = undefined;
    },
    close() {},
  };
}
