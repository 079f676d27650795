// Strings of a GGUF header, above all the vocabularies: 262,144 of them in one file. Decoding them one by
// one costs most of the load time, so the whole run, length fields included, is decoded in one call:
// a length field is eight ASCII characters (one of 128 or more is blanked first), which also keeps strings
// apart: what is not valid alone cannot become valid with its neighbour. Pieces are then cut by counting.
// Vocabularies hold parts of characters: bytes that are not UTF-8 survive as U+DC80…U+DCFF, the way
// Python's "surrogateescape" (PEP 383) does it; `stringBytes` gives the exact bytes back.

import { type Cursor, headerError, need, readLength, type Steps } from "./gguf_cursor.ts";

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const encoder = new TextEncoder();

/** Reads one string; `strictly` refuses bytes that are not UTF-8. */
export function* readString(cursor: Cursor, what: string, strictly = false): Steps<string> {
  const length = yield* readLength(cursor, `the length of ${what}`, 1);
  yield* need(cursor, length);
  const bytes = cursor.bytes.subarray(cursor.pos, cursor.pos + length);
  const text = tryDecode(bytes);
  if (text === undefined && strictly) throw headerError(cursor, `${what} is not UTF-8`);
  cursor.pos += length;
  return text ?? decodeEscaped(bytes);
}

/** Reads `count` strings; the count is already checked against the bytes left. */
export function* readStrings(cursor: Cursor, count: number): Steps<string[]> {
  const begin = cursor.pos;
  const starts = new Uint32Array(count);
  const lengths = new Uint32Array(count);
  for (let found = 0; found < count;) {
    found = findStrings(cursor, starts, lengths, found);
    if (found === count) break;
    yield* need(cursor, cursor.lengthBytes);
    yield* need(cursor, cursor.lengthBytes + stringLength(cursor, found, count));
  }
  const text = tryDecode(cursor.bytes.subarray(begin, cursor.pos));
  return text === undefined
    ? decodeEach(cursor.bytes, starts, lengths)
    : cutRun(cursor.bytes, text, starts, lengths, cursor.lengthBytes);
}

// Notes where strings lie as far as the buffer reaches; returns the index of the first one that is not
// whole. A plain function, since loops inside generators are slow.
function findStrings(
  cursor: Cursor,
  starts: Uint32Array,
  lengths: Uint32Array,
  from: number,
): number {
  const { bytes, view, lengthBytes } = cursor;
  let pos = cursor.pos;
  let i = from;
  for (; i < starts.length && pos + lengthBytes <= bytes.length; i++) {
    const length = view.getUint32(pos, true);
    const high = lengthBytes === 8 ? view.getUint32(pos + 4, true) : 0;
    const start = pos + lengthBytes;
    if (high !== 0 || start + length > bytes.length) break;
    if (length >= 0x80) bytes.fill(0, pos, start);
    starts[i] = start;
    lengths[i] = length;
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

function cutRun(
  bytes: Uint8Array,
  text: string,
  starts: Uint32Array,
  lengths: Uint32Array,
  lengthBytes: number,
): string[] {
  const strings = new Array<string>(starts.length);
  let at = 0;
  for (let i = 0; i < strings.length; i++) {
    at += lengthBytes;
    const end = starts[i] + lengths[i];
    let units = 0;
    for (let j = starts[i]; j < end; j++) {
      const byte = bytes[j];
      if ((byte & 0xc0) !== 0x80) units += byte >= 0xf0 ? 2 : 1;
    }
    strings[i] = text.slice(at, at + units);
    at += units;
  }
  return strings;
}

function decodeEach(bytes: Uint8Array, starts: Uint32Array, lengths: Uint32Array): string[] {
  return Array.from(starts, (start, i) => {
    const piece = bytes.subarray(start, start + lengths[i]);
    return tryDecode(piece) ?? decodeEscaped(piece);
  });
}

function tryDecode(bytes: Uint8Array): string | undefined {
  try {
    return strict.decode(bytes);
  } catch {
    return undefined;
  }
}

/** Decodes valid UTF-8 as it is and every other byte `b` as U+DC00 + b. */
function decodeEscaped(bytes: Uint8Array): string {
  let text = "";
  for (let i = 0; i < bytes.length;) {
    const length = sequenceLength(bytes[i]);
    const piece = length > 0 ? tryDecode(bytes.subarray(i, i + length)) : undefined;
    text += piece ?? String.fromCharCode(0xdc00 + bytes[i]);
    i += piece === undefined ? 1 : length;
  }
  return text;
}

// Bytes of the sequence that a lead byte opens; 0 for bytes that cannot lead.
function sequenceLength(lead: number): number {
  if (lead < 0x80) return 1;
  if (lead < 0xc2) return 0;
  if (lead < 0xe0) return 2;
  if (lead < 0xf0) return 3;
  return lead < 0xf5 ? 4 : 0;
}

/** The exact bytes of a GGUF string, stray bytes included. */
export function stringBytes(text: string): Uint8Array {
  if (text.isWellFormed()) return encoder.encode(text);
  const bytes: number[] = [];
  for (const character of text) {
    const code = character.codePointAt(0)!;
    if (code >= 0xdc80 && code <= 0xdcff) bytes.push(code - 0xdc00);
    else bytes.push(...encoder.encode(character));
  }
  return Uint8Array.from(bytes);
}
