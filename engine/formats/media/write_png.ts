// Writes pictures as PNG files (W3C PNG specification, third edition): 8 bits a channel, no passes, each row as the
// differences from the row above it.

import { joinBytes } from "../../byte_source.ts";
import { builtin } from "../../builtin.ts";
import { checkPicture, type Picture } from "./picture.ts";

const SIGNATURE = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a);
const RGB = 2, RGBA = 6, UP = 2;

/**
 * A picture as the bytes of a PNG file.
 *
 * @example
 * ```ts
 * import { readPng, writePng } from "@troodon/troodon";
 * import { assertEquals } from "@std/assert";
 *
 * const picture = { width: 2, height: 1, data: Uint8Array.of(255, 0, 0, 0, 0, 255) };
 * assertEquals(readPng(writePng(picture)).data, picture.data);
 * ```
 *
 * @throws {TypeError | RangeError} If it is no picture, its data are not as long as its sizes say, or it has no pixels.
 * @category Pictures
 */
export function writePng(picture: Picture): Uint8Array {
  checkPicture(picture);
  const { width, height, channels = 3, data } = picture;
  const header = new DataView(new ArrayBuffer(13));
  header.setUint32(0, width);
  header.setUint32(4, height);
  header.setUint8(8, 8);
  header.setUint8(9, channels === 4 ? RGBA : RGB);
  const rows = filtered(data, width * channels);
  return joinBytes([
    SIGNATURE,
    chunk("IHDR", new Uint8Array(header.buffer)),
    chunk("IDAT", builtin("node:zlib").deflateSync(rows)),
    chunk("IEND", new Uint8Array(0)),
  ]);
}

function filtered(data: Uint8Array, stride: number): Uint8Array {
  const height = data.length / stride, out = new Uint8Array(height * (stride + 1));
  for (let y = 0; y < height; y++) {
    const from = y * stride, to = y * (stride + 1) + 1;
    out[to - 1] = UP;
    for (let x = 0; x < stride; x++) {
      out[to + x] = data[from + x]! - (y === 0 ? 0 : data[from + x - stride]!);
    }
  }
  return out;
}

function chunk(name: string, data: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(data.length + 12), view = new DataView(bytes.buffer);
  view.setUint32(0, data.length);
  for (let i = 0; i < 4; i++) bytes[4 + i] = name.charCodeAt(i);
  bytes.set(data, 8);
  view.setUint32(8 + data.length, builtin("node:zlib").crc32(bytes.subarray(4, 8 + data.length)));
  return bytes;
}
