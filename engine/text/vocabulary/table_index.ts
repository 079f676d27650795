// The hash table of text_index.ts over strings that are not decoded: their bytes are hashed and entered by WASM, so that a
// vocabulary is indexed before any of its texts exists. A text that is looked up is written as bytes first.

import { hashOf, tableOf } from "../../../wasm/strings.ts";
import type { StringTable } from "../../formats/string_table.ts";
import { createTextIndex, MAX_PROBES_PER_TEXT, type TextIndex } from "./text_index.ts";

function isSame(a: Uint8Array, at: number, end: number, b: Uint8Array, from: number): boolean {
  for (; at < end; at++, from++) if (a[at] !== b[from]) return false;
  return true;
}

/** Indexes the strings of a table. */
export function createTableIndex(table: StringTable): TextIndex {
  const { bytes, starts, length: count } = table;
  const made = tableOf(table, {
    // Somebody may have written the list so that it collides: see text_index.ts.
    most: 64 + MAX_PROBES_PER_TEXT * count,
    isSame: (i, other) =>
      table.endOf(i) - starts[i] === table.endOf(other) - starts[other] &&
      isSame(bytes, starts[i], table.endOf(i), bytes, starts[other]),
  });
  if (!made) return createTextIndex(table.all());
  const { hashes, slots, longest } = made, mask = slots.length - 1;

  let written = new Uint8Array(256);
  return {
    get(text) {
      // No text has fewer bytes than units.
      if (text === "" || text.length > longest) return undefined;
      if (written.length < 3 * text.length) written = new Uint8Array(3 * text.length);
      const length = writeText(text, written);
      const hash = hashOf(written, length);
      for (let at = hash & mask; slots[at] !== 0; at = (at + 1) & mask) {
        const place = slots[at] - 1;
        if (hashes[place] !== hash) continue;
        const start = starts[place];
        const isFound = table.endOf(place) - start === length &&
          isSame(written, 0, length, bytes, start);
        // Bytes alone may add up to a character that is not written as one.
        if (isFound && (text.isWellFormed() || table.get(place) === text)) return place;
      }
      return undefined;
    },
  };
}

/**
 * Writes the bytes of a string of a table (`stringBytes`): UTF-8, and a byte for each of U+DC80…U+DCFF alone. For other
 * halves of characters, which no string has, it writes something.
 */
function writeText(text: string, out: Uint8Array): number {
  let at = 0;
  for (let i = 0; i < text.length; i++) {
    let code = text.charCodeAt(i);
    if (code < 0x80) {
      out[at++] = code;
      continue;
    }
    if (code < 0x800) {
      out[at++] = 0xc0 | code >> 6;
      out[at++] = 0x80 | code & 0x3f;
      continue;
    }
    if (code >= 0xdc80 && code <= 0xdcff) {
      out[at++] = code - 0xdc00;
      continue;
    }
    const next = text.charCodeAt(i + 1);
    if (code >= 0xd800 && code < 0xdc00 && next >= 0xdc00 && next < 0xe000) {
      i++;
      code = 0x10000 + (code - 0xd800 << 10) + next - 0xdc00;
      out[at++] = 0xf0 | code >> 18;
      out[at++] = 0x80 | code >> 12 & 0x3f;
    } else out[at++] = 0xe0 | code >> 12;
    out[at++] = 0x80 | code >> 6 & 0x3f;
    out[at++] = 0x80 | code & 0x3f;
  }
  return at;
}
