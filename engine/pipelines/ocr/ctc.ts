// Greedy decoding of connectionist temporal classification (Graves et al., 2006): the most probable class
// of each column, repetitions merged, blanks dropped.

/**
 * A line of text and the mean probability of its letters.
 * @category Pictures
 */
export interface DecodedText {
  /** The letters. */
  readonly text: string;
  /** Between 0 and 1. */
  readonly score: number;
}

const BLANK = 0;

/**
 * Text of one line.
 *
 * @param probabilities Columns × classes.
 * @param letters By class; the first one is the blank.
 * @throws {RangeError} If there are more classes than letters.
 */
export function decodeCtc(probabilities: Float32Array, letters: readonly string[]): DecodedText {
  const classes = letters.length;
  if (probabilities.length % classes !== 0) {
    throw new RangeError(
      `Cannot decode: ${probabilities.length} probabilities are no columns of ${classes} letters`,
    );
  }
  let text = "", sum = 0, count = 0, last = BLANK;
  for (let start = 0; start < probabilities.length; start += classes) {
    let best = 0;
    for (let i = 1; i < classes; i++) {
      if (probabilities[start + i]! > probabilities[start + best]!) best = i;
    }
    if (best !== BLANK && best !== last) {
      text += letters[best];
      sum += probabilities[start + best]!;
      count++;
    }
    last = best;
  }
  return { text, score: count === 0 ? 0 : sum / count };
}
