// Files of karpathy/llama2.c: the numbers of one Llama model with a header of seven integers and no names.
// Three layouts (its export.py): legacy (no magic; told by the exact length), version 1 (`ak42`, a header
// of 256 bytes, all norms first) and version 2 (int8 in groups, scales apart; groups.ts).
// Query and key rows are in adjacent-pair order, as GGUF stores them, so the file is presented with GGUF's
// keys and names: `general.architecture` = `llama`, `llama.block_count`, …, `blk.0.attn_q.weight`, and the
// same spec builds it. What the files leave out is what llama2.c itself assumes: epsilon 1e-5, base 10000.

import { type ByteSource, readBytes } from "../../byte_source.ts";
import { FormatError, UnsupportedError } from "../../errors.ts";
import { placeGroups } from "./groups.ts";
import type { MetadataValue, TensorInfo, WeightFile } from "../source.ts";

/** The numbers of the header, checked. */
export interface Llama2cShape {
  /** 0 for the legacy layout, 1 or 2. */
  readonly version: number;
  readonly dim: number;
  readonly hidden: number;
  readonly layers: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly vocabulary: number;
  readonly context: number;
  /** Whether the embedding is the classifier, too. */
  readonly shared: boolean;
  /** Elements with one scale, in version 2. */
  readonly group: number;
}

/** A tensor to be placed: role names are GGUF's. */
interface Entry {
  readonly name: string;
  readonly shape: readonly number[];
}

const MAGIC = 0x616b3432;
const LEGACY_HEADER = 28;
const HEADER = 256;
const MAX_DIM = 1 << 24;
const MAX_LAYERS = 10_000;

/** Whether the first bytes and the length are those of a llama2.c file. */
export function isLlama2c(head: Uint8Array, size: number): boolean {
  if (head.length < LEGACY_HEADER) return false;
  const view = new DataView(head.buffer, head.byteOffset, head.byteLength);
  if (view.getUint32(0, true) === MAGIC) return true;
  const shape = legacyShape(view);
  return faultOf(shape) === undefined && legacySize(shape) === size;
}

/**
 * Opens a llama2.c file. A `tokenizer.bin` beside it is read through `readBytes`.
 *
 * @throws {FormatError} If the header holds no model or the length is not the one it asks for.
 * @throws {UnsupportedError} If the version is unknown.
 */
export async function openLlama2c(source: ByteSource): Promise<WeightFile> {
  const head = await readBytes(source, { length: Math.min(HEADER, source.size) });
  const shape = readShape(source, new DataView(head.buffer));
  const fault = faultOf(shape);
  if (fault !== undefined) throw broken(source, "header", fault);
  const tensors = shape.version === 2
    ? await placeQuantized(source, shape)
    : placeFloats(source, shape);
  return {
    kind: "llama2c",
    name: source.name,
    metadata: metadataOf(shape),
    tensors: new Map(tensors.map((tensor) => [tensor.name, tensor])),
    close: () => source.close(),
  };
}

function readShape(source: ByteSource, view: DataView): Llama2cShape {
  if (view.byteLength < LEGACY_HEADER) throw broken(source, "header", "is cut short");
  if (view.getUint32(0, true) !== MAGIC) return legacyShape(view);
  const version = view.getInt32(4, true);
  if (version !== 1 && version !== 2) {
    throw new UnsupportedError(`version ${version} of llama2.c's format is not known`, {
      file: source.name,
      place: "header",
      remedy: "Export it again as version 1 or 2",
    });
  }
  if (view.byteLength < HEADER) throw broken(source, "header", "is cut short");
  const flag = view.getUint8(36);
  if (flag > 1) throw broken(source, "header", `the flag of the classifier is ${flag}`);
  const end = version === 2 ? 41 : 37;
  for (let at = end; at < HEADER; at++) {
    if (view.getUint8(at) === 0) continue;
    throw new UnsupportedError("is not 0, and version 1 and 2 have no field there", {
      file: source.name,
      place: `byte ${at}`,
    });
  }
  return {
    ...numbersAt(view, 8),
    version,
    shared: flag === 1,
    group: version === 2 ? view.getInt32(37, true) : 1,
  };
}

/** A negative vocabulary says that the classifier has weights of its own. */
function legacyShape(view: DataView): Llama2cShape {
  const numbers = numbersAt(view, 0);
  const { vocabulary } = numbers;
  const shared = vocabulary > 0;
  return { ...numbers, vocabulary: Math.abs(vocabulary), version: 0, shared, group: 1 };
}

function numbersAt(view: DataView, at: number) {
  const [dim, hidden, layers, heads, kvHeads, vocabulary, context] = Array.from(
    { length: 7 },
    (_, i) => view.getInt32(at + 4 * i, true),
  );
  return { dim, hidden, layers, heads, kvHeads, vocabulary, context };
}

function faultOf(shape: Llama2cShape): string | undefined {
  const { dim, heads, kvHeads, layers, group } = shape;
  for (const key of ["dim", "hidden", "heads", "kvHeads", "vocabulary", "context"] as const) {
    if (shape[key] < 1 || shape[key] > MAX_DIM) return `${key} is ${shape[key]}`;
  }
  if (layers < 1 || layers > MAX_LAYERS) return `layers is ${layers}`;
  if (dim % heads !== 0) return `${heads} heads do not divide ${dim} channels`;
  if (heads % kvHeads !== 0) return `${kvHeads} key-value heads do not divide ${heads} heads`;
  if (group < 1 || group > MAX_DIM) return `the group size is ${group}`;
  return undefined;
}

