// TensorProto: dims and bytes are checked against each other exactly before anything is believed, and raw
// data stays in the file until somebody loads it. Elements in typed fields are rewritten as raw ones.
// External data is opened through the caller, who knows the model's folder; its name is checked here.

import { type ByteSource, joinBytes } from "../../byte_source.ts";
import { FormatError } from "../../errors.ts";
import { memorySource } from "../../io.ts";
import { ELEMENT_TYPES, type ElementType } from "./data_types.ts";
import type { OnnxSparseTensor, OnnxTensor } from "./model.ts";
import type { WireField, WireReader } from "./wire.ts";

/** Opens a file of external data, by the name in the model. */
export type OpenExternal = (name: string) => ByteSource;

interface Fields {
  dims: bigint[];
  type: number;
  name: string;
  raw?: WireField;
  typed: Map<ElementType["field"], WireField[]>;
  strings: WireField[];
  external: Map<string, string>;
  isExternal: boolean;
}

const TYPED: Readonly<Record<number, ElementType["field"]>> = {
  4: "float",
  5: "int32",
  7: "int64",
  10: "double",
  11: "uint64",
};

/** A tensor in `[start, end)`. */
export function readTensor(
  reader: WireReader,
  { pick: { start, end }, openExternal }: {
    readonly pick: Pick<WireField, "start" | "end">;
    readonly openExternal: OpenExternal;
  },
): OnnxTensor {
  const fields = collect(reader, start, end);
  const name = fields.name || "(unnamed)";
  const fail = (message: string) =>
    new FormatError(message, { file: reader.source.name, place: `tensor ${name}` });
  const type = ELEMENT_TYPES.get(fields.type);
  if (!type) throw fail(`element type ${fields.type} is not supported`);
  const shape = fields.dims.map(Number);
  if (fields.dims.some((dim) => dim < 0n)) throw fail(`a negative size in [${fields.dims}]`);
  const count = fields.dims.reduce((product, dim) => product * dim, 1n);
  if (count > BigInt(Number.MAX_SAFE_INTEGER)) throw fail(`[${fields.dims}] is beyond 2^53`);
  const { dtype, format } = type;
  const result = { name: fields.name, dtype, shape };
  checkOnePlace(fields, fail);
  if (type.field === "string") {
    if (BigInt(fields.strings.length) !== count) {
      throw fail(`${fields.strings.length} strings for [${shape}]`);
    }
    return { ...result, strings: fields.strings.map((field) => reader.text(field)) };
  }
  const wanted = Number((count * BigInt(type.bits) + 7n) / 8n);
  const place = fields.isExternal
    ? externalBytes(fields.external, { wanted, openExternal, fail })
    : fields.raw
    ? {
      source: reader.source,
      offset: fields.raw.start,
      byteLength: fields.raw.end - fields.raw.start,
    }
    : typedBytes(reader, { fields, type, name });
  if (place.byteLength !== wanted) {
    throw fail(`${place.byteLength} bytes for ${dtype}[${shape}], which takes ${wanted}`);
  }
  return { ...result, tensor: { name: fields.name, shape, format, ...place } };
}

function collect(reader: WireReader, start: number, end: number): Fields {
  const fields: Fields = {
    dims: [],
    type: 0,
    name: "",
    typed: new Map(),
    strings: [],
    external: new Map(),
    isExternal: false,
  };
  for (const field of reader.fields(start, end)) {
    const typed = TYPED[field.number];
    if (typed) {
      const parts = fields.typed.get(typed);
      if (parts) parts.push(field);
      else fields.typed.set(typed, [field]);
    } else if (field.number === 1) addDims(reader, { field, dims: fields.dims });
    else if (field.number === 2) fields.type = Number(reader.signed(field));
    else if (field.number === 3) throw reader.error("a tensor in segments", field.start);
    else if (field.number === 6) fields.strings.push(reader.message(field));
    else if (field.number === 8) fields.name = reader.text(field);
    else if (field.number === 9) fields.raw = reader.message(field);
    else if (field.number === 13) readEntry(reader, { entry: field, into: fields.external });
    else if (field.number === 14) fields.isExternal = reader.unsigned(field) === 1n;
  }
  return fields;
}

const MOST_DIMS = 64;

function addDims(
  reader: WireReader,
  { field, dims }: { readonly field: WireField; readonly dims: bigint[] },
): void {
  for (const dim of reader.integers(field)) {
    if (dims.push(dim) > MOST_DIMS) {
      throw reader.error(`a tensor of more than ${MOST_DIMS} dims`, field.start);
    }
  }
}

