// Codes of 4 bits, two a byte: the even one in the low half, or, as in ggml's blocks of 32, value j in the
// low half of byte j and value j + 16 in the high one.

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

/** Writes the low halves of 32 codes in ggml's order. */
export function writeHalves(codes: Uint8Array, out: Uint8Array, at: number): void {
  for (let j = 0; j < 16; j++) out[at + j] = (codes[j]! & 15) | ((codes[j + 16]! & 15) << 4);
}

/** Writes 32 codes of 5 bits as ggml does: 4 bytes of fifth bits, then 16 of low nibbles. */
export function writeFiveBits(codes: Uint8Array, out: Uint8Array, at: number): void {
  out.fill(0, at, at + 4);
  for (let i = 0; i < 32; i++) out[at + (i >> 3)]! |= (codes[i]! >> 4) << (i & 7);
  writeHalves(codes, out, at + 4);
}
