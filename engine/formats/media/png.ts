// PNG files (W3C PNG specification, second edition) as 8-bit red, green, blue. All colour types and depths;
// transparency is laid on white. Left out: interlaced files, which are refused, colour profiles and gamma,
// which are not applied, and check sums, which zlib's own makes up for.

import { joinBytes } from "../../byte_source.ts";
import { inflateSync } from "node:zlib";
import { FormatError, UnsupportedError } from "../../errors.ts";

/** A picture. */
export interface Picture {
  /** Pixels a row. */
  readonly width: number;
  /** Rows. */
  readonly height: number;
  /** Red, green, blue of each pixel, row by row from the top. */
  readonly data: Uint8Array;
}

const SIGNATURE = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a];
const CHANNELS: Readonly<Record<number, number>> = { 0: 1, 2: 3, 3: 1, 4: 2, 6: 4 };
const PALETTE = 3;
const MAX_PIXELS = 1 << 28;

/**
 * Reads a PNG file.
 *
 * @param file For messages.
 * @throws {FormatError} If it is none, or is damaged.
 * @throws {UnsupportedError} If it is interlaced.
 */
export function readPng(bytes: Uint8Array, file = "picture"): Picture {
  if (!SIGNATURE.every((byte, i) => bytes[i] === byte)) {
    throw new FormatError("is no PNG file", { file });
  }
  const chunks = chunksOf(bytes, file);
  const header = chunks.find(({ name }) => name === "IHDR")?.data;
  if (header?.length !== 13) throw new FormatError("has no header chunk", { file });
  const view = new DataView(header.buffer, header.byteOffset, 13);
  const width = view.getUint32(0), height = view.getUint32(4);
  const [depth, colour, , , interlace] = header.subarray(8);
  const channels = CHANNELS[colour!];
  if (width * height === 0 || width * height > MAX_PIXELS) {
    throw new FormatError(`has ${width} × ${height} pixels`, { file });
  }
  if (channels === undefined || ![1, 2, 4, 8, 16].includes(depth!)) {
    throw new FormatError(`has colour type ${colour} with ${depth} bits`, { file });
  }
  if (interlace !== 0) {
    throw new UnsupportedError("interlaced PNG files are not read", {
      file,
      remedy: "Save it without interlacing",
    });
  }
  const rowBytes = Math.ceil(width * channels * depth! / 8);
  const raw = inflate(chunks, (rowBytes + 1) * height, file);
  const step = Math.max(1, channels * depth! / 8);
  unfilter(raw, { rowBytes, height, step }, file);
  const palette = chunks.find(({ name }) => name === "PLTE")?.data;
  const alpha = chunks.find(({ name }) => name === "tRNS")?.data;
  if (colour === PALETTE && !palette) throw new FormatError("has no palette", { file });
  const data = new Uint8Array(3 * width * height);
  const pixel = [0, 0, 0, 0];
  for (let y = 0, at = 0; y < height; y++) {
    const row = raw.subarray(y * (rowBytes + 1) + 1, (y + 1) * (rowBytes + 1));
    for (let x = 0; x < width; x++, at += 3) {
      for (let c = 0; c < channels; c++) pixel[c] = sampleAt(row, x * channels + c, depth!);
      const opacity = toRgb(pixel, colour!, depth!, { palette, alpha });
      for (let c = 0; c < 3; c++) data[at + c] = 255 + (pixel[c]! - 255) * opacity;
    }
  }
  return { width, height, data };
}

interface Chunk {
  readonly name: string;
  readonly data: Uint8Array;
}

function chunksOf(bytes: Uint8Array, file: string): Chunk[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const chunks: Chunk[] = [];
  for (let at = 8; at + 12 <= bytes.length;) {
    const length = view.getUint32(at), start = at + 8;
    const name = String.fromCharCode(...bytes.subarray(at + 4, start));
    if (start + length + 4 > bytes.length) {
      throw new FormatError(`is cut off in chunk ${name}`, { file });
    }
    chunks.push({ name, data: bytes.subarray(start, start + length) });
    if (name === "IEND") break;
    at = start + length + 4;
  }
  return chunks;
}

function inflate(chunks: readonly Chunk[], length: number, file: string): Uint8Array {
  const parts = chunks.filter(({ name }) => name === "IDAT").map(({ data }) => data);
  const packed = joinBytes(parts);
  let raw: Uint8Array;
  try {
    raw = inflateSync(packed, { maxOutputLength: length });
  } catch (error) {
    throw new FormatError(`has damaged data: ${(error as Error).message}`, { file });
  }
  if (raw.length !== length) {
    throw new FormatError(`has ${raw.length} bytes of pixels, not ${length}`, { file });
  }
  return raw;
}

// Section 9.2: each byte was written as its difference to a guess from its neighbours.
function unfilter(
  raw: Uint8Array,
  { rowBytes, height, step }: { rowBytes: number; height: number; step: number },
  file: string,
): void {
  for (let y = 0; y < height; y++) {
    const start = y * (rowBytes + 1) + 1, filter = raw[start - 1]!;
    if (filter > 4) throw new FormatError(`has filter ${filter} in row ${y}`, { file });
    for (let i = 0; i < rowBytes; i++) {
      const at = start + i;
      const left = i < step ? 0 : raw[at - step]!;
      const up = y === 0 ? 0 : raw[at - rowBytes - 1]!;
      const corner = y === 0 || i < step ? 0 : raw[at - rowBytes - 1 - step]!;
      const guess = [0, left, up, (left + up) >> 1, 0][filter]!;
      raw[at]! += filter === 4 ? paeth(left, up, corner) : guess;
    }
  }
}

function paeth(left: number, up: number, corner: number): number {
  const guess = left + up - corner;
  const a = Math.abs(guess - left), b = Math.abs(guess - up), c = Math.abs(guess - corner);
  return a <= b && a <= c ? left : b <= c ? up : corner;
}

function sampleAt(row: Uint8Array, index: number, depth: number): number {
  if (depth === 8) return row[index]!;
  if (depth === 16) return row[2 * index]!;
  const bit = index * depth;
  return row[bit >> 3]! >> (8 - depth - (bit & 7)) & ((1 << depth) - 1);
}

/** Makes red, green, blue of the samples of a pixel; gives its opacity. */
function toRgb(
  pixel: number[],
  colour: number,
  depth: number,
  { palette, alpha }: { palette: Uint8Array | undefined; alpha: Uint8Array | undefined },
): number {
  const [first, second, , fourth] = pixel as [number, number, number, number];
  if (colour === PALETTE) {
    for (let c = 0; c < 3; c++) pixel[c] = palette![3 * first + c] ?? 0;
    return (alpha?.[first] ?? 255) / 255;
  }
  if (colour === 2) return 1;
  if (colour === 6) return fourth / 255;
  pixel[0] = pixel[1] = pixel[2] = depth < 8 ? first * 255 / ((1 << depth) - 1) : first;
  return colour === 4 ? second / 255 : 1;
}
