// Slopes of linear attention biases (ALiBi, arXiv 2108.12409): a geometric series for a power of two of
// heads; for other numbers, the series of the power below, then every second value of the one above.

/** Slope of each head. */
export function alibiSlopes(heads: number): Float32Array {
  const power = 2 ** Math.floor(Math.log2(heads));
  return Float32Array.from(
    { length: heads },
    (_, head) =>
      head < power ? 2 ** (-8 * (head + 1) / power) : 2 ** (-4 * (2 * (head - power) + 1) / power),
  );
}
