// WebP files (RFC 9649): what a file says before its pixels, checked before libwebp sees it. Pixels are libwebp's, equal
// to PIL's bit by bit. Of an animation the first picture is read. Left out: colour profiles, which are not applied.

import { joinBytes } from "../../byte_source.ts";
import { libwebp } from "./codecs.ts";
import { exifOrientation } from "./exif.ts";
import {
  brokenPicture,
  checkPixels,
  orient,
  type ReadPictureOptions,
  type RgbaPicture,
} from "./picture.ts";

const ANIMATED = 2, ALPHA = 16, LOSSLESS_SIGNATURE = 0x2f;
/** Bytes of a frame's place, size, time and flags, in front of its chunks. */
const FRAME_HEAD = 16;

/**
 * Decodes a WebP file.
 *
 * @throws {FormatError} If it is damaged or cut off.
 * @throws {ResourceError} If it has more pixels than it may have.
 */
export async function decodeWebp(
  bytes: Uint8Array,
  options: ReadPictureOptions,
): Promise<RgbaPicture> {
  const { file } = options;
  const chunks = chunksOf(bytes, file);
  const exif = chunks.get("EXIF"), orientation = exif ? exifOrientation(exif.data) : 1;
  const extended = chunks.get("VP8X");
  if (extended && extended.data[0]! & ANIMATED) {
    return orient(await decodeFirst(extended, chunks.get("ANMF"), options), orientation);
  }
  // The first one, as libwebp takes it.
  const frame = [...chunks.values()].find(({ name }) => name === "VP8 " || name === "VP8L");
  if (!frame) throw brokenPicture("has no chunk of pixels", { file, place: "RIFF" });
  // libwebp takes the size of the pixels' own chunk, and refuses a VP8X that says another.
  checkPixels(frameSize(frame, file), options);
  const { picture } = await libwebp(bytes);
  if (!picture) {
    throw brokenPicture("has damaged pixels", { file, place: placeOf(frame) });
  }
  return orient(picture, orientation);
}

/** The first picture of an animation (section 2.7.1), on a canvas that is transparent where it does not lie. */
async function decodeFirst(
  { data: canvas }: Chunk,
  frame: Chunk | undefined,
  options: ReadPictureOptions,
): Promise<RgbaPicture> {
  const { file } = options;
  if (!frame || frame.data.length < FRAME_HEAD || canvas.length < 10) {
    throw brokenPicture("has no picture to begin with", { file, place: "ANMF" });
  }
  const width = threeBytes(canvas, 4) + 1, height = threeBytes(canvas, 7) + 1;
  checkPixels({ width, height }, options);
  const { data } = frame, left = 2 * threeBytes(data, 0), top = 2 * threeBytes(data, 3);
  const still = await decodeWebp(stillOf(data), options);
  if (left + still.width > width || top + still.height > height) {
    throw brokenPicture("lies outside of its canvas", { file, place: placeOf(frame) });
  }
  if (still.width === width && still.height === height) return still;
  const pixels = new Uint8Array(4 * width * height), row = 4 * still.width;
  for (let y = 0; y < still.height; y++) {
    pixels.set(still.data.subarray(y * row, (y + 1) * row), 4 * ((top + y) * width + left));
  }
  return { width, height, channels: 4, data: pixels };
}

/** A file of a frame's chunks alone. */
function stillOf(frame: Uint8Array): Uint8Array {
  const chunks = frame.subarray(FRAME_HEAD), head = new Uint8Array(30);
  const view = new DataView(head.buffer), size = frame.subarray(6, 12);
  head.set(new TextEncoder().encode("RIFF    WEBPVP8X"));
  view.setUint32(4, 22 + chunks.length, true);
  view.setUint32(16, 10, true);
  head[20] = text(chunks, 0) === "ALPH" ? ALPHA : 0;
  head.set(size, 24);
  return joinBytes([head, chunks]);
}

function threeBytes(bytes: Uint8Array, at: number): number {
  return bytes[at]! | bytes[at + 1]! << 8 | bytes[at + 2]! << 16;
}

/** Whether bytes begin as WebP files do. */
export function isWebp(bytes: Uint8Array): boolean {
  return text(bytes, 0) === "RIFF" && text(bytes, 8) === "WEBP";
}

interface Chunk {
  readonly name: string;
  readonly at: number;
  readonly data: Uint8Array;
}

function chunksOf(bytes: Uint8Array, file: string | undefined): ReadonlyMap<string, Chunk> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const end = 8 + view.getUint32(4, true);
  if (end > bytes.length) {
    throw brokenPicture(`is cut off: ${end} bytes are told, ${bytes.length} are there`, {
      file,
      place: "RIFF",
    });
  }
  const chunks = new Map<string, Chunk>();
  for (let at = 12; at + 8 <= end;) {
    const length = view.getUint32(at + 4, true), name = text(bytes, at);
    const chunk = { name, at, data: bytes.subarray(at + 8, at + 8 + length) };
    if (at + 8 + length > end) {
      throw brokenPicture("is cut off", { file, place: placeOf(chunk) });
    }
    if (!chunks.has(name)) chunks.set(name, chunk);
    at += 8 + length + length % 2;
  }
  return chunks;
}

/** Section 2.5 (lossy: RFC 6386, 9.1) and 3.4 (lossless): 14 bits a side, stored as such or one less. */
function frameSize(
  chunk: Chunk,
  file: string | undefined,
): { readonly width: number; readonly height: number } {
  const { name, data } = chunk;
  const isLossy = name === "VP8 ";
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const isKey = isLossy
    ? data.length >= 10 && view.getUint16(3) === 0x9d01 && data[5] === 0x2a
    : data.length >= 5 && data[0] === LOSSLESS_SIGNATURE;
  if (!isKey) throw brokenPicture("does not begin as pixels do", { file, place: placeOf(chunk) });
  const bits = isLossy ? 0 : view.getUint32(1, true);
  const width = isLossy ? view.getUint16(6, true) & 0x3fff : (bits & 0x3fff) + 1;
  const height = isLossy ? view.getUint16(8, true) & 0x3fff : (bits >>> 14 & 0x3fff) + 1;
  if (width === 0 || height === 0) {
    throw brokenPicture(`has ${width} × ${height} pixels`, { file, place: placeOf(chunk) });
  }
  return { width, height };
}

function placeOf({ name, at }: Chunk): string {
  return `chunk ${JSON.stringify(name)} at byte ${at}`;
}

function text(bytes: Uint8Array, at: number): string {
  return String.fromCharCode(...bytes.subarray(at, at + 4));
}
