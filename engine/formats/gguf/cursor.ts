// Walks a GGUF header without knowing how much of it has been read. The header's length stands nowhere,
// so parsers are generators: when they need bytes that are not here yet they yield how far the buffer
// must reach, and the driver reads on, synchronously or not. One parser thus serves files and URLs, and
// nothing is read beyond twice the header. Every length is judged against the bytes left in the source
// before it is used for reading or allocating.

import type { ByteSource } from "../../byte_source.ts";
import { FormatError } from "../../errors.ts";

/** A generator that yields the absolute position up to which the buffer must be filled. */
export type Steps<T> = Generator<number, T, void>;

/** Reading position in a header; `bytes` starts at offset 0 of the source and grows. */
export interface Cursor {
  /** What is read. */
  readonly source: ByteSource;
  /** As much of it as is here; grows, so never keep it. */
  bytes: Uint8Array<ArrayBuffer>;
  /** A view of `bytes`. */
  view: DataView;
  /** Offset of the next byte. */
  pos: number;
  /** Bytes of a length field: 8, in version 1 of the format 4. */
  lengthBytes: 4 | 8;
  /** What is being read, for messages. */
  place: string;
}

const FIRST_READ = 1 << 20;
/** Bytes that are set aside at least: they cost nothing until they are read into, moving them does. */
const ROOM = 1 << 24;
// Far above any real header (the largest vocabularies take 20 MB), far below what hurts.
const MAX_HEADER = 1 << 29;

/** Runs a parser from the start of a source. */
export async function runParser<T>(
  source: ByteSource,
  parse: (cursor: Cursor) => Steps<T>,
): Promise<T> {
  const empty = new Uint8Array(0);
  const cursor: Cursor = {
    source,
    bytes: empty,
    view: new DataView(empty.buffer),
    pos: 0,
    lengthBytes: 8,
    place: "",
  };
  const steps = parse(cursor);
  for (let step = steps.next();; step = steps.next()) {
    if (step.done) return step.value;
    await grow(cursor, step.value);
  }
}

async function grow(cursor: Cursor, needed: number): Promise<void> {
  if (needed > MAX_HEADER) {
    throw headerError(cursor, `the header is longer than ${MAX_HEADER} bytes`);
  }
  const { source, bytes } = cursor;
  const length = Math.min(source.size, Math.max(FIRST_READ, needed, bytes.length * 2));
  let { buffer } = bytes;
  if (length > buffer.byteLength) {
    buffer = new ArrayBuffer(Math.min(source.size, Math.max(ROOM, 2 * length)));
    new Uint8Array(buffer).set(bytes);
  }
  const larger = new Uint8Array(buffer, 0, length);
  await source.readInto(bytes.length, larger.subarray(bytes.length));
  cursor.bytes = larger;
  cursor.view = new DataView(buffer, 0, length);
}

/** Makes sure that `count` bytes from the position on are in the buffer. */
export function* need(cursor: Cursor, count: number): Steps<void> {
  const left = cursor.source.size - cursor.pos;
  if (count > left) throw headerError(cursor, `needs ${count} bytes but only ${left} are left`);
  if (cursor.pos + count > cursor.bytes.length) yield cursor.pos + count;
}

/** Reads a 32-bit unsigned integer. */
export function* readU32(cursor: Cursor): Steps<number> {
  yield* need(cursor, 4);
  const value = cursor.view.getUint32(cursor.pos, true);
  cursor.pos += 4;
  return value;
}

/** Reads a 64-bit unsigned integer that must be exact as a number. */
export function* readU64(cursor: Cursor, what: string): Steps<number> {
  yield* need(cursor, 8);
  const value = cursor.view.getBigUint64(cursor.pos, true);
  if (value > BigInt(Number.MAX_SAFE_INTEGER)) {
    throw headerError(cursor, `${what} is ${value}, the file has ${cursor.source.size} bytes`);
  }
  cursor.pos += 8;
  return Number(value);
}

/**
 * Reads a count or length and checks that so many entries of at least `entryBytes` can follow.
 */
export function* readLength(
  cursor: Cursor,
  { what, entryBytes }: { readonly what: string; readonly entryBytes: number },
): Steps<number> {
  const value = cursor.lengthBytes === 8 ? yield* readU64(cursor, what) : yield* readU32(cursor);
  const left = cursor.source.size - cursor.pos;
  if (value * entryBytes > left) {
    throw headerError(cursor, `${what} is ${value} but only ${left} bytes are left`);
  }
  return value;
}

/** An error at the cursor. */
export function headerError(cursor: Cursor, message: string): FormatError {
  const at = `byte ${cursor.pos}`;
  return new FormatError(message, {
    file: cursor.source.name,
    place: cursor.place ? `${cursor.place} (${at})` : at,
    remedy: "The file is damaged or cut short: fetch it again",
  });
}
