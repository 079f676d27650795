// Tensors in safetensors files whose format the container does not know. They lie there as rows of bytes
// (dtype U8, the last dimension is the bytes of a row), so any reader can open the file, and
// `__metadata__.troodon` says what they are: {"version":1,"tensors":{NAME:{"format","shape"}}}. With
// "outliers":[NAME…] (version 2, so that older readers refuse the file) three more tensors belong to each of
// those (outliers.ts).
// A model that came from GGUF brings its metadata along, a GGUF header without tensors as one more tensor.

import { COUNTS } from "../record.ts";
import { formatBytes, getFormat } from "../../quant/mod.ts";
import { type ByteSource, readBytes } from "../byte_source.ts";
import { FormatError, UnsupportedError } from "../errors.ts";
import { memorySource } from "../io.ts";
import { readGgufHeader } from "./gguf/header.ts";
import { outlierNames } from "./outliers.ts";
import type { MetadataValue, TensorInfo, WeightFile } from "./source.ts";
import { asObject, parseStrictJson } from "./strict_json.ts";

/** Metadata key of the policy that a file was written by, as JSON. */
export const POLICY_KEY = "troodon.policy";

/** Key in `__metadata__`. */
export const STORED_FORMATS_KEY = "troodon";
/** Name of the tensor that holds a GGUF header. */
export const GGUF_HEADER_TENSOR = "troodon.gguf_header";
const PLAIN_VERSION = 1;
const OUTLIERS_VERSION = 2;

/** What a tensor is, beside its bytes. */
export interface StoredFormat {
  /** Name of a record in quant/. */
  readonly format: string;
  /** Outermost dimension first, in values. */
  readonly shape: readonly number[];
}

/**
 * The text for `__metadata__.troodon`.
 *
 * @param outliers Names of the tensors whose outliers stand beside them.
 */
export function describeStoredFormats(
  tensors: ReadonlyMap<string, StoredFormat>,
  outliers: readonly string[] = [],
): string {
  const formats = Object.fromEntries(tensors);
  return JSON.stringify(
    outliers.length === 0
      ? { version: PLAIN_VERSION, tensors: formats }
      : { version: OUTLIERS_VERSION, tensors: formats, outliers },
  );
}

/**
 * The file with the formats that its metadata states, and as GGUF if it carries a GGUF header.
 *
 * @throws {FormatError} If metadata and tensors contradict each other.
 * @throws {UnsupportedError} If a format or the version of the metadata is unknown.
 */
export async function applyStoredFormats(file: WeightFile): Promise<WeightFile> {
  const text = file.metadata.get(STORED_FORMATS_KEY);
  if (typeof text !== "string") return file;
  const place = `__metadata__.${STORED_FORMATS_KEY}`;
  const json = asObject(
    parseStrictJson(new TextEncoder().encode(text), `${file.name}, ${place}`),
  );
  const stated = asObject(json?.tensors);
  const names = json?.version === OUTLIERS_VERSION ? json.outliers : [];
  const isKnown = json?.version === PLAIN_VERSION || json?.version === OUTLIERS_VERSION;
  if (!isKnown || !stated || !Array.isArray(names)) {
    throw new UnsupportedError("its list of formats is of an unknown version", {
      file: file.name,
      place,
    });
  }
  const tensors = new Map(file.tensors);
  for (const [name, entry] of Object.entries(stated)) {
    tensors.set(name, applyFormat(file, name, entry));
  }
  for (const name of names) joinOutliers(file, tensors, name);
  const header = tensors.get(GGUF_HEADER_TENSOR);
  if (!header) return { ...file, tensors };
  tensors.delete(GGUF_HEADER_TENSOR);
  const { source, offset, byteLength } = header;
  const bytes = await readBytes(source, { offset, length: byteLength });
  const { metadata } = await readGgufHeader(
    memorySource(`${file.name}, ${GGUF_HEADER_TENSOR}`, bytes),
  );
  return { ...file, kind: "gguf", container: file.kind, metadata, tensors };
}

/** The GGUF header that lies in a safetensors file which {@linkcode applyStoredFormats} took for GGUF. */
export async function findGgufHeader(source: ByteSource): Promise<ByteSource> {
  const prefix = await readBytes(source, { length: 8 });
  const length = Number(new DataView(prefix.buffer).getBigUint64(0, true));
  const json = await readBytes(source, { offset: 8, length });
  const tensors = asObject(parseStrictJson(json, source.name));
  const entry = asObject(tensors?.[GGUF_HEADER_TENSOR]);
  if (!entry) throw new FormatError("holds no GGUF header", { file: source.name });
  const [begin, end] = entry.data_offsets as readonly [number, number];
  const bytes = await readBytes(source, { offset: 8 + length + begin, length: end - begin });
  return memorySource(`${source.name}, ${GGUF_HEADER_TENSOR}`, bytes);
}

/** Moves the three tensors of outliers into the one that they belong to. */
function joinOutliers(
  file: WeightFile,
  tensors: Map<string, TensorInfo>,
  name: MetadataValue,
): void {
  const place = `tensor ${JSON.stringify(name)}`;
  const owner = typeof name === "string" ? tensors.get(name) : undefined;
  const { starts, columns, values } = outlierNames(String(name));
  const [first, second, third] = [starts, columns, values].map((part) => tensors.get(part));
  if (!owner || !first || !second || !third) {
    throw new FormatError("is said to have outliers, but they are not in the file", {
      file: file.name,
      place,
    });
  }
  for (const part of [starts, columns, values]) tensors.delete(part);
  tensors.set(owner.name, {
    ...owner,
    outliers: { starts: first, columns: second, values: third },
  });
}

function applyFormat(file: WeightFile, name: string, entry: MetadataValue): TensorInfo {
  const place = `tensor ${JSON.stringify(name)}`;
  const broken = (message: string) => new FormatError(message, { file: file.name, place });
  const tensor = file.tensors.get(name);
  const { format: formatName, shape } = asObject(entry) ?? {};
  if (!tensor) throw broken("has a format but is not in the file");
  if (typeof formatName !== "string" || !COUNTS.accepts(shape) || shape.length === 0) {
    throw broken("its format is not stated well");
  }
  let format;
  try {
    format = getFormat(formatName);
  } catch (cause) {
    throw new UnsupportedError(`its format ${JSON.stringify(formatName)} is unknown`, {
      file: file.name,
      place,
      cause,
    });
  }
  const count = shape.reduce((product, size) => product * size, 1);
  const columns = shape.at(-1)!;
  if (columns % format.blockSize !== 0) {
    throw broken(`rows of ${columns} values are not whole ${format.name} blocks`);
  }
  if (tensor.format !== "U8" || formatBytes(format, count) !== tensor.byteLength) {
    throw broken(
      `${format.name} of shape [${shape}] does not fill ${tensor.byteLength} bytes of U8`,
    );
  }
  return { ...tensor, format: format.name, shape };
}
