// The header of a safetensors file that is to be written; the caller then appends the tensors' bytes, in
// order and without padding. Formats that safetensors has no dtype for become bytes with a note of what
// they are (stored_formats.ts). The header is filled up with blanks to a multiple of 64 bytes.

import { formatBytes, type NumberFormat } from "../../../quant/mod.ts";
import { describeStoredFormats, STORED_FORMATS_KEY, type StoredFormat } from "../stored_formats.ts";

/** A tensor to write. */
export interface SafetensorsTensor {
  readonly name: string;
  /** Outermost dimension first. */
  readonly shape: readonly number[];
  readonly format: Pick<NumberFormat, "name" | "blockSize" | "blockBytes">;
  readonly byteLength: number;
}

// What other readers know by the same name.
const DTYPES = [
  ...["F32", "F16", "BF16", "F64", "I8", "I16", "I32", "I64"],
  ...["U8", "U16", "U32", "U64", "BOOL", "F8_E4M3", "F8_E5M2", "F8_E8M0", "C64"],
];

const METADATA = "__metadata__";

/**
 * The head of a file with these tensors.
 *
 * @param outliers Names of the tensors whose outliers are among them.
 * @throws {RangeError} If a tensor has the one name that is reserved.
 */
export function createSafetensorsHead(
  tensors: readonly SafetensorsTensor[],
  { metadata = {}, outliers = [] }: {
    readonly metadata?: Readonly<Record<string, string>> | undefined;
    readonly outliers?: readonly string[] | undefined;
  } = {},
): Uint8Array {
  const stored = new Map<string, StoredFormat>();
  const entries = new Map<string, unknown>();
  let offset = 0;
  for (const { name, shape, format, byteLength } of tensors) {
    const isPlain = DTYPES.includes(format.name);
    if (!isPlain) stored.set(name, { format: format.name, shape });
    entries.set(name, {
      dtype: isPlain ? format.name : "U8",
      shape: isPlain ? shape : rowsOfBytes(shape, format),
      data_offsets: [offset, offset + byteLength],
    });
    offset += byteLength;
  }
  const notes = { ...metadata, [STORED_FORMATS_KEY]: describeStoredFormats(stored, outliers) };
  if (entries.has(METADATA)) {
    throw new RangeError(`Cannot name a tensor ${METADATA} in safetensors`);
  }
  // Not an object literal, in which a tensor called __proto__ would vanish.
  const header = Object.fromEntries([[METADATA, notes], ...entries]);
  const json = new TextEncoder().encode(JSON.stringify(header));
  const length = Math.ceil((8 + json.length) / 64) * 64 - 8;
  const bytes = new Uint8Array(8 + length).fill(0x20);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(length), true);
  bytes.set(json, 8);
  return bytes;
}

function rowsOfBytes(
  shape: readonly number[],
  format: SafetensorsTensor["format"],
): readonly number[] {
  return [...shape.slice(0, -1), formatBytes(format as NumberFormat, shape.at(-1) ?? 1)];
}
