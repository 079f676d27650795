// I8PC and I4PC of ML Drift: symmetric, one scale an output channel. A channel is a row of the matrix, so
// the block is as long as a row and its length is part of the name: `I8PC_576` has rows of 576.
//   bytes: f32 scale, then a signed byte a value, or a nibble (code + 8, the even one low). x = scale * q.
// The paper does not say whether the lowest code is used; here it is not, so codes are -127..127, -7..7.

import { roundHalfAway, signedExtreme } from "../extremes.ts";
import { checkFinite } from "../finite.ts";
import type { NumberFormat } from "../format.ts";
import { readF32, writeF32 } from "../half.ts";

/**
 * 8 bits, one scale for a row of `columns` values.
 *
 * @throws {RangeError} If `columns` is not positive.
 */
export function defineI8pc(columns: number): NumberFormat {
  const name = `I8PC_${columns}`;
  checkColumns(name, columns, 1);
  const blockBytes = 4 + columns;
  return {
    name,
    blockSize: columns,
    blockBytes,
    decode(bytes, out) {
      for (let b = 0, o = 0; o < out.length; b += blockBytes, o += columns) {
        const scale = readF32(bytes, b);
        for (let j = 0; j < columns; j++) out[o + j] = scale * ((bytes[b + 4 + j]! << 24) >> 24);
      }
    },
    grid: {
      codes: 255,
      write(codes, out, at) {
        for (let j = 0; j < columns; j++) out[at + 4 + j] = codes[j]! - 127;
      },
    },
    encode(values, out) {
      checkFinite(name, values);
      for (let b = 0, o = 0; o < values.length; b += blockBytes, o += columns) {
        const scale = writeScale(values, o, columns, 127, out, b);
        for (let j = 0; j < columns; j++) {
          out[b + 4 + j] = roundCode(values[o + j]!, scale, 127);
        }
      }
    },
  };
}

/**
 * 4 bits, one scale for a row of `columns` values.
 *
 * @throws {RangeError} If `columns` is not positive and even.
 */
export function defineI4pc(columns: number): NumberFormat {
  const name = `I4PC_${columns}`;
  checkColumns(name, columns, 2);
  const blockBytes = 4 + columns / 2;
  return {
    name,
    blockSize: columns,
    blockBytes,
    decode(bytes, out) {
      for (let b = 0, o = 0; o < out.length; b += blockBytes, o += columns) {
        const scale = readF32(bytes, b);
        for (let j = 0; j < columns; j += 2) {
          const pair = bytes[b + 4 + (j >> 1)]!;
          out[o + j] = scale * ((pair & 15) - 8);
          out[o + j + 1] = scale * ((pair >> 4) - 8);
        }
      }
    },
    grid: {
      codes: 15,
      write(codes, out, at) {
        for (let j = 0; j < columns; j += 2) {
          out[at + 4 + (j >> 1)] = (codes[j]! + 1) | ((codes[j + 1]! + 1) << 4);
        }
      },
    },
    encode(values, out) {
      checkFinite(name, values);
      for (let b = 0, o = 0; o < values.length; b += blockBytes, o += columns) {
        const scale = writeScale(values, o, columns, 7, out, b);
        for (let j = 0; j < columns; j += 2) {
          const even = roundCode(values[o + j]!, scale, 7) + 8;
          const odd = roundCode(values[o + j + 1]!, scale, 7) + 8;
          out[b + 4 + (j >> 1)] = even | (odd << 4);
        }
      }
    },
  };
}

function checkColumns(name: string, columns: number, multiple: number): void {
  if (Number.isSafeInteger(columns) && columns > 0 && columns % multiple === 0) return;
  throw new RangeError(`Cannot use ${name}: rows are multiples of ${multiple} values`);
}

/** Writes the scale that maps the row's extreme to `top`, and returns it. */
function writeScale(
  values: Float32Array,
  start: number,
  count: number,
  top: number,
  out: Uint8Array,
  at: number,
): number {
  const scale = Math.fround(Math.abs(signedExtreme(values, start, count)) / top);
  writeF32(out, at, scale);
  return scale;
}

function roundCode(value: number, scale: number, top: number): number {
  return scale === 0 ? 0 : Math.max(-top, Math.min(top, roundHalfAway(value / scale)));
}
