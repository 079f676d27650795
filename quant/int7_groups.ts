// Weights rounded to 7 bit while an encoder is loaded (precision "fast", matrices that the file holds as
// floats). A group of 32 columns of a row has a scale, (max - min) / 127, a minimum, and codes
// (w - min) / scale to nearest, ties to even, 0..127. No file holds this: it is what a kernel wants. Seven
// bits because the fast product of all processors takes one operand of 0..127; groups because a few columns
// of a matrix are often far larger than the rest. Not here: the order in memory (wasm/int7_layout.ts).
//
// The groups are those that kept the vectors of all-MiniLM-L6-v2 nearest (bench/results/kernels.md). Decoders are not
// rounded: their perplexity rises seven times as much as with Q8_0.
//
// The empty text, 0.9974 with activations in 8 bit too (weights alone 0.9988, activations alone 0.9989), owes its
// error to one column of the inputs that is sixteen times as large as the others, in the value projection and the
// first matrix of the feed-forward of layers 3 to 5: those two in float give 0.9997. What moved it little: scale
// and minimum of least squared error (0.9976), groups of 16 (0.9977), activations with a minimum (0.9984); columns
// scaled by the power 0.7 of their norm, 0.9986 to 0.9990, would have to be read by what quantises as well.
//
// What larger groups want, which make a VNNI tile a fifth to a third faster (tiles_int7.ts): rows of weights and of
// activations turned by a Hadamard matrix, in blocks of the group, which spreads single large columns. Computed in numpy,
// both rounded alike, pooled vectors of six texts and of 32 arbitrary tokens: the middle, the empty text, the least of
// the others. Groups of 32 as here 0.9994, 0.9975, 0.9990; of 64 0.9990, 0.9963, 0.9980; of 128 0.9984, 0.9933, 0.9973.
// Turned, of 32 0.9996, 0.9987, 0.9992; of 64 0.9994, 0.9985, 0.9990; of 128 0.9994, 0.9983, 0.9987; of 128 with one scale
// a row of activations 0.9994, 0.9980, 0.9987. Not built: what quantises would turn its values in five to seven
// passes of sums. Columns of a norm's result scaled by powers of its weight and bias gained nothing.

/** Columns that share a scale. */
export const INT7_GROUP = 32;

/** Largest code. */
const LARGEST = 127;

/**
 * Rounds one row in place to the numbers that its codes stand for; the definition by which the kernels are
 * judged.
 *
 * @param row Values, a multiple of 32.
 * @throws {RangeError} If a value, or the range of a group, is not finite.
 */
export function roundInt7Row(row: Float32Array): void {
  for (let start = 0; start < row.length; start += INT7_GROUP) {
    const group = row.subarray(start, start + INT7_GROUP);
    const odd = group.find((value) => !Number.isFinite(value));
    if (odd !== undefined) throw new RangeError(`Cannot round ${odd} to 7 bit`);
    const minimum = Math.min(...group);
    const scale = Math.fround(Math.fround(Math.max(...group) - minimum) / LARGEST);
    if (scale === Infinity) throw new RangeError("Cannot round to 7 bit: the range overflows");
    for (let i = 0; i < group.length; i++) {
      const ratio = scale === 0 ? 0 : Math.fround(Math.fround(group[i]! - minimum) / scale);
      group[i] = Math.min(LARGEST, roundToEven(ratio)) * scale + minimum;
    }
  }
}

function roundToEven(value: number): number {
  const floor = Math.floor(value);
  if (value - floor !== 0.5) return Math.round(value);
  return floor % 2 === 0 ? floor : floor + 1;
}
