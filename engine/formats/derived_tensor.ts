// What derived tensors have in common: a source that makes bytes when they are read, out of other tensors of the file.
// Either pieces of equal length lie elsewhere, or units are computed, and whole ones are.

import type { ByteSource } from "../byte_source.ts";
import type { TensorInfo } from "./source.ts";

/** A tensor whose bytes `readInto` makes; `label` says which in messages. */
export function derivedTensor(
  from: TensorInfo,
  { label, readInto, ...facts }:
    & Pick<TensorInfo, "name" | "shape" | "format" | "byteLength">
    & Pick<ByteSource, "readInto">
    & { readonly label: string },
): TensorInfo {
  const source: ByteSource = {
    ...{ name: `${from.source.name}: ${label}`, size: facts.byteLength, readInto },
    close() {},
  };
  return { ...facts, source, offset: 0 };
}

/** Numbers of a shape. */
export const countOf = (shape: readonly number[]): number => shape.reduce((a, b) => a * b, 1);

/** Reads pieces of `length` bytes; `read` fills a part of one, from byte `skipped` of it on. */
export function readPieces(
  length: number,
  read: (piece: number, skipped: number, target: Uint8Array) => void | Promise<void>,
): ByteSource["readInto"] {
  return async (start, target) => {
    for (let done = 0; done < target.length;) {
      const piece = Math.floor((start + done) / length), skipped = (start + done) % length;
      const part = target.subarray(done, done + Math.min(length - skipped, target.length - done));
      const reading = read(piece, skipped, part);
      if (reading) await reading;
      done += part.length;
    }
  };
}

/** Reads units of `length` bytes; `compute` makes those from `first` up to `end`, `most` at a time. */
export function readUnits(
  { length, most = Infinity }: { readonly length: number; readonly most?: number },
  compute: (first: number, end: number) => Promise<ArrayBuffer>,
): ByteSource["readInto"] {
  return async (start, target) => {
    const end = Math.ceil((start + target.length) / length);
    for (let first = Math.floor(start / length); first < end; first += most) {
      const bytes = new Uint8Array(await compute(first, Math.min(first + most, end)));
      const at = first * length - start, to = Math.max(0, at);
      target.set(bytes.subarray(to - at, to - at + target.length - to), to);
    }
  };
}