function metadataOf(shape: Llama2cShape): ReadonlyMap<string, MetadataValue> {
  const { dim, hidden, layers, heads, kvHeads, vocabulary, context } = shape;
  return new Map<string, MetadataValue>([
    ["general.architecture", "llama"],
    ["llama.vocab_size", vocabulary],
    ["llama.context_length", context],
    ["llama.embedding_length", dim],
    ["llama.feed_forward_length", hidden],
    ["llama.block_count", layers],
    ["llama.attention.head_count", heads],
    ["llama.attention.head_count_kv", kvHeads],
    ["llama.attention.layer_norm_rms_epsilon", 1e-5],
    ["llama.rope.dimension_count", dim / heads],
    ["llama.rope.freq_base", 10_000],
  ]);
}

function perLayer({ layers }: Llama2cShape, role: string, shape: readonly number[]): Entry[] {
  return Array.from({ length: layers }, (_, i) => ({ name: `blk.${i}.${role}.weight`, shape }));
}

/** Entries by what they are; the layouts only differ in the order of these. */
function entriesOf(shape: Llama2cShape) {
  const { dim, hidden, heads, kvHeads, vocabulary, shared } = shape;
  const kvDim = dim / heads * kvHeads;
  const layer = (role: string, size: readonly number[]) => perLayer(shape, role, size);
  return {
    embedding: [{ name: "token_embd.weight", shape: [vocabulary, dim] }],
    attentionNorm: layer("attn_norm", [dim]),
    feedForwardNorm: layer("ffn_norm", [dim]),
    outputNorm: [{ name: "output_norm.weight", shape: [dim] }],
    attention: [
      ...layer("attn_q", [dim, dim]),
      ...layer("attn_k", [kvDim, dim]),
      ...layer("attn_v", [kvDim, dim]),
      ...layer("attn_output", [dim, dim]),
    ],
    feedForward: [
      ...layer("ffn_gate", [hidden, dim]),
      ...layer("ffn_down", [dim, hidden]),
      ...layer("ffn_up", [hidden, dim]),
    ],
    classifier: shared ? [] : [{ name: "output.weight", shape: [vocabulary, dim] }],
  };
}

function elementsOf({ shape }: Entry): number {
  return shape.reduce((product, dim) => product * dim, 1);
}

function sumElements(entries: readonly Entry[]): number {
  return entries.reduce((sum, entry) => sum + elementsOf(entry), 0);
}

/** Two tables of context × half a head, which nobody needs: cosines and sines. */
function tableBytes({ context, dim, heads }: Llama2cShape): number {
  return context * (dim / heads) * 4;
}

function legacySize(shape: Llama2cShape): number {
  // Without a list of entries, whose length a stranger's file decides.
  const { dim, hidden, layers, heads, kvHeads, vocabulary, shared } = shape;
  const kvDim = dim / heads * kvHeads;
  const layer = 2 * dim + 2 * dim * dim + 2 * kvDim * dim + 3 * hidden * dim;
  const elements = (shared ? 1 : 2) * vocabulary * dim + layers * layer + dim;
  return LEGACY_HEADER + 4 * elements + tableBytes(shape);
}

function placeFloats(source: ByteSource, shape: Llama2cShape): TensorInfo[] {
  const entries = entriesOf(shape);
  const { embedding, attentionNorm, feedForwardNorm, outputNorm } = entries;
  const { attention, feedForward, classifier } = entries;
  const isLegacy = shape.version === 0;
  const before = isLegacy
    ? [embedding, attentionNorm, attention, feedForwardNorm, feedForward, outputNorm]
    : [attentionNorm, feedForwardNorm, outputNorm, embedding, attention, feedForward];
  const start = isLegacy ? LEGACY_HEADER : HEADER;
  const skipped = isLegacy ? tableBytes(shape) : 0;
  const body = before.flat();
  checkSize(source, start + 4 * sumElements([...body, ...classifier]) + skipped);
  const placed = placeFrom(source, body, start);
  const end = start + 4 * sumElements(body) + skipped;
  return [...placed, ...placeFrom(source, classifier, end)];
}

function placeFrom(source: ByteSource, entries: readonly Entry[], start: number): TensorInfo[] {
  let offset = start;
  return entries.map(({ name, shape }) => {
    const byteLength = 4 * elementsOf({ name, shape });
    offset += byteLength;
    return { name, shape, format: "F32", source, offset: offset - byteLength, byteLength };
  });
}

async function placeQuantized(source: ByteSource, shape: Llama2cShape): Promise<TensorInfo[]> {
  const entries = entriesOf(shape);
  const norms = [entries.attentionNorm, entries.feedForwardNorm, entries.outputNorm].flat();
  const matrices = [
    ...entries.embedding,
    ...entries.attention,
    ...entries.feedForward,
    ...entries.classifier,
  ];
  const { group } = shape;
  const uneven = matrices.find((matrix) => elementsOf(matrix) % group !== 0);
  if (uneven) throw broken(source, uneven.name, `groups of ${group} do not fill it`);
  const start = HEADER + 4 * sumElements(norms);
  const elements = sumElements(matrices);
  checkSize(source, start + elements + 4 * (elements / group));
  const floats = placeFrom(source, norms, HEADER);
  return [...floats, ...await placeGroups(source, matrices, { start, group })];
}

function checkSize(source: ByteSource, wanted: number): void {
  if (source.size === wanted) return;
  throw broken(source, "", `has ${source.size} bytes, its header asks for ${wanted}`);
}

function broken(source: ByteSource, place: string, message: string): FormatError {
  return new FormatError(message, {
    file: source.name,
    place,
    remedy: "The file is damaged or cut short: fetch or export it again",
  });
}
