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

/** What is saved. */
export interface SavedSession {
  readonly tokens: Int32Array;
  readonly state: Uint8Array;
  /** Rows of the source that an encoder-decoder sees; 0: none. */
  readonly sourceLength: number;
}

const MAGIC = new TextEncoder().encode("TROODONS");
const VERSION = 2;
const HEADER = 60;
const DIGEST = 32;

/** Bytes of a session. */
export async function packSession(
  { fingerprint, tokens, state, sourceLength }: SavedSession & { readonly fingerprint: Uint8Array },
): Promise<Uint8Array> {
  const bytes = new Uint8Array(HEADER + 4 * tokens.length + state.length + DIGEST);
  const view = new DataView(bytes.buffer);
  bytes.set(MAGIC);
  bytes.set(fingerprint, 8);
  view.setUint32(40, VERSION, true);
  view.setUint32(44, tokens.length, true);
  view.setBigUint64(48, BigInt(state.length), true);
  view.setUint32(56, sourceLength, true);
  tokens.forEach((id, index) => view.setInt32(HEADER + 4 * index, id, true));
  bytes.set(state, HEADER + 4 * tokens.length);
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
  fingerprint: Uint8Array,
): Promise<SavedSession> {
  const fail = (message: string): never => {
    throw new FormatError(message, { file: "saved session", remedy: "Compute it from its text" });
  };
  if (bytes.length < HEADER + DIGEST) fail(`has ${bytes.length} bytes, fewer than its header`);
  if (!startsWith(bytes, MAGIC)) fail("is not a saved session");
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const version = view.getUint32(40, true);
  if (version !== VERSION) fail(`has version ${version}, and only ${VERSION} is read`);
  if (!startsWith(bytes.subarray(8), fingerprint)) {
    fail("belongs to another model or another cache format");
  }
  const count = view.getUint32(44, true);
  const stateBytes = view.getBigUint64(48, true);
  const expected = BigInt(HEADER + 4 * count + DIGEST) + stateBytes;
  if (expected !== BigInt(bytes.length)) {
    fail(`has ${bytes.length} bytes where its header asks for ${expected}`);
  }
  const body = new Uint8Array(bytes.subarray(0, bytes.length - DIGEST));
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", body));
  if (!startsWith(bytes.subarray(body.length), digest)) fail("is damaged: its checksum differs");
  const tokens = Int32Array.from({ length: count }, (_, i) => view.getInt32(HEADER + 4 * i, true));
  return {
    tokens,
    state: bytes.subarray(HEADER + 4 * count, bytes.length - DIGEST),
    sourceLength: view.getUint32(56, true),
  };
}

function startsWith(bytes: Uint8Array, prefix: Uint8Array): boolean {
  return prefix.every((byte, index) => bytes[index] === byte);
}
