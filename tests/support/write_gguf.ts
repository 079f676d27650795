// Writes small GGUF and safetensors files for tests, rules and all; a test that wants a broken file changes
// bytes of a good one or passes values that a proper writer would not.

/** A metadata value with its GGUF type. */
export type Typed = readonly [type: keyof typeof writers | "array", value: unknown, of?: string];

/** A tensor to write; `type` is the ggml id, `dims` stand innermost first, as in the file. */
export interface TensorSpec {
  readonly name: string;
  readonly dims: readonly number[];
  readonly type: number;
  readonly data: Uint8Array;
}

const ids: Readonly<Record<string, number>> = {
  u8: 0,
  i8: 1,
  u16: 2,
  i16: 3,
  u32: 4,
  i32: 5,
  f32: 6,
  bool: 7,
  string: 8,
  array: 9,
  u64: 10,
  i64: 11,
  f64: 12,
};

const writers = {
  u8: scalar(1, (v, x) => v.setUint8(0, Number(x))),
  i8: scalar(1, (v, x) => v.setInt8(0, Number(x))),
  u16: scalar(2, (v, x) => v.setUint16(0, Number(x), true)),
  i16: scalar(2, (v, x) => v.setInt16(0, Number(x), true)),
  u32: scalar(4, (v, x) => v.setUint32(0, Number(x), true)),
  i32: scalar(4, (v, x) => v.setInt32(0, Number(x), true)),
  f32: scalar(4, (v, x) => v.setFloat32(0, Number(x), true)),
  bool: scalar(1, (v, x) => v.setUint8(0, Number(x))),
  u64: scalar(8, (v, x) => v.setBigUint64(0, BigInt(x as number), true)),
  i64: scalar(8, (v, x) => v.setBigInt64(0, BigInt(x as number), true)),
  f64: scalar(8, (v, x) => v.setFloat64(0, Number(x), true)),
  string: (x: unknown): Uint8Array => {
    const bytes = x instanceof Uint8Array ? x : new TextEncoder().encode(String(x));
    return joinBytes([writers.u64(bytes.length), bytes]);
  },
};

function scalar(bytes: number, set: (view: DataView, value: unknown) => void) {
  return (value: unknown): Uint8Array => {
    const out = new Uint8Array(bytes);
    set(new DataView(out.buffer), value);
    return out;
  };
}

/** Joins byte arrays. */
export function joinBytes(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

function writeValue([type, value, of]: Typed): Uint8Array {
  if (type !== "array") return writers[type](value);
  const items = [...value as Iterable<unknown>];
  return joinBytes([
    writers.u32(ids[of!]),
    writers.u64(items.length),
    ...items.map((item) =>
      of === "array" ? writeValue(item as Typed) : writeValue([of as "u8", item])
    ),
  ]);
}

const ALIGNMENT = 32;

/** Bytes that a tensor takes in a file. */
export function paddedBytes(bytes: number, alignment = ALIGNMENT): number {
  return Math.ceil(bytes / alignment) * alignment;
}

/** A GGUF v3 file. */
export function writeGguf(
  metadata: Readonly<Record<string, Typed>>,
  tensors: readonly TensorSpec[] = [],
  alignment = ALIGNMENT,
): Uint8Array<ArrayBuffer> {
  const data = tensors.flatMap((tensor) => [
    tensor.data,
    new Uint8Array(paddedBytes(tensor.data.length, alignment) - tensor.data.length),
  ]);
  return joinBytes([ggufHeader(metadata, tensors, alignment), ...data]);
}

/** What stands before the tensors' bytes, padding included. */
export function ggufHeader(
  metadata: Readonly<Record<string, Typed>>,
  tensors: readonly TensorSpec[] = [],
  alignment = ALIGNMENT,
): Uint8Array<ArrayBuffer> {
  const entries: Uint8Array[] = [];
  let offset = 0;
  for (const tensor of tensors) {
    entries.push(
      writers.string(tensor.name),
      writers.u32(tensor.dims.length),
      ...tensor.dims.map(writers.u64),
      writers.u32(tensor.type),
      writers.u64(offset),
    );
    offset += paddedBytes(tensor.data.length, alignment);
  }
  const keys = Object.entries(metadata).flatMap(([key, value]) => [
    writers.string(key),
    writers.u32(ids[value[0]]),
    writeValue(value),
  ]);
  const header = joinBytes([
    new TextEncoder().encode("GGUF"),
    writers.u32(3),
    writers.u64(tensors.length),
    writers.u64(Object.keys(metadata).length),
    ...keys,
    ...entries,
  ]);
  const padding = tensors.length ? paddedBytes(header.length, alignment) - header.length : 0;
  return joinBytes([header, new Uint8Array(padding)]);
}

/** A safetensors file of a header and its data. */
export function writeSafetensors(header: unknown, data: Uint8Array): Uint8Array<ArrayBuffer> {
  const text = typeof header === "string" ? header : JSON.stringify(header);
  const json = new TextEncoder().encode(text);
  return joinBytes([writers.u64(json.length), json, data]);
}

/** Bytes of float32 values. */
export function f32Bytes(values: readonly number[]): Uint8Array<ArrayBuffer> {
  return new Uint8Array(Float32Array.from(values).buffer);
}
