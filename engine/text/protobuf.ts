// Reads the wire format of Protocol Buffers (protobuf.dev/programming-guides/encoding) field by field:
// numbers, fixed-width values and length-delimited bytes, which are views and may be messages of their own.
// Which field means what is the caller's business. Groups, out of use since 2008, are refused. Nothing is
// recursive and nothing is allocated from a length in the data.

import { FormatError } from "../errors.ts";

/** One field of a message. */
export interface ProtoField {
  readonly number: number;
  /** 0 varint, 1 eight bytes, 2 length-delimited, 5 four bytes. */
  readonly wire: number;
  /** Low 64 bits of a varint; 0 for other wires. */
  readonly value: bigint;
  /** Bytes of the other wires; empty for varints. */
  readonly bytes: Uint8Array;
}

/** Where a message came from, for messages to people. */
export interface ProtoPlace {
  readonly file: string;
  /** Name of the message. */
  readonly place: string;
}

const VARINT = 0;
const EIGHT = 1;
const DELIMITED = 2;
const FOUR = 5;
const NO_BYTES = new Uint8Array(0);

/**
 * Walks the fields of a message, in order.
 *
 * @throws {FormatError} If a field runs past the end, its number is 0 or its wire type unknown.
 */
export function* readMessage(message: Uint8Array, at: ProtoPlace): Generator<ProtoField> {
  let pos = 0;

  function broken(what: string): FormatError {
    return new FormatError(what, {
      file: at.file,
      place: `${at.place}, byte ${pos}`,
      remedy: "The file is damaged or no such model: fetch it again",
    });
  }

  function readVarint(): bigint {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      if (pos >= message.length) throw broken("ends inside a number");
      const byte = message[pos++];
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return BigInt.asUintN(64, value);
    }
    throw broken("a number is longer than ten bytes");
  }

  function readBytes(length: bigint): Uint8Array {
    const left = message.length - pos;
    if (length > BigInt(left)) throw broken(`a field of ${length} bytes, ${left} are left`);
    pos += Number(length);
    return message.subarray(pos - Number(length), pos);
  }

  while (pos < message.length) {
    const key = readVarint();
    const number = Number(key >> 3n);
    const wire = Number(key & 7n);
    if (number === 0) throw broken("a field has the number 0");
    const value = wire === VARINT ? readVarint() : 0n;
    let bytes: Uint8Array = NO_BYTES;
    if (wire === DELIMITED) bytes = readBytes(readVarint());
    else if (wire === EIGHT || wire === FOUR) bytes = readBytes(wire === EIGHT ? 8n : 4n);
    else if (wire !== VARINT) throw broken(`wire type ${wire} is not in use`);
    yield { number, wire, value, bytes };
  }
}

/** A field's number as int32, which may be negative. */
export function int32Of({ value }: ProtoField): number {
  return Number(BigInt.asIntN(32, value));
}

/** A field's four bytes as float32; NaN where it has another wire type. */
export function floatOf({ bytes }: ProtoField): number {
  if (bytes.length !== 4) return NaN;
  return new DataView(bytes.buffer, bytes.byteOffset, 4).getFloat32(0, true);
}
