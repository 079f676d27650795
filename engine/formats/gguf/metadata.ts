// GGUF metadata values: thirteen types, one row each. Arrays of numbers become typed arrays in one copy
// (the format is little-endian, as is every machine that Deno runs on); 64-bit integers become plain
// numbers unless one of them is beyond 2^53, so that nobody downstream has to care how wide a writer
// chose to be.

import { type Cursor, headerError, need, readLength, readU32, type Steps } from "./cursor.ts";
import { readString, readStrings } from "./strings.ts";
import type { MetadataValue, NumericArray } from "../source.ts";
import { StringTable } from "../string_table.ts";

interface NumberType {
  readonly name: string;
  readonly bytes: number;
  read(view: DataView, pos: number): number | bigint;
  array(buffer: ArrayBuffer): NumericArray;
}

const numberTypes: ReadonlyMap<number, NumberType> = new Map<number, NumberType>([
  [
    0,
    numberType("u8", { bytes: 1, read: (v, p) => v.getUint8(p), array: (b) => new Uint8Array(b) }),
  ],
  [1, numberType("i8", { bytes: 1, read: (v, p) => v.getInt8(p), array: (b) => new Int8Array(b) })],
  [
    2,
    numberType("u16", {
      bytes: 2,
      read: (v, p) => v.getUint16(p, true),
      array: (b) => new Uint16Array(b),
    }),
  ],
  [
    3,
    numberType("i16", {
      bytes: 2,
      read: (v, p) => v.getInt16(p, true),
      array: (b) => new Int16Array(b),
    }),
  ],
  [
    4,
    numberType("u32", {
      bytes: 4,
      read: (v, p) => v.getUint32(p, true),
      array: (b) => new Uint32Array(b),
    }),
  ],
  [
    5,
    numberType("i32", {
      bytes: 4,
      read: (v, p) => v.getInt32(p, true),
      array: (b) => new Int32Array(b),
    }),
  ],
  [
    6,
    numberType("f32", {
      bytes: 4,
      read: (v, p) => v.getFloat32(p, true),
      array: (b) => new Float32Array(b),
    }),
  ],
  [
    10,
    numberType("u64", {
      bytes: 8,
      read: (v, p) => v.getBigUint64(p, true),
      array: (b) => new BigUint64Array(b),
    }),
  ],
  [
    11,
    numberType("i64", {
      bytes: 8,
      read: (v, p) => v.getBigInt64(p, true),
      array: (b) => new BigInt64Array(b),
    }),
  ],
  [
    12,
    numberType("f64", {
      bytes: 8,
      read: (v, p) => v.getFloat64(p, true),
      array: (b) => new Float64Array(b),
    }),
  ],
]);
const BOOL = 7;
const STRING = 8;
const ARRAY = 9;

// Two levels are what writers use; the rest is for recursion that somebody made up.
const MAX_DEPTH = 4;

function numberType(
  name: string,
  { bytes, read, array }: {
    readonly bytes: number;
    readonly read: NumberType["read"];
    readonly array: NumberType["array"];
  },
): NumberType {
  return { name, bytes, read, array };
}

/** Reads a value of GGUF type `type`; an array of strings stays as it is in the file. */
export function* readValue(
  cursor: Cursor,
  type: number,
): Steps<MetadataValue | StringTable> {
  if (type === STRING) return yield* readString(cursor, { what: "the value" });
  if (type === BOOL) return yield* readBool(cursor);
  if (type === ARRAY) return yield* readArray(cursor, 0);
  const { bytes, read } = findType(cursor, type);
  yield* need(cursor, bytes);
  const value = read(cursor.view, cursor.pos);
  cursor.pos += bytes;
  return typeof value === "bigint" && isExact(value) ? Number(value) : value;
}

function* readArray(cursor: Cursor, depth: number): Steps<MetadataValue | StringTable> {
  if (depth === MAX_DEPTH) throw headerError(cursor, `arrays nest deeper than ${MAX_DEPTH}`);
  const type = yield* readU32(cursor);
  if (type === STRING) {
    const count = yield* readLength(cursor, {
      what: "the array length",
      entryBytes: cursor.lengthBytes,
    });
    return yield* readStrings(cursor, count);
  }
  if (type === BOOL || type === ARRAY) {
    const entryBytes = type === BOOL ? 1 : 4 + cursor.lengthBytes;
    const count = yield* readLength(cursor, { what: "the array length", entryBytes });
    const values: MetadataValue[] = [];
    for (let i = 0; i < count; i++) {
      const value = type === BOOL ? yield* readBool(cursor) : yield* readArray(cursor, depth + 1);
      values.push(value instanceof StringTable ? value.all() : value);
    }
    return values;
  }
  const { bytes, array } = findType(cursor, type);
  const count = yield* readLength(cursor, { what: "the array length", entryBytes: bytes });
  yield* need(cursor, count * bytes);
  const start = cursor.pos;
  cursor.pos += count * bytes;
  return narrow(array(cursor.bytes.buffer.slice(start, cursor.pos)));
}

function* readBool(cursor: Cursor): Steps<boolean> {
  yield* need(cursor, 1);
  const byte = cursor.bytes[cursor.pos];
  if (byte > 1) throw headerError(cursor, `a bool is stored as ${byte}`);
  cursor.pos++;
  return byte === 1;
}

function findType(cursor: Cursor, type: number): NumberType {
  const found = numberTypes.get(type);
  if (!found) throw headerError(cursor, `metadata value type ${type} is unknown`);
  return found;
}

function narrow(values: NumericArray): NumericArray {
  if (values instanceof BigInt64Array || values instanceof BigUint64Array) {
    return values.every(isExact) ? Float64Array.from(values, Number) : values;
  }
  return values;
}

function isExact(value: bigint): boolean {
  return BigInt.asIntN(54, value) === value && value !== -(2n ** 53n);
}
