// Importance matrices as llama.cpp's `imatrix` writes them: sums of squares of each input column, by tensor.
// Two containers: GGUF with tensors NAME.in_sum2 and NAME.counts, and the older .dat, little-endian records of
// name length, name, calls, count and float32 values. Stacks of experts, which have a row for each, are left out: one
// set of columns cannot speak for all.

import { findBadImportance } from "../../quant/importance.ts";
import { type ByteSource, readBytes } from "../byte_source.ts";
import { FormatError } from "../errors.ts";
import { openGguf } from "./gguf/gguf.ts";
import { checkFields, type FieldTable, rows } from "./field_table.ts";
import type { TensorInfo } from "./source.ts";

/** Mean squares of input columns, up to a factor, by name of the tensor. */
export type ImportanceMatrix = ReadonlyMap<string, Float32Array>;

const MOST_ENTRIES = 1 << 20;

/**
 * Reads an importance matrix.
 *
 * @throws {FormatError} If it is none, or cut short, or holds numbers that are negative, not finite or
 *   beyond what inputs can give.
 */
export async function readImatrix(source: ByteSource): Promise<ImportanceMatrix> {
  const magic = await readBytes(source, { length: Math.min(4, source.size) });
  const isGguf = new TextDecoder().decode(magic) === "GGUF";
  const found = isGguf ? await readFromGguf(source) : await readFromDat(source);
  for (const [name, values] of found) {
    const bad = findBadImportance(values);
    if (bad >= 0) throw broken(source, name, `the importance of column ${bad} is ${values[bad]}`);
  }
  if (found.size === 0) throw broken(source, undefined, "holds no importance of any matrix");
  return found;
}

const SUMS = ".in_sum2";
/** How many rows were summed, a factor of all values alike; and plain sums, which some writers add. */
const BESIDE = [".counts", ".in_sum"];

/** Keys of the GGUF form. */
const FIELDS: FieldTable = {
  "general.type": { only: ["imatrix"] },
  "general.*": { harmless: "it says who made the file, and of what" },
  ...rows(
    { harmless: "a factor of all values alike" },
    "imatrix.chunk_count",
    "imatrix.chunk_size",
  ),
  "imatrix.datasets": { harmless: "names of the texts" },
  "split.*": { harmless: "the reader of GGUF files has joined the parts" },
  // What it might say of the sums is not known.
  "*": { only: [] },
};

async function readFromGguf(source: ByteSource): Promise<Map<string, Float32Array>> {
  const { tensors, metadata } = await openGguf(source);
  checkFields(Object.fromEntries(metadata), FIELDS, { file: source.name, place: "metadata" });
  const found = new Map<string, Float32Array>();
  for (const tensor of tensors.values()) {
    if (BESIDE.some((ending) => tensor.name.endsWith(ending))) continue;
    if (!tensor.name.endsWith(SUMS)) {
      throw broken(source, tensor.name, `does not end with ${[SUMS, ...BESIDE].join(" or ")}`);
    }
    const name = tensor.name.slice(0, -SUMS.length);
    if (tensor.format !== "F32") throw broken(source, name, `is ${tensor.format}, not F32`);
    const columns = tensor.shape.at(-1)!;
    const isStack = tensor.byteLength !== 4 * columns;
    if (!isStack) found.set(name, await readFloats(tensor));
  }
  return found;
}

async function readFloats({ source, offset, byteLength }: TensorInfo): Promise<Float32Array> {
  return new Float32Array((await readBytes(source, { offset, length: byteLength })).buffer);
}

async function readFromDat(source: ByteSource): Promise<Map<string, Float32Array>> {
  let at = 0;
  const take = async (count: number, name?: string): Promise<Uint8Array> => {
    if (count < 0 || count > source.size - at) {
      throw broken(source, name, `asks for ${count} bytes at byte ${at} of ${source.size}`);
    }
    at += count;
    return await readBytes(source, { offset: at - count, length: count });
  };
  const integer = async (name?: string) =>
    new DataView((await take(4, name)).buffer).getInt32(0, true);
  const entries = await integer();
  if (entries < 1 || entries > MOST_ENTRIES) {
    throw broken(source, undefined, `is no importance matrix: it begins with ${entries} entries`);
  }
  const found = new Map<string, Float32Array>();
  for (let i = 0; i < entries; i++) {
    const name = new TextDecoder().decode(await take(await integer()));
    await integer(name); // Calls: a factor of all values alike.
    const values = new Float32Array((await take(4 * await integer(name), name)).buffer);
    found.set(name, values);
  }
  return found;
}

function broken(source: ByteSource, name: string | undefined, message: string): FormatError {
  return new FormatError(message, {
    file: source.name,
    place: name === undefined ? undefined : `entry ${JSON.stringify(name)}`,
    remedy: "Give a file that llama.cpp's imatrix wrote for this model",
  });
}
