// The header of one GGUF file (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md), versions 1 to
// 3, little-endian: metadata and the tensor table. It says where each tensor lies and never reads one.
// Everything that later code trusts is checked here: sizes without overflow, alignment, overlap, end of
// file, doubled names. Version 1 differs only in its 32-bit lengths and dimensions.

import { formatOfGgmlType, ggmlTypeName } from "../../../quant/mod.ts";
import type { ByteSource } from "../../byte_source.ts";
import { FormatError, UnsupportedError } from "../../errors.ts";
import {
  type Cursor,
  headerError,
  need,
  readLength,
  readU32,
  readU64,
  runParser,
  type Steps,
} from "./cursor.ts";
import { readValue } from "./metadata.ts";
import { readString } from "./strings.ts";
import { LazyMetadata } from "../lazy_metadata.ts";
import { type BlockLayout, scalarOfGgmlType } from "../scalars.ts";
import type { MetadataValue, TensorInfo } from "../source.ts";

/** What one GGUF file holds; of a split model each part has its own. */
export interface GgufHeader {
  /** 1, 2 or 3. */
  readonly version: number;
  /** Key/value pairs in file order. */
  readonly metadata: ReadonlyMap<string, MetadataValue>;
  /** Where the bytes of each key/value pair are, for whoever copies them with their types. */
  readonly ranges: ReadonlyMap<string, readonly [start: number, end: number]>;
  /** Tensors by name, in file order. */
  readonly tensors: ReadonlyMap<string, TensorInfo>;
  /** Length of header and tensor table in bytes, without the padding before the data. */
  readonly headerBytes: number;
}

const MAX_DIMENSIONS = 4;
const DEFAULT_ALIGNMENT = 32;

/** Reads and checks the header of one GGUF file. */
export function readGgufHeader(source: ByteSource): Promise<GgufHeader> {
  return runParser(source, parseHeader);
}

function* parseHeader(cursor: Cursor): Steps<GgufHeader> {
  const version = yield* readVersion(cursor);
  if (version === 1) cursor.lengthBytes = 4;
  cursor.place = "header";
  // The smallest tensor entry: name length, number of dimensions, type, offset; the smallest key: key
  // length, value type, one byte.
  const tensorCount = yield* readLength(cursor, {
    what: "the tensor count",
    entryBytes: cursor.lengthBytes + 16,
  });
  const keyCount = yield* readLength(cursor, {
    what: "the metadata count",
    entryBytes: cursor.lengthBytes + 5,
  });
  const { metadata, ranges } = yield* readMetadata(cursor, keyCount);
  const alignment = readAlignment(cursor, metadata);
  const entries = yield* readEntries(cursor, tensorCount);
  const headerBytes = cursor.pos;
  const dataStart = Math.ceil(headerBytes / alignment) * alignment;
  const tensors = placeTensors(cursor.source, { entries, dataStart, alignment });
  return { version, metadata, ranges, tensors, headerBytes };
}

function* readVersion(cursor: Cursor): Steps<number> {
  cursor.place = "magic";
  yield* need(cursor, 4);
  const file = cursor.source.name;
  const magic = String.fromCharCode(...cursor.bytes.subarray(0, 4));
  if (magic !== "GGUF") {
    const shown = JSON.stringify(magic);
    throw new FormatError(`is not a GGUF file: it begins with ${shown}`, { file, place: "byte 0" });
  }
  cursor.pos = 4;
  cursor.place = "version";
  const version = yield* readU32(cursor);
  if (version >= 1 && version <= 3) return version;
  const swapped = cursor.view.getUint32(4, false);
  const bigEndian = swapped >= 1 && swapped <= 3;
  throw new UnsupportedError(
    bigEndian
      ? `the file is big-endian (version ${swapped}); only little-endian GGUF is read`
      : `GGUF version ${version} is not known`,
    {
      file,
      place: "byte 4",
      remedy: bigEndian ? "Use the little-endian file" : "Versions 1, 2 and 3 are read",
    },
  );
}

function* readMetadata(
  cursor: Cursor,
  count: number,
): Steps<Pick<GgufHeader, "metadata" | "ranges">> {
  const metadata = new LazyMetadata();
  const ranges = new Map<string, [number, number]>();
  for (let i = 0; i < count; i++) {
    cursor.place = `metadata key ${i + 1} of ${count}`;
    const start = cursor.pos;
    const key = yield* readString(cursor, { what: "the key", strictly: true });
    cursor.place = `key ${JSON.stringify(key)}`;
    if (key === "") throw headerError(cursor, "a metadata key is empty");
    if (metadata.has(key)) throw headerError(cursor, "the key stands twice in the file");
    metadata.put(key, yield* readValue(cursor, yield* readU32(cursor)));
    ranges.set(key, [start, cursor.pos]);
  }
  return { metadata, ranges };
}

