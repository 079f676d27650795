// Weights rounded to 7 bit while an encoder is loaded (precision "fast", matrices that the file holds as
// floats). Columns are turned first, on both sides of a product (`turnColumns`): what was in one column of 32 is in all
// of them, so that a few that are far larger than the rest, as encoders have them, do not make the scale of the others.
// Of what was turned a group of 64 columns of a row, the last of which may have 32, has a scale, (max - min) / 127, a
// minimum, and codes (w - min) / scale to nearest, ties to even, 0..127. No file holds this: it is what a kernel wants.
// Seven bits because the fast product of all processors takes one operand of 0..127. Not here: the order in memory
// (wasm/int7_layout.ts).
//
// Decoders are not rounded: their perplexity rises seven times as much as with Q8_0. What groups and turns cost and gain:
// bench/results/kernels.md.

/** Columns that share a scale. */
export const INT7_GROUP = 64;

/** Columns that are turned together. */
const TURNED = 32;

/**
 * What activations are multiplied by before they are turned, and weights. Both sides are turned, which makes sums 32 times as
 * large; and sums of sixteen of what activations become (quant/q8_activation.ts) shall not overflow. Weights below 3e35 never do.
 */
export const X_FACTOR: number = 1 / 512, W_FACTOR = 16;

/** Largest code. */
const LARGEST = 127;

/**
 * Turns a row in place by a Hadamard matrix of 32 times `factor`, sums and differences of two at a time in float32: columns
 * 16, 8 and 4 apart, in place, then twice neighbours among eight, whose sums come before their differences.
 *
 * @param row Values, a multiple of 32.
 */
export function turnColumns(row: Float32Array, factor: number): void {
  for (let i = 0; i < row.length; i++) row[i]! *= factor;
  const eight = new Float32Array(8);
  for (let start = 0; start < row.length; start += TURNED) {
    for (const apart of [16, 8, 4]) {
      for (let i = start; i < start + TURNED; i++) {
        if (i & apart) continue;
        const a = row[i]!, b = row[i + apart]!;
        row[i] = a + b;
        row[i + apart] = a - b;
      }
    }
    for (let at = start; at < start + TURNED; at += 8) {
      for (let turn = 0; turn < 2; turn++) {
        eight.set(row.subarray(at, at + 8));
        for (let i = 0; i < 4; i++) {
          row[at + i] = eight[2 * i]! + eight[2 * i + 1]!;
          row[at + 4 + i] = eight[2 * i]! - eight[2 * i + 1]!;
        }
      }
    }
  }
}

/**
 * Turns one row in place and rounds it to the numbers that its codes stand for; the definition by which the kernels are
 * judged.
 *
 * @param row Values, a multiple of 32.
 * @throws {RangeError} If a value, or the range of a group, is not finite.
 */
export function roundInt7Row(row: Float32Array): void {
  const odd = row.find((value) => !Number.isFinite(value));
  if (odd !== undefined) throw new RangeError(`Cannot round ${odd} to 7 bit`);
  turnColumns(row, W_FACTOR);
  for (let start = 0; start < row.length; start += INT7_GROUP) {
    const group = row.subarray(start, start + INT7_GROUP);
    const minimum = Math.min(...group);
    const scale = Math.fround(Math.fround(Math.max(...group) - minimum) / LARGEST);
    if (!Number.isFinite(scale)) throw new RangeError("Cannot round to 7 bit: the range overflows");
    for (let i = 0; i < group.length; i++) {
      const ratio = scale === 0 ? 0 : Math.fround(Math.fround(group[i]! - minimum) / scale);
      const code = Math.min(LARGEST, roundToEven(ratio));
      group[i] = code * scale + minimum;
    }
  }
}

function roundToEven(value: number): number {
  const floor = Math.floor(value);
  if (value - floor !== 0.5) return Math.round(value);
  return floor % 2 === 0 ? floor : floor + 1;
}
