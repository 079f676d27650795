// Q8_GL of Inferflow: a byte a value and two scales for a whole tensor, one above zero and one below, so
// zero is exact. Rows carry the tensor's scales (8 bytes), so that a row can be decoded by itself; its
// length is part of the name: `Q8_GL_576` has rows of 576.
//   bytes: f32 scale of codes 0..127, f32 scale of codes 128..255 (x = -scale * (q - 128)), then codes.
// "Soft" extremes, which upstream may cut outliers by, are the true extremes here: outliers have a place
// of their own in a policy.

import type { CodePacking } from "../fields.ts";
import { defineBlockFormat } from "../block_format.ts";
import { roundHalfAway } from "../extremes.ts";
import { checkFinite } from "../finite.ts";
import type { NumberFormat } from "../format.ts";
import { readF32, writeF32 } from "../half.ts";

/**
 * 8 bits under two scales of the tensor, rows of `columns` values.
 *
 * @throws {RangeError} If `columns` is not positive.
 */
export function defineQ8Gl(columns: number): NumberFormat {
  const name = `Q8_GL_${columns}`;
  if (!Number.isSafeInteger(columns) || columns < 1) {
    throw new RangeError(`Cannot use ${name}: rows have at least one value`);
  }
  const blockBytes = 8 + columns;
  return defineBlockFormat({
    ...{ name, blockSize: columns, blockBytes },
    rowFamily: "Q8_GL",
    scope: "tensor",
    codes: magnitudes(columns),
    signed: true,
    scales: { kind: "sides", floats: [0, 4] },
    decode(bytes, out) {
      for (let b = 0, o = 0; o < out.length; b += blockBytes, o += columns) {
        const above = readF32(bytes, b);
        const below = readF32(bytes, b + 4);
        for (let j = 0; j < columns; j++) {
          const q = bytes[b + 8 + j]!;
          out[o + j] = q < 128 ? q * above : (128 - q) * below;
        }
      }
    },
    encode({ values, out, options: { range = rangeOf(values) }, writeCodes }) {
      checkFinite(name, values);
      const above = Math.fround(Math.max(0, range[1]) / 127);
      const below = Math.fround(Math.max(0, -range[0]) / 127);
      const code = (value: number): number => {
        const scale = value < 0 ? below : above;
        const magnitude = scale === 0 ? 0 : Math.min(127, roundHalfAway(Math.abs(value) / scale));
        return value < 0 ? -magnitude : magnitude;
      };
      const codes = new Uint8Array(columns);
      for (let b = 0, o = 0; o < values.length; b += blockBytes, o += columns) {
        writeF32(out, b, above);
        writeF32(out, b + 4, below);
        for (let j = 0; j < columns; j++) codes[j] = code(values[o + j]!);
        writeCodes(codes, out, b);
      }
    },
  });
}

/** Signed bytes as a magnitude under a sign. */
function magnitudes(columns: number): CodePacking {
  return {
    ...{ name: "magnitudes", bits: 8, at: 8 },
    pack(codes, out, at) {
      for (let j = 0; j < columns; j++) {
        const code = codes[j]!;
        out[at + 8 + j] = code < 128 ? code : 128 + (256 - code);
      }
    },
    unpack(bytes, at, codes) {
      for (let j = 0; j < columns; j++) {
        const byte = bytes[at + 8 + j]!;
        codes[j] = byte < 128 ? byte : 128 - byte;
      }
    },
  };
}

function rangeOf(values: Float32Array): [number, number] {
  let min = Infinity, max = -Infinity;
  for (const value of values) {
    if (value < min) min = value;
    if (value > max) max = value;
  }
  return [min, max];
}
