// The protobuf wire format over a ByteSource: varints, fixed and length-delimited fields by position. A
// window of the source is held, never the whole file, and a long field (a weight) is skipped by its
// length, so opening a file costs what its structure costs. Every length is checked against the bytes
// left before it is believed. Source: protobuf.dev, "Encoding".

import type { ByteSource } from "../../byte_source.ts";
import { FormatError } from "../../errors.ts";

/** Wire types that protobuf still uses. */
const WIRE = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const;

/** A field of a message: its number, wire type, and where its contents lie (of a varint: its value). */
export interface WireField {
  readonly number: number;
  readonly wire: number;
  readonly start: number;
  readonly end: number;
}

const WINDOW = 1 << 18;
const MOST_TEXT = 1 << 24;
const text = new TextDecoder("utf-8", { fatal: true });
const word = new Uint8Array(4), wordAsFloat = new Float32Array(word.buffer);

/** Reads one source, which must answer at once (a file or memory). */
export class WireReader {
  /** What is read. */
  readonly source: ByteSource;
  #window: Uint8Array = new Uint8Array(0);
  #start = 0;
  #at = 0;

  constructor(source: ByteSource) {
    this.source = source;
  }

  /** An error at a byte. */
  error(message: string, at: number = this.#at): FormatError {
    return new FormatError(message, {
      file: this.source.name,
      place: `byte ${at}`,
      remedy: "The file is cut short or damaged: fetch it again",
    });
  }

  /** Fields of the message in `[start, end)`, one after another. */
  *fields(start: number, end: number): Generator<WireField> {
    let at = start;
    while (at < end) {
      this.#at = at;
      const key = this.#short(end);
      const number = Math.floor(key / 8), wire = key % 8;
      if (number === 0 || number > 0x1fffffff) throw this.error(`field number ${number}`, at);
      const field = this.#field(number, wire, end);
      yield field;
      at = field.end;
    }
  }

  /** Value of a varint field, unsigned. */
  unsigned({ wire, start, end }: WireField): bigint {
    if (wire !== WIRE.varint) throw this.error(`wire type ${wire} where a varint belongs`, start);
    this.#at = start;
    return this.#varint(end);
  }

  /** Value of a varint field as a signed 64-bit integer. */
  signed(field: WireField): bigint {
    return BigInt.asIntN(64, this.unsigned(field));
  }

  /** Signed 64-bit integers of a repeated field, packed or one of many. */
  *integers(field: WireField): Generator<bigint> {
    if (field.wire === WIRE.varint) yield this.signed(field);
    else {
      this.#needBytes(field);
      let at = field.start;
      while (at < field.end) {
        this.#at = at;
        const value = this.#varint(field.end);
        at = this.#at;
        yield BigInt.asIntN(64, value);
      }
    }
  }

  /** Bytes of a repeated fixed-width field: packed, or one of many. */
  fixed(field: WireField, width: 4 | 8): Uint8Array<ArrayBuffer> {
    const single = width === 4 ? WIRE.fixed32 : WIRE.fixed64;
    if (field.wire !== single) this.#needBytes(field);
    if ((field.end - field.start) % width !== 0) {
      throw this.error(`${field.end - field.start} bytes of ${width}-byte numbers`, field.start);
    }
    return this.bytes(field.start, field.end);
  }

  /** A float32. */
  float({ wire, start, end }: WireField): number {
    if (wire !== WIRE.fixed32) throw this.error("a float of another wire type", start);
    word.set(this.#view(start, end));
    return wordAsFloat[0]!;
  }

  /** Appends the floats of a repeated field; trees have hundred thousands of one each. */
  addFloats(field: WireField, list: number[]): void {
    if (field.wire === WIRE.fixed32) list.push(this.float(field));
    else for (const value of new Float32Array(this.fixed(field, 4).buffer)) list.push(value);
  }

  /** Appends the signed integers of a repeated field. */
  addIntegers(field: WireField, list: bigint[]): void {
    if (field.wire === WIRE.varint) list.push(this.signed(field));
    else for (const value of this.integers(field)) list.push(value);
  }

  /** UTF-8 text. */
  text(field: WireField): string {
    this.message(field);
    if (field.end - field.start > MOST_TEXT) throw this.error("text beyond 16 MiB", field.start);
    try {
      return text.decode(this.#view(field.start, field.end));
    } catch {
      throw this.error("text that is not UTF-8", field.start);
    }
  }

  /** The same field, checked to be a length-delimited one. */
  message(field: WireField): WireField {
    this.#needBytes(field);
    return field;
  }

  /** A copy of a range. */
  bytes(start: number, end: number): Uint8Array<ArrayBuffer> {
    const target = new Uint8Array(end - start);
    if (target.length > WINDOW) this.#read(start, target);
    else target.set(this.#view(start, end));
    return target;
  }

  #needBytes({ wire, start }: WireField): void {
    if (wire !== WIRE.bytes) throw this.error(`wire type ${wire} where bytes belong`, start);
  }

  #field(number: number, wire: number, end: number): WireField {
    const start = this.#at;
    if (wire === WIRE.varint) {
      this.#short(end);
      return { number, wire, start, end: this.#at };
    }
    if (wire !== WIRE.bytes && wire !== WIRE.fixed64 && wire !== WIRE.fixed32) {
      throw this.error(`wire type ${wire}, which ONNX does not use`, start);
    }
    const length = wire === WIRE.bytes ? this.#short(end) : wire === WIRE.fixed64 ? 8 : 4;
    const first = this.#at;
    if (length > end - first) {
      throw this.error(`truncated: ${length} bytes are claimed, ${end - first} follow`, start);
    }
    return { number, wire, start: first, end: first + length };
  }

  // As a double: exact up to 2^53, and beyond that more than any length can be.
  #short(end: number): number {
    const start = this.#at;
    let value = 0, factor = 1;
    for (let i = 0; i < 10; i++) {
      if (start + i >= end) throw this.error("truncated: a varint goes on past the end", start);
      const byte = this.#byte(start + i);
      value += (byte & 0x7f) * factor;
      if (byte < 128) {
        if (i === 9 && byte > 1) throw this.error("varint too long: more than 64 bits", start);
        this.#at = start + i + 1;
        return value;
      }
      factor *= 128;
    }
    throw this.error("varint too long: more than 10 bytes", start);
  }

  #varint(end: number): bigint {
    const start = this.#at;
    const value = this.#short(end);
    return Number.isSafeInteger(value) ? BigInt(value) : this.#longVarint(start, this.#at - start);
  }

  #longVarint(start: number, length: number): bigint {
    let value = 0n;
    for (let i = 0; i < length; i++) {
      value |= BigInt(this.#byte(start + i) & 0x7f) << BigInt(7 * i);
    }
    this.#at = start + length;
    return value;
  }

  #byte(at: number): number {
    const offset = at - this.#start;
    if (offset >= 0 && offset < this.#window.length) return this.#window[offset]!;
    this.#load(at);
    return this.#window[at - this.#start]!;
  }

  #view(start: number, end: number): Uint8Array {
    if (end - start > WINDOW) return this.bytes(start, end);
    if (start < this.#start || end > this.#start + this.#window.length) this.#load(start);
    return this.#window.subarray(start - this.#start, end - this.#start);
  }

  #load(start: number): void {
    const window = new Uint8Array(Math.min(WINDOW, this.source.size - start));
    this.#read(start, window);
    this.#window = window;
    this.#start = start;
  }

  #read(start: number, target: Uint8Array): void {
    if (this.source.readInto(start, target)) {
      throw new TypeError(`Cannot read ${this.source.name}: it does not answer at once`);
    }
  }
}
