// The ways in which Inferflow's blocks pack codes of 2 to 8 bits. Wide codes are split: their low part
// lies in nibbles or pairs (`d`), what is above in fields of their own (`h`) that stand first.

import type { CodePacking } from "./formats/inferflow_block.ts";

/** `count` codes of `bits` bits (1, 2, 4 or 8), the first in the lowest bits of a byte. */
function fields(bits: number, count: number, shift: number): CodePacking {
  const each = 8 / bits;
  const mask = (1 << bits) - 1;
  return {
    bytes: count / each,
    pack(codes, out, at) {
      for (let j = 0; j < count; j++) {
        out[at + Math.floor(j / each)]! |= ((codes[j]! >> shift) & mask) << (bits * (j % each));
      }
    },
    unpack(bytes, at, codes) {
      for (let j = 0; j < count; j++) {
        const field = (bytes[at + Math.floor(j / each)]! >> (bits * (j % each))) & mask;
        codes[j]! |= field << shift;
      }
    },
  };
}

/**
 * Codes of `low + high` bits: the fields of the high bits of all codes, then those of the low bits.
 *
 * @param low Bits of the low part: 2, 4 or 8.
 * @param high Bits of the high part, 0 if there is none.
 */
export function splitCodes(count: number, low: number, high: number): CodePacking {
  const lows = fields(low, count, 0);
  const highs = high ? fields(high, count, low) : undefined;
  const highBytes = highs?.bytes ?? 0;
  return {
    bytes: highBytes + lows.bytes,
    pack(codes, out, at) {
      highs?.pack(codes, out, at);
      lows.pack(codes, out, at + highBytes);
    },
    unpack(bytes, at, codes) {
      codes.fill(0);
      highs?.unpack(bytes, at, codes);
      lows.unpack(bytes, at + highBytes, codes);
    },
  };
}
