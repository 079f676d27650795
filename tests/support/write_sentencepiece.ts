// Writes SentencePiece `.model` files for tests: the fields of sentencepiece_model.proto that the reader
// knows, and nothing else.

import { joinBytes } from "./write_gguf.ts";

/** A piece; the type is 1 (normal) unless given. */
export interface Piece {
  readonly text: string;
  readonly score?: number;
  readonly kind?: number;
}

/** Settings of trainer_spec and normalizer_spec, by field number. */
export interface ModelSettings {
  readonly trainer?: Readonly<Record<number, number>>;
  readonly normalizer?: Readonly<Record<number, number>>;
}

/** Bytes of a number of 7 bits a byte; negative ones as 64-bit two's complement. */
export function varint(value: number): Uint8Array<ArrayBuffer> {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, BigInt(value));
  do {
    bytes.push(Number(rest & 127n) | (rest > 127n ? 128 : 0));
    rest >>= 7n;
  } while (rest > 0n);
  return Uint8Array.from(bytes);
}

/** A length-delimited field. */
export function delimited(number: number, bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return joinBytes([varint(number << 3 | 2), varint(bytes.length), bytes]);
}

function numbers(fields: Readonly<Record<number, number>>): Uint8Array {
  return joinBytes(
    Object.entries(fields).map(([number, value]) =>
      joinBytes([varint(Number(number) << 3), varint(value)])
    ),
  );
}

function pieceBytes({ text, score = 0, kind = 1 }: Piece): Uint8Array {
  return joinBytes([
    delimited(1, new TextEncoder().encode(text)),
    varint(2 << 3 | 5),
    new Uint8Array(Float32Array.of(score).buffer),
    numbers({ 3: kind }),
  ]);
}

/** A model file. */
export function writeSentencePiece(
  pieces: readonly Piece[],
  { trainer = {}, normalizer = {} }: ModelSettings = {},
): Uint8Array<ArrayBuffer> {
  return joinBytes([
    ...pieces.map((piece) => delimited(1, pieceBytes(piece))),
    delimited(2, numbers(trainer)),
    delimited(3, numbers(normalizer)),
  ]);
}
