// Strings of a GGUF header: single ones are decoded at once, those of an array, which may be a vocabulary, are
// only measured (string_table.ts).

import { type Cursor, headerError, need, readLength, type Steps } from "./cursor.ts";
import { OutOfMemoryError } from "../../../wasm/allocator.ts";
import { measureStrings } from "../../../wasm/strings.ts";
import { ResourceError } from "../../errors.ts";
import { decodeText, StringTable, tryDecode } from "../string_table.ts";

/** Reads one string; `strictly` refuses bytes that are not UTF-8. */
export function* readString(
  cursor: Cursor,
  { what, strictly = false }: { readonly what: string; readonly strictly?: boolean | undefined },
): Steps<string> {
  const length = yield* readLength(cursor, { what: `the length of ${what}`, entryBytes: 1 });
  yield* need(cursor, length);
  const bytes = cursor.bytes.subarray(cursor.pos, cursor.pos + length);
  const text = tryDecode(bytes);
  if (text === undefined && strictly) throw headerError(cursor, `${what} is not UTF-8`);
  cursor.pos += length;
  return text ?? decodeText(bytes);
}

/** Reads `count` strings; the count is already checked against the bytes left. */
export function* readStrings(cursor: Cursor, count: number): Steps<StringTable> {
  const { pos: begin, lengthBytes } = cursor;
  const starts = new Uint32Array(count + 1);
  starts[0] = lengthBytes;
  for (let found = 0;;) {
    found = measured({ bytes: cursor.bytes, starts, lengthBytes }, { from: found, base: begin });
    cursor.pos = begin + starts[found] - lengthBytes;
    if (found === count) break;
    // One that is not there yet, or too long.
    yield* need(cursor, lengthBytes);
    const length = lengthBytes + stringLength(cursor, found, count);
    yield* need(cursor, length);
    starts[++found] = (cursor.pos += length) - begin + lengthBytes;
  }
  // No copy: a header is hardly more than its vocabulary, and memory that is new to the process costs more.
  return new StringTable(cursor.bytes.subarray(begin, cursor.pos), starts, lengthBytes);
}

/** {@linkcode measureStrings}. @throws {ResourceError} If the system refuses WASM memory. */
function measured(...list: Parameters<typeof measureStrings>): number {
  try {
    return measureStrings(...list);
  } catch (cause) {
    if (!(cause instanceof OutOfMemoryError)) throw cause;
    throw new ResourceError(cause.message, { remedy: "Free memory", cause });
  }
}

function stringLength(cursor: Cursor, index: number, count: number): number {
  const length = cursor.lengthBytes === 8
    ? cursor.view.getBigUint64(cursor.pos, true)
    : BigInt(cursor.view.getUint32(cursor.pos, true));
  if (length > BigInt(cursor.source.size - cursor.pos - cursor.lengthBytes)) {
    throw headerError(cursor, `string ${index} of ${count} is ${length} bytes long: past the end`);
  }
  return Number(length);
}