/** A StringStringEntryProto into a map. */
export function readEntry(
  reader: WireReader,
  { entry, into }: { readonly entry: WireField; readonly into: Map<string, string> },
): void {
  let key = "", value = "";
  reader.message(entry);
  for (const field of reader.fields(entry.start, entry.end)) {
    if (field.number === 1) key = reader.text(field);
    else if (field.number === 2) value = reader.text(field);
  }
  into.set(key, value);
}

function checkOnePlace(fields: Fields, fail: (message: string) => Error): void {
  const places = [
    ...fields.raw ? ["raw_data"] : [],
    ...[...fields.typed.keys()].map((field) => `${field}_data`),
    ...fields.strings.length > 0 ? ["string_data"] : [],
    ...fields.isExternal ? ["external_data"] : [],
  ];
  if (places.length > 1) throw fail(`elements in ${places.join(" and ")}: one may be set`);
}

interface Place {
  readonly source: ByteSource;
  readonly offset: number;
  readonly byteLength: number;
}

function externalBytes(
  entries: ReadonlyMap<string, string>,
  { wanted, openExternal, fail }: {
    readonly wanted: number;
    readonly openExternal: OpenExternal;
    readonly fail: (message: string) => Error;
  },
): Place {
  const location = entries.get("location");
  if (location === undefined) throw fail("external data without a location");
  const offset = externalNumber(entries, { key: "offset", fallback: 0, fail });
  const source = openExternal(location);
  const byteLength = externalNumber(entries, { key: "length", fallback: wanted, fail });
  if (offset > source.size || byteLength > source.size - offset) {
    throw fail(
      `bytes ${offset} to ${offset + byteLength} of ${JSON.stringify(location)}, ` +
        `which has ${source.size}`,
    );
  }
  return { source, offset, byteLength };
}

function externalNumber(
  entries: ReadonlyMap<string, string>,
  { key, fallback, fail }: {
    readonly key: string;
    readonly fallback: number;
    readonly fail: (message: string) => Error;
  },
): number {
  const written = entries.get(key);
  if (written === undefined) return fallback;
  const value = /^\d{1,16}$/.test(written) ? Number(written) : NaN;
  if (Number.isSafeInteger(value)) return value;
  throw fail(`external ${key} ${JSON.stringify(written)} is not an integer from 0 to 2^53`);
}

// Typed fields hold small types in wide integers; 4- and 2-bit elements are packed bytes there too.
function typedBytes(
  reader: WireReader,
  { fields: { typed }, type, name }: {
    readonly fields: Fields;
    readonly type: ElementType;
    readonly name: string;
  },
): Place {
  const fields = typed.get(type.field) ?? [];
  if (typed.size > 0 && fields.length === 0) {
    throw reader.error(`tensor ${name}: elements in ${[...typed.keys()]}_data`);
  }
  const parts: Uint8Array[] = fields.map((field) => {
    if (type.field === "float") return reader.fixed(field, 4);
    if (type.field === "double") return reader.fixed(field, 8);
    return narrow([...reader.integers(field)], Math.max(8, type.bits));
  });
  const bytes = joinBytes(parts);
  return {
    // Weights are told apart by the names of their sources.
    source: memorySource(`${reader.source.name}, byte ${fields[0]?.start ?? 0}`, bytes),
    offset: 0,
    byteLength: bytes.length,
  };
}

function narrow(values: readonly bigint[], bits: number): Uint8Array {
  const bytes = new Uint8Array(values.length * bits / 8);
  const view = new DataView(bytes.buffer);
  values.forEach((value, i) => {
    if (bits === 64) view.setBigInt64(i * 8, value, true);
    else if (bits === 32) view.setUint32(i * 4, Number(BigInt.asUintN(32, value)), true);
    else if (bits === 16) view.setUint16(i * 2, Number(BigInt.asUintN(16, value)), true);
    else view.setUint8(i, Number(BigInt.asUintN(8, value)));
  });
  return bytes;
}

/** A SparseTensorProto in `[start, end)`. */
export function readSparseTensor(
  reader: WireReader,
  { pick: { start, end }, openExternal }: {
    readonly pick: Pick<WireField, "start" | "end">;
    readonly openExternal: OpenExternal;
  },
): OnnxSparseTensor {
  let values: OnnxTensor | undefined, indices: OnnxTensor | undefined;
  const shape: bigint[] = [];
  for (const field of reader.fields(start, end)) {
    if (field.number === 1) {
      values = readTensor(reader, { pick: reader.message(field), openExternal });
    } else if (field.number === 2) {
      indices = readTensor(reader, { pick: reader.message(field), openExternal });
    } else if (field.number === 3) addDims(reader, { field, dims: shape });
  }
  if (!values || !indices) throw reader.error("a sparse tensor without values or indices", start);
  return { values, indices, shape: shape.map(Number) };
}