function readAlignment(cursor: Cursor, metadata: ReadonlyMap<string, MetadataValue>): number {
  const value = metadata.get("general.alignment") ?? DEFAULT_ALIGNMENT;
  cursor.place = 'key "general.alignment"';
  if (typeof value !== "number") {
    throw headerError(cursor, `must be an integer, is ${typeof value}`);
  }
  const isPowerOfTwo = value > 0 && Number.isInteger(Math.log2(value));
  if (!isPowerOfTwo || value % 8 !== 0) {
    throw headerError(cursor, `must be a power of two and a multiple of 8, is ${value}`);
  }
  return value;
}

/** A row of the tensor table before its place is checked. */
interface Entry {
  readonly name: string;
  readonly shape: readonly number[];
  readonly format: BlockLayout;
  readonly byteLength: number;
  /** Relative to the start of the data. */
  readonly offset: number;
}

function* readEntries(cursor: Cursor, count: number): Steps<Entry[]> {
  const entries: Entry[] = [];
  const names = new Set<string>();
  for (let i = 0; i < count; i++) {
    cursor.place = `tensor ${i + 1} of ${count}`;
    const name = yield* readString(cursor, { what: "the name", strictly: true });
    if (name === "") throw headerError(cursor, "a tensor has no name");
    cursor.place = `tensor ${JSON.stringify(name)}`;
    if (names.has(name)) throw headerError(cursor, "two tensors have this name");
    names.add(name);
    const shape = yield* readShape(cursor);
    const format = findFormat(cursor, yield* readU32(cursor));
    const offset = yield* readU64(cursor, "the offset");
    const byteLength = checkedBytes(cursor, shape, format);
    entries.push({ name, shape, format, byteLength, offset });
  }
  return entries;
}

function* readShape(cursor: Cursor): Steps<number[]> {
  const rank = yield* readU32(cursor);
  if (rank > MAX_DIMENSIONS) {
    throw headerError(cursor, `has ${rank} dimensions, the format allows ${MAX_DIMENSIONS}`);
  }
  const shape: number[] = [];
  for (let i = 0; i < rank; i++) {
    shape.push(
      cursor.lengthBytes === 8 ? yield* readU64(cursor, "a dimension") : yield* readU32(cursor),
    );
  }
  return shape.reverse(); // the file lists the contiguous dimension first
}

function findFormat(cursor: Cursor, type: number): BlockLayout {
  const format = formatOfGgmlType(type) ?? scalarOfGgmlType(type);
  if (format) return format;
  const name = ggmlTypeName(type);
  throw new UnsupportedError(
    name ? `its type ${name} (${type}) cannot be decoded` : `its type ${type} is unknown`,
    {
      file: cursor.source.name,
      place: cursor.place,
      remedy: "Use a file in another quantisation, e.g. Q4_K_M or Q8_0",
    },
  );
}

function checkedBytes(cursor: Cursor, shape: readonly number[], format: BlockLayout): number {
  // A product of doubles beyond 2^53 may be inexact but never falls back below it.
  const count = shape.reduce((product, dim) => product * dim, 1);
  const row = shape.at(-1) ?? 1;
  if (row % format.blockSize !== 0) {
    throw headerError(
      cursor,
      `rows of ${row} values are not whole ${format.name} blocks of ${format.blockSize}`,
    );
  }
  // A zero dimension must not hide an absurd one.
  const largest = shape.reduce((product, dim) => product * Math.max(dim, 1), 1);
  if (largest > Number.MAX_SAFE_INTEGER) {
    throw headerError(cursor, `its shape ${shape.join("×")} has more than 2^53 values`);
  }
  return (count / format.blockSize) * format.blockBytes;
}

function placeTensors(
  source: ByteSource,
  { entries, dataStart, alignment }: {
    readonly entries: readonly Entry[];
    readonly dataStart: number;
    readonly alignment: number;
  },
): Map<string, TensorInfo> {
  const tensors = new Map<string, TensorInfo>();
  for (const { name, shape, format, byteLength, offset: relative } of entries) {
    const fail = (message: string) =>
      new FormatError(message, {
        file: source.name,
        place: `tensor ${JSON.stringify(name)}`,
        remedy: "The file is damaged or cut short: fetch it again",
      });
    if (relative % alignment !== 0) {
      throw fail(`its offset ${relative} is no multiple of the alignment ${alignment}`);
    }
    const offset = dataStart + relative;
    if (offset + byteLength > source.size) {
      throw fail(`ends at byte ${offset + byteLength}, the file has ${source.size}`);
    }
    tensors.set(name, { name, shape, format: format.name, source, offset, byteLength });
  }
  checkOverlap(source, tensors);
  return tensors;
}

function checkOverlap(source: ByteSource, tensors: ReadonlyMap<string, TensorInfo>): void {
  const inOrder = [...tensors.values()]
    .filter((tensor) => tensor.byteLength > 0)
    .sort((a, b) => a.offset - b.offset);
  for (let i = 1; i < inOrder.length; i++) {
    const [before, after] = [inOrder[i - 1], inOrder[i]];
    if (before.offset + before.byteLength > after.offset) {
      throw new FormatError(`shares bytes with tensor ${JSON.stringify(before.name)}`, {
        file: source.name,
        place: `tensor ${JSON.stringify(after.name)}`,
        remedy: "The file is damaged: fetch it again",
      });
    }
  }
}
