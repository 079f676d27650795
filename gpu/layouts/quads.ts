// Steps from the bytes of files to quads: words of four neighbouring columns, a byte each. Blocks may begin at any
// byte, so words are read through a view; matrices have gigabytes, so nothing here makes an object.

/** Rows of a file. */
export interface FileRows {
  readonly bytes: Uint8Array;
  /** Of the same bytes. */
  readonly view: DataView;
}

/** Four bytes as they are. */
export function wordAt({ view }: FileRows, at: number): number {
  return view.getInt32(at, true);
}

/** Copies `count` bytes. */
export function copyBytes(
  file: FileRows,
  at: number,
  plane: Uint8Array,
  to: number,
  count: number,
): void {
  for (let i = 0; i < count; i++) plane[to + i] = file.bytes[at + i]!;
}

/** Copies two halves of a word, the second first. */
export function copySwapped(file: FileRows, at: number, plane: Uint8Array, to: number): void {
  copyBytes(file, at + 2, plane, to, 2);
  copyBytes(file, at, plane, to + 2, 2);
}

/** A byte a column. */
export function byteQuads(file: FileRows, at: number, quads: Int32Array): void {
  for (let q = 0; q < 8; q++) quads[q] = wordAt(file, at + 4 * q);
}

/** 16 bytes of which byte j holds column j low and column j + 16 high, as ggml has it. */
export function splitNibbleQuads(file: FileRows, at: number, quads: Int32Array): void {
  for (let q = 0; q < 4; q++) {
    const word = wordAt(file, at + 4 * q);
    quads[q] = word & 0x0f0f0f0f;
    quads[q + 4] = (word >> 4) & 0x0f0f0f0f;
  }
}

/** 16 bytes of which byte j holds column 2j low and column 2j + 1 high. */
export function nibbleQuads(file: FileRows, at: number, quads: Int32Array): void {
  for (let q = 0; q < 8; q++) {
    const low = file.bytes[at + 2 * q]!, high = file.bytes[at + 2 * q + 1]!;
    quads[q] = (low & 15) | ((low & 0xf0) << 4) | ((high & 15) << 16) | ((high & 0xf0) << 20);
  }
}

/** 8 bytes of which byte j holds columns 4j to 4j + 3, the first in its lowest bits; added, shifted. */
export function addPairs(file: FileRows, at: number, quads: Int32Array, shift: number): void {
  for (let q = 0; q < 8; q++) {
    const byte = file.bytes[at + q]!;
    const quad = (byte & 3) | ((byte & 0xc) << 6) | ((byte & 0x30) << 12) | ((byte & 0xc0) << 18);
    quads[q]! |= quad << shift;
  }
}

/** 4 bytes of which bit i is column i's; added, shifted. */
export function addBits(file: FileRows, at: number, quads: Int32Array, shift: number): void {
  for (let q = 0; q < 8; q++) {
    const nibble = (file.bytes[at + (q >> 1)]! >> (4 * (q & 1))) & 15;
    // Four copies seven bits apart bring bit i to byte i.
    quads[q]! |= (Math.imul(nibble, 0x00204081) & 0x01010101) << shift;
  }
}

/** 32 bytes of which bits `mask << shift` are a column's; added, `up` bits further up. */
export function addFields(
  file: FileRows,
  at: number,
  quads: Int32Array,
  mask: 1 | 3,
  shift: number,
  up: number,
): void {
  const all = mask * 0x01010101;
  for (let q = 0; q < 8; q++) quads[q]! |= ((wordAt(file, at + 4 * q) >> shift) & all) << up;
}
