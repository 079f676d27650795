// A saved session as bytes, little-endian:
//
//   8  magic "TROODONS"      32 fingerprint of model and cache layout
//   4  version (2)            4 number of tokens n      8 bytes of state s      4 rows of the source m
//   4n token ids (i32)        s state of the slot, leading max(n, m) rows of every cache
//  32  SHA-256 of everything before
//
// A cache that belongs to other weights gives plausible nonsense, so every doubt is an error: wrong
// magic, version or fingerprint, any length that does not add up, any changed bit.

import { FormatError } from "../errors.ts";
import type { PictureTable, SeenPicture } from "./pictures/picture_table.ts";

/** What is saved. */
export interface SavedSession {
  readonly tokens: Int32Array;
  readonly state: Uint8Array;
  /** Rows of the source that an encoder-decoder sees; 0: none. */
  readonly sourceLength: number;
  /** Pictures among the tokens, each once. */
  readonly pictures?: readonly SeenPicture[];
}

/** What a saved session is read for. */
export interface SessionReader {
  /** Of the model, its cache layout and adapters. */
  readonly fingerprint: Uint8Array;
  /** Takes the pictures in, of a model that sees. */
  readonly pictures?: PictureTable | undefined;
}

const MAGIC = new TextEncoder().encode("TROODONS");
const VERSION = 2;
const WITH_PICTURES = 3;
/** Bytes of a picture before its values. */
const PICTURE_HEADER = 44;
const HEADER = 60;
const DIGEST = 32;

/** Bytes of a session. */
export async function packSession(
  { fingerprint, tokens, state, sourceLength, pictures = [], idOf }: SavedSession & {
    readonly fingerprint: Uint8Array;
    /** Id of the first row of a picture. */
    readonly idOf?: (picture: SeenPicture) => number;
  },
): Promise<Uint8Array> {
  const packed = packPictures(pictures);
  const bytes = new Uint8Array(HEADER + 4 * tokens.length + state.length + packed.length + DIGEST);
  const view = new DataView(bytes.buffer);
  bytes.set(MAGIC);
  bytes.set(fingerprint, 8);
  view.setUint32(40, pictures.length > 0 ? WITH_PICTURES : VERSION, true);
  view.setUint32(44, tokens.length, true);
  view.setBigUint64(48, BigInt(state.length), true);
  view.setUint32(56, sourceLength, true);
  const saved = renumbered(tokens, firstIds(pictures).map((to, i) => [idOf!(pictures[i]!), to]));
  saved.forEach((id, index) => view.setInt32(HEADER + 4 * index, id, true));
  bytes.set(state, HEADER + 4 * tokens.length);
  bytes.set(packed, HEADER + 4 * tokens.length + state.length);
  const body = bytes.subarray(0, bytes.length - DIGEST);
  bytes.set(new Uint8Array(await crypto.subtle.digest("SHA-256", body)), body.length);
  return bytes;
}

/**
 * Reads {@linkcode packSession}'s bytes; `state` is a view over them.
 *
 * @throws {FormatError} Saying what does not fit.
 */
