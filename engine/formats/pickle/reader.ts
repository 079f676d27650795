// Bytes of a pickle in order, with every length judged against what is left before it is used. Running
// out has an error class of its own: a legacy checkpoint does not say how long its pickles are, so its
// reader tries again with more bytes, and only the end of the file makes it final.

import { FormatError } from "../../errors.ts";

/** The pickle goes on behind the bytes that are here. */
export class PickleEndError extends FormatError {}

/** Reading position in a pickle. */
export interface PickleReader {
  readonly bytes: Uint8Array;
  readonly view: DataView;
  /** File and, in an archive, member, for messages. */
  readonly file: string;
  /** Offset of the next byte. */
  pos: number;
}

const LINE_FEED = 0x0a;
/** Far above any number or name that a line of a real pickle holds. */
const MAX_LINE = 4096;
/** 128 bits: the magic number of legacy files has 77. */
const MAX_LONG_BYTES = 16;

/** A reader at the start. */
export function createReader(bytes: Uint8Array, file: string): PickleReader {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return { bytes, view, file, pos: 0 };
}

/** An error at the place of the reader. */
export function pickleError(reader: PickleReader, message: string): FormatError {
  return new FormatError(message, {
    file: reader.file,
    place: `byte ${reader.pos}`,
    remedy: "The checkpoint is damaged or not one of PyTorch: fetch it again, or use safetensors",
  });
}

/** Moves on by `count` bytes and gives where they began. */
export function take(reader: PickleReader, count: number): number {
  const left = reader.bytes.length - reader.pos;
  if (count > left) {
    throw new PickleEndError(`the pickle needs ${count} bytes here, ${left} are left`, {
      file: reader.file,
      place: `byte ${reader.pos}`,
      remedy: "The checkpoint is damaged or cut short: fetch it again",
    });
  }
  const start = reader.pos;
  reader.pos += count;
  return start;
}

/** An unsigned integer of 1, 2 or 4 bytes. */
export function readUnsigned(reader: PickleReader, width: 1 | 2 | 4): number {
  const at = take(reader, width);
  if (width === 1) return reader.view.getUint8(at);
  return width === 2 ? reader.view.getUint16(at, true) : reader.view.getUint32(at, true);
}

/** A length of 8 bytes. */
export function readLength8(reader: PickleReader): number {
  const length = reader.view.getBigUint64(take(reader, 8), true);
  if (length > BigInt(Number.MAX_SAFE_INTEGER)) {
    throw pickleError(reader, `speaks of ${length} bytes`);
  }
  return Number(length);
}

/** A length that LONG4 and BINSTRING write with a sign. */
export function readSignedLength(reader: PickleReader): number {
  const length = reader.view.getInt32(take(reader, 4), true);
  if (length < 0) throw pickleError(reader, `the length ${length} is negative`);
  return length;
}

/** Bytes, as a view. */
export function readBytes(reader: PickleReader, length: number): Uint8Array {
  const start = take(reader, length);
  return reader.bytes.subarray(start, start + length);
}

/** UTF-8 text; lone surrogates, which Python may write, become U+FFFD. */
export function readText(reader: PickleReader, length: number): string {
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(readBytes(reader, length));
}

/** One byte a character, as Python 2 wrote its strings. */
export function readLatin1(reader: PickleReader, length: number): string {
  const bytes = readBytes(reader, length);
  let text = "";
  for (let at = 0; at < bytes.length; at += 4096) {
    text += String.fromCharCode(...bytes.subarray(at, at + 4096));
  }
  return text;
}

/** A line without its end; nothing is trimmed. */
export function readLine(reader: PickleReader): string {
  const window = reader.bytes.subarray(reader.pos, reader.pos + MAX_LINE);
  const length = window.indexOf(LINE_FEED);
  if (length >= 0) {
    const text = readText(reader, length);
    reader.pos++;
    return text;
  }
  if (window.length === MAX_LINE) throw pickleError(reader, `a line is over ${MAX_LINE} bytes`);
  take(reader, window.length + 1);
  return "";
}

/** A two's complement integer of `length` bytes. */
export function readLong(reader: PickleReader, length: number): number | bigint {
  if (length > MAX_LONG_BYTES) {
    take(reader, length);
    throw pickleError(reader, `an integer of ${length} bytes; the limit is ${MAX_LONG_BYTES}`);
  }
  const bytes = readBytes(reader, length);
  let value = 0n;
  for (let i = length - 1; i >= 0; i--) value = value << 8n | BigInt(bytes[i]);
  return exact(BigInt.asIntN(8 * length, value));
}

/** A decimal integer of a line. */
export function parseDecimal(reader: PickleReader, text: string): number | bigint {
  if (!/^[+-]?\d{1,39}$/.test(text)) throw pickleError(reader, "a line holds no integer");
  return exact(BigInt(text));
}

function exact(value: bigint): number | bigint {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}
