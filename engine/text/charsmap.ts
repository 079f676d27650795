// SentencePiece's precompiled character map: a double-array trie (darts-clone) from byte strings to
// replacements, stored as a length, the units of the trie and a blob of zero-terminated strings. The
// longest key at a place is replaced; what no key matches is copied. The data come from a file, so
// every index is checked before it is used.

import { FormatError } from "../errors.ts";
import { decodeUtf8 } from "./assemble.ts";

interface Charsmap {
  readonly units: Uint32Array;
  readonly blob: Uint8Array;
}

function readCharsmap(bytes: Uint8Array, name: string): Charsmap {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const trieBytes = bytes.length >= 4 ? view.getUint32(0, true) : -1;
  if (trieBytes < 4 || trieBytes % 4 !== 0 || trieBytes > bytes.length - 4) {
    throw new FormatError("the precompiled character map does not hold its own trie", {
      file: name,
      place: "precompiled_charsmap",
    });
  }
  const units = new Uint32Array(trieBytes / 4);
  for (let i = 0; i < units.length; i++) units[i] = view.getUint32(4 + 4 * i, true);
  return { units, blob: bytes.subarray(4 + trieBytes) };
}

/** Length in bytes and value of the longest key at a place; the layout is darts-clone's. */
function longestKey({ units }: Charsmap, text: Uint8Array, from: number): [number, number] {
  const childOffset = (unit: number) => (unit >>> 10) << ((unit & (1 << 9)) >>> 6);
  let found: [number, number] = [0, -1];
  let at = childOffset(units[0]);
  for (let i = from; i < text.length; i++) {
    at ^= text[i];
    const unit = units[at];
    if (unit === undefined || (unit & 0x800000ff) >>> 0 !== text[i]) break;
    at ^= childOffset(unit);
    if (((unit >>> 8) & 1) === 1 && at < units.length) {
      found = [i + 1 - from, units[at] & 0x7fffffff];
    }
  }
  return found;
}

/**
 * Makes the normalizer of a character map.
 *
 * @throws {FormatError} If the map is shorter than it says.
 */
export function createCharsmap(bytes: Uint8Array, name: string): (text: string) => string {
  if (bytes.length === 0) return (text) => text;
  const map = readCharsmap(bytes, name);
  return (text) => {
    const source = new TextEncoder().encode(text);
    const out: number[] = [];
    for (let at = 0; at < source.length;) {
      const [length, value] = longestKey(map, source, at);
      if (length > 0) {
        for (let i = value; i < map.blob.length && map.blob[i] !== 0; i++) out.push(map.blob[i]);
        at += length;
      } else {
        // Copy the whole character, so that no key is looked for inside it.
        do out.push(source[at++]); while (at < source.length && (source[at] & 0xc0) === 0x80);
      }
    }
    return decodeUtf8(Uint8Array.from(out));
  };
}
