// The header of a GGUF file that is to be written (version 3, little-endian). Metadata is copied from
// another GGUF file byte for byte, since readers insist on the types that values were written with; a few
// integers are set anew. The caller then appends each tensor's bytes, in order, with the padding stated.

import type { NumberFormat } from "../../../quant/format.ts";
import { type ByteSource, joinBytes, readBytes } from "../../byte_source.ts";
import { UnsupportedError } from "../../errors.ts";
import { readGgufHeader } from "./header.ts";

/** Key/value pairs as bytes, by key. */
export type GgufEntries = ReadonlyMap<string, Uint8Array>;

/** A tensor to write. */
export interface GgufTensor {
  readonly name: string;
  /** Outermost dimension first. */
  readonly shape: readonly number[];
  /** A format with a ggml type. */
  readonly format: Pick<NumberFormat, "name" | "ggmlType">;
  readonly byteLength: number;
}

/** What precedes the tensors, and how far apart they lie. */
export interface GgufHead {
  readonly bytes: Uint8Array;
  readonly alignment: number;
}

const UINT32 = 4;
const STRING = 8;
const encoder = new TextEncoder();

/**
 * The key/value pairs of a GGUF file, those about its being split left out.
 *
 * @throws {UnsupportedError} If it is of version 1, whose lengths are of another width.
 */
export async function readGgufEntries(source: ByteSource): Promise<GgufEntries> {
  const { version, ranges } = await readGgufHeader(source);
  if (version === 1) {
    throw new UnsupportedError("GGUF version 1 cannot be copied", {
      file: source.name,
      remedy: "Convert it to version 3 first",
    });
  }
  const length = Math.max(0, ...[...ranges.values()].map(([, last]) => last));
  const bytes = await readBytes(source, { length });
  return new Map(
    [...ranges]
      .filter(([key]) => !key.startsWith("split."))
      .map(([key, [first, last]]) => [key, bytes.subarray(first, last)]),
  );
}

/** Entries with some unsigned 32-bit integers set, or taken out where the value is undefined. */
export function setGgufIntegers(
  entries: GgufEntries,
  values: Readonly<Record<string, number | undefined>>,
): GgufEntries {
  const result = new Map(entries);
  for (const [key, value] of Object.entries(values)) {
    if (value === undefined) result.delete(key);
    else result.set(key, joinBytes([string(key), u32(UINT32), u32(value)]));
  }
  return result;
}

/** Entries with a text set. */
export function setGgufText(
  entries: GgufEntries,
  { key, text }: { readonly key: string; readonly text: string },
): GgufEntries {
  return new Map(entries).set(key, joinBytes([string(key), u32(STRING), string(text)]));
}

/** The head of a file with these entries and tensors; the alignment is that of the entries. */
export function createGgufHead(
  entries: GgufEntries,
  tensors: readonly GgufTensor[],
): GgufHead {
  const alignment = alignmentOf(entries);
  let offset = 0;
  const table = tensors.map(({ name, shape, format, byteLength }) => {
    const dims = [...shape].reverse().map(u64);
    const entry = joinBytes([
      ...[string(name), u32(shape.length), ...dims],
      ...[u32(typeOf(name, format)), u64(offset)],
    ]);
    offset += byteLength + paddingAfter(byteLength, alignment);
    return entry;
  });
  const head = joinBytes([
    ...[encoder.encode("GGUF"), u32(3), u64(tensors.length), u64(entries.size)],
    ...entries.values(),
    ...table,
  ]);
  return {
    bytes: joinBytes([head, new Uint8Array(paddingAfter(head.length, alignment))]),
    alignment,
  };
}

/** Zero bytes that follow so many bytes. */
export function paddingAfter(byteLength: number, alignment: number): number {
  return (alignment - byteLength % alignment) % alignment;
}

function typeOf(name: string, format: Pick<NumberFormat, "name" | "ggmlType">): number {
  if (format.ggmlType !== undefined) return format.ggmlType;
  throw new RangeError(`Cannot write tensor ${name} to GGUF: ${format.name} is no type of ggml`);
}

function alignmentOf(entries: GgufEntries): number {
  const entry = entries.get("general.alignment");
  if (!entry) return 32;
  return new DataView(entry.buffer, entry.byteOffset).getUint32(entry.length - 4, true);
}

function string(text: string): Uint8Array {
  const bytes = encoder.encode(text);
  return joinBytes([u64(bytes.length), bytes]);
}

function u32(value: number): Uint8Array {
  return new Uint8Array(Uint32Array.of(value).buffer);
}

function u64(value: number): Uint8Array {
  return new Uint8Array(BigUint64Array.of(BigInt(value)).buffer);
}
