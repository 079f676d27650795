// Codes of 4 bits, two a byte, the even one in the low half.

/** Reads `codes.length` codes from `at` on. */
export function readNibbles(bytes: Uint8Array, at: number, codes: Uint8Array): void {
  for (let j = 0; j < codes.length; j += 2) {
    const pair = bytes[at + (j >> 1)]!;
    codes[j] = pair & 15;
    codes[j + 1] = pair >> 4;
  }
}

/** Writes the low halves of `codes`, an even number of them, from `at` on. */
export function writeNibbles(bytes: Uint8Array, at: number, codes: Uint8Array): void {
  for (let j = 0; j < codes.length; j += 2) {
    bytes[at + (j >> 1)] = (codes[j]! & 15) | ((codes[j + 1]! & 15) << 4);
  }
}
