// I8PC and I4PC of ML Drift: symmetric, one scale an output channel. A channel is a row of the matrix, so
// the block is as long as a row and its length is part of the name: `I8PC_576` has rows of 576.
//   bytes: f32 scale, then a signed byte a value, or a nibble (code + 8, the even one low). x = scale * q.
// The paper does not say whether the lowest code is used; here it is not, so codes are -127..127, -7..7.

import { roundHalfAway, signedExtreme } from "../extremes.ts";
import { defineBlockFormat } from "../block_format.ts";
import { checkFinite } from "../finite.ts";
import type { NumberFormat } from "../format.ts";
import { writeF32 } from "../half.ts";

/**
 * 8 bits, one scale for a row of `columns` values.
 *
 * @throws {RangeError} If `columns` is not positive.
 */
export function defineI8pc(columns: number): NumberFormat {
  return defineRows("I8PC", columns, { bits: 8, top: 127 });
}

/**
 * 4 bits, one scale for a row of `columns` values.
 *
 * @throws {RangeError} If `columns` is not positive and even.
 */
export function defineI4pc(columns: number): NumberFormat {
  return defineRows("I4PC", columns, { bits: 4, top: 7 });
}

function defineRows(
  rowFamily: string,
  columns: number,
  { bits, top }: { readonly bits: 4 | 8; readonly top: number },
): NumberFormat {
  const name = `${rowFamily}_${columns}`;
  const multiple = 8 / bits, offset = bits === 4 ? 8 : 0;
  if (!Number.isSafeInteger(columns) || columns < 1 || columns % multiple !== 0) {
    throw new RangeError(`Cannot use ${name}: rows are multiples of ${multiple} values`);
  }
  const blockBytes = 4 + columns / multiple;
  return defineBlockFormat({
    ...{ name, rowFamily, blockSize: columns, blockBytes },
    codes: [{ at: 4, bits, run: 1 }],
    signed: bits === 8,
    offset,
    scales: { kind: "f", floats: [0] },
    grid: { codes: 2 * top + 1, first: offset - top },
    encode({ values, out, writeCodes }) {
      checkFinite(name, values);
      const codes = new Uint8Array(columns);
      for (let b = 0, o = 0; o < values.length; b += blockBytes, o += columns) {
        const scale = Math.fround(Math.abs(signedExtreme(values, o, columns)) / top);
        writeF32(out, b, scale);
        for (let j = 0; j < columns; j++) {
          codes[j] = offset + (scale === 0 ? 0 : roundCode(values[o + j]! / scale, top));
        }
        writeCodes(codes, out, b);
      }
    },
  });
}

function roundCode(ratio: number, top: number): number {
  return Math.max(-top, Math.min(top, roundHalfAway(ratio)));
}
