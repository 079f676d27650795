// Strings of a GGUF header: single ones are decoded at once, those of an array, which may be a vocabulary, are
// only measured (string_table.ts).

import { type Cursor, headerError, need, readLength, type Steps } from "./cursor.ts";
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
  const begin = cursor.pos;
  const starts = new Uint32Array(count + 1);
  for (let found = 0; found < count;) {
    found = findStrings(cursor, { begin, starts, from: found });
    if (found === count) break;
    yield* need(cursor, cursor.lengthBytes);
    yield* need(cursor, cursor.lengthBytes + stringLength(cursor, found, count));
  }
  starts[count] = cursor.pos - begin + cursor.lengthBytes;
  // A copy, since the buffer holds all of the header and goes when that is read.
  return new StringTable(cursor.bytes.slice(begin, cursor.pos), starts, cursor.lengthBytes);
}

// Notes where strings lie as far as the buffer reaches; returns the index of the first one that is not
// whole. A plain function, since loops inside generators are slow, and on bytes, since it is done before anything
// is compiled, and the interpreter takes twice as long for a call of a DataView.
function findStrings(
  cursor: Cursor,
  { begin, starts, from }: {
    readonly begin: number;
    readonly starts: Uint32Array;
    readonly from: number;
  },
): number {
  const { bytes, lengthBytes } = cursor;
  const count = starts.length - 1;
  let pos = cursor.pos;
  let i = from;
  for (; i < count && pos + lengthBytes <= bytes.length; i++) {
    const length = (bytes[pos] | bytes[pos + 1] << 8 | bytes[pos + 2] << 16) +
      bytes[pos + 3] * 2 ** 24;
    const high = lengthBytes === 4
      ? 0
      : bytes[pos + 4] | bytes[pos + 5] | bytes[pos + 6] | bytes[pos + 7];
    const start = pos + lengthBytes;
    if (high !== 0 || start + length > bytes.length) break;
    starts[i] = start - begin;
    pos = start + length;
  }
  cursor.pos = pos;
  return i;
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
