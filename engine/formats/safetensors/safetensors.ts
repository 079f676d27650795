// safetensors (https://github.com/huggingface/safetensors): u64 header length, a JSON object, then the
// data. Each tensor says dtype, shape and its range; the ranges must fill the data exactly, without holes,
// overlap or rest, so nothing can hide in a file. Only the name `__metadata__` is reserved. What this
// engine's own quantiser notes there is read by stored_formats.ts.
// Sharded checkpoints are opened through folder.ts.

import { COUNTS } from "../../record.ts";
import { formats } from "../../../quant/mod.ts";
import { type ByteSource, readBytes } from "../../byte_source.ts";
import { FormatError, UnsupportedError } from "../../errors.ts";
import { type BlockLayout, scalars } from "../scalars.ts";
import { checkFields, type FieldTable, rows } from "../field_table.ts";
import type { MetadataValue, TensorInfo, WeightFile } from "../source.ts";
import { applyStoredFormats } from "../stored_formats.ts";
import { asObject, parseStrictJson } from "../strict_json.ts";

/** What the header says of a tensor. The format has no other fields: one could be a scale or an order of the values. */
const ENTRY_FIELDS: FieldTable = {
  ...rows("read", "dtype", "shape", "data_offsets"),
  "*": { only: [] },
};

// The reference reader's limit.
const MAX_HEADER = 100_000_000;

/**
 * Opens one safetensors file; its `__metadata__` strings become the metadata.
 *
 * @throws {FormatError} If a rule of the format is broken.
 * @throws {UnsupportedError} If a dtype is not one we can measure.
 */
export async function openSafetensors(source: ByteSource): Promise<WeightFile> {
  const header = await readHeader(source);
  const dataStart = header.bytes;
  const metadata = new Map<string, MetadataValue>();
  const tensors: TensorInfo[] = [];
  for (const [name, value] of Object.entries(header.json)) {
    if (name === "__metadata__") readMetadata(source, value, metadata);
    else tensors.push(readTensor(source, { name, value, dataStart }));
  }
  tensors.sort((a, b) => a.offset - b.offset || a.byteLength - b.byteLength);
  checkCoverage(source, tensors, dataStart);
  return await applyStoredFormats({
    kind: "safetensors",
    name: source.name,
    metadata,
    tensors: new Map(tensors.map((tensor) => [tensor.name, tensor])),
    close: () => source.close(),
  });
}

async function readHeader(
  source: ByteSource,
): Promise<{ bytes: number; json: { readonly [key: string]: MetadataValue } }> {
  if (source.size < 8) {
    throw broken(source, "", `has ${source.size} bytes, a safetensors file begins with 8`);
  }
  const prefix = await readBytes(source, { length: 8 });
  const length = new DataView(prefix.buffer).getBigUint64(0, true);
  if (length > BigInt(source.size - 8)) {
    throw broken(source, "byte 0", `header of ${length} bytes, ${source.size - 8} follow`);
  }
  if (length > BigInt(MAX_HEADER)) {
    throw broken(source, "byte 0", `header of ${length} bytes, the limit is ${MAX_HEADER}`);
  }
  const bytes = await readBytes(source, { offset: 8, length: Number(length) });
  const json = asObject(parseStrictJson(bytes, `${source.name}, header`));
  if (!json) throw broken(source, "header", "is not a JSON object");
  return { bytes: 8 + bytes.length, json };
}

function readMetadata(
  source: ByteSource,
  value: MetadataValue,
  metadata: Map<string, MetadataValue>,
): void {
  const pairs = Object.entries(asObject(value) ?? fail(source, "__metadata__", "is not an object"));
  for (const [key, text] of pairs) {
    if (typeof text !== "string") {
      throw broken(source, `__metadata__, ${JSON.stringify(key)}`, "must be a string");
    }
    metadata.set(key, text);
  }
}

function readTensor(
  source: ByteSource,
  { name, value, dataStart }: {
    readonly name: string;
    readonly value: MetadataValue;
    readonly dataStart: number;
  },
): TensorInfo {
  const place = `tensor ${JSON.stringify(name)}`;
  if (name === "") throw broken(source, place, "has no name");
  const entry = asObject(value) ?? fail(source, place, "is not a JSON object");
  checkFields(entry, ENTRY_FIELDS, { file: source.name, place });
  const layout = findLayout(source, place, entry.dtype);
  const { shape, data_offsets: range } = entry;
  if (!COUNTS.accepts(shape)) {
    throw broken(source, place, `its shape ${JSON.stringify(shape)} is no list of sizes`);
  }
  if (!COUNTS.accepts(range) || range.length !== 2 || range[0] > range[1]) {
    throw broken(
      source,
      place,
      `its data_offsets ${JSON.stringify(range)} are no range`,
    );
  }
  const [begin, end] = range;
  const dataBytes = source.size - dataStart;
  if (end > dataBytes) {
    throw broken(
      source,
      place,
      `ends at byte ${dataStart + end}, the file has ${source.size}: ${
        end - dataBytes
      } bytes missing`,
    );
  }
  // A product of doubles beyond 2^53 may be inexact but cannot equal a range inside the file.
  const byteLength = shape.reduce((product, dim) => product * dim, layout.blockBytes);
  if (byteLength !== end - begin) {
    throw broken(
      source,
      place,
      `${layout.name} of shape [${shape}] needs ${byteLength} bytes, its range has ${end - begin}`,
    );
  }
  return { name, shape, format: layout.name, source, offset: dataStart + begin, byteLength };
}

function findLayout(
  source: ByteSource,
  place: string,
  dtype: MetadataValue | undefined,
): BlockLayout {
  if (typeof dtype !== "string") throw broken(source, place, "has no dtype");
  const layout = formats.get(dtype) ?? scalars.get(dtype);
  if (layout?.blockSize === 1) return layout;
  throw new UnsupportedError(`its dtype ${JSON.stringify(dtype)} is unknown`, {
    file: source.name,
    place,
    remedy: "Use a checkpoint in F32, F16 or BF16",
  });
}

/** Tensors, sorted by place, must follow each other from the first byte of the data to the last. */
function checkCoverage(
  source: ByteSource,
  tensors: readonly TensorInfo[],
  dataStart: number,
): void {
  let position = dataStart;
  for (const { name, offset, byteLength } of tensors) {
    const place = `tensor ${JSON.stringify(name)}`;
    if (offset > position) {
      throw broken(source, place, `bytes ${position} to ${offset} before it belong to no tensor`);
    }
    if (offset < position) {
      throw broken(source, place, `shares ${position - offset} bytes with the tensor before it`);
    }
    position = offset + byteLength;
  }
  if (position !== source.size) {
    throw broken(
      source,
      `byte ${position}`,
      `${source.size - position} bytes after the last tensor belong to none`,
    );
  }
}

function fail(source: ByteSource, place: string, message: string): never {
  throw broken(source, place, message);
}

function broken(source: ByteSource, place: string, message: string): FormatError {
  return new FormatError(message, {
    file: source.name,
    place,
    remedy: "The file is damaged or cut short: fetch it again",
  });
}