export async function unpackSession(
  bytes: Uint8Array,
  { fingerprint, pictures: table }: SessionReader,
): Promise<SavedSession> {
  const fail = (message: string): never => {
    throw new FormatError(message, { file: "saved session", remedy: "Compute it from its text" });
  };
  if (bytes.length < HEADER + DIGEST) fail(`has ${bytes.length} bytes, fewer than its header`);
  if (!startsWith(bytes, MAGIC)) fail("is not a saved session");
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const version = view.getUint32(40, true);
  const isPlain = version === VERSION;
  if (!isPlain && version !== WITH_PICTURES) {
    fail(`has version ${version}, and only ${VERSION} and ${WITH_PICTURES} are read`);
  }
  if (!startsWith(bytes.subarray(8), fingerprint)) {
    fail("belongs to another model or another cache format");
  }
  const count = view.getUint32(44, true);
  const stateBytes = view.getBigUint64(48, true);
  const expected = BigInt(HEADER + 4 * count + DIGEST) + stateBytes;
  if (isPlain ? expected !== BigInt(bytes.length) : expected > BigInt(bytes.length)) {
    fail(`has ${bytes.length} bytes where its header asks for ${expected}`);
  }
  const body = new Uint8Array(bytes.subarray(0, bytes.length - DIGEST));
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", body));
  if (!startsWith(bytes.subarray(body.length), digest)) fail("is damaged: its checksum differs");
  const tokens = Int32Array.from({ length: count }, (_, i) => view.getInt32(HEADER + 4 * i, true));
  const stateAt = HEADER + 4 * count, picturesAt = stateAt + Number(stateBytes);
  const saved = {
    state: bytes.subarray(stateAt, picturesAt),
    sourceLength: view.getUint32(56, true),
  };
  if (isPlain) return { ...saved, tokens };
  if (!table) return fail("holds pictures, and this model sees none");
  const pictures = unpackPictures(bytes.subarray(picturesAt, bytes.length - DIGEST), table.width);
  if (!pictures) return fail("is damaged: its pictures do not fill their place");
  const firsts = firstIds(pictures);
  return {
    ...saved,
    pictures,
    tokens: renumbered(tokens, pictures.map((picture, i) => [firsts[i]!, table.add(picture)])),
  };
}

/** The ids that a saved session has for the first rows of its pictures. */
function firstIds(pictures: readonly SeenPicture[]): number[] {
  let next = -1;
  return pictures.map(({ count }) => (next -= count) + count);
}

/** Tokens with the ids of pictures moved, from the first one of each to another. */
function renumbered(
  tokens: Int32Array,
  moves: readonly (readonly [from: number, to: number])[],
): Int32Array {
  const order = moves.toSorted(([a], [b]) => b - a);
  return tokens.map((id) => {
    if (id >= 0) return id;
    const [from, to] = order.findLast(([from]) => from >= id) ?? [id, id];
    return to - (from - id);
  });
}

function packPictures(pictures: readonly SeenPicture[]): Uint8Array {
  if (pictures.length === 0) return new Uint8Array();
  const sizes = pictures.map(({ values }) => PICTURE_HEADER + values.byteLength);
  const bytes = new Uint8Array(4 + sizes.reduce((sum, size) => sum + size));
  const view = new DataView(bytes.buffer);
  view.setUint32(0, pictures.length, true);
  let at = 4;
  for (const [i, { key, count, grid, values }] of pictures.entries()) {
    bytes.set(Uint8Array.fromHex(key), at);
    [count, grid?.rows ?? 0, grid?.columns ?? 0].forEach((value, index) =>
      view.setUint32(at + 32 + 4 * index, value, true)
    );
    bytes.set(new Uint8Array(values.buffer, values.byteOffset, values.byteLength), at + 44);
    at += sizes[i]!;
  }
  return bytes;
}

/** Undefined if lengths do not add up. */
function unpackPictures(bytes: Uint8Array, width: number): SeenPicture[] | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length < 4) return undefined;
  const pictures: SeenPicture[] = [];
  let at = 4;
  for (let left = view.getUint32(0, true); left > 0; left--) {
    if (bytes.length - at < PICTURE_HEADER) return undefined;
    const [count, rows, columns] = [32, 36, 40].map((place) =>
      view.getUint32(at + place, true)
    ) as [
      number,
      number,
      number,
    ];
    const end = at + PICTURE_HEADER + 4 * count * width;
    if (end > bytes.length || count === 0) return undefined;
    pictures.push({
      key: bytes.subarray(at, at + 32).toHex(),
      values: new Float32Array(bytes.slice(at + PICTURE_HEADER, end).buffer),
      count,
      ...rows > 0 && { grid: { rows, columns } },
    });
    at = end;
  }
  return at === bytes.length ? pictures : undefined;
}

function startsWith(bytes: Uint8Array, prefix: Uint8Array): boolean {
  return prefix.every((byte, index) => bytes[index] === byte);
}
