// What the block encoders look for before they choose a scale: the value furthest from zero with its
// sign, or the range. The first of equals wins, as in ggml; a NaN is never the extreme.

/** The value with the greatest magnitude in `values[start, start + count)`, with its sign. */
export function signedExtreme(values: Float32Array, start: number, count: number): number {
  let extreme = 0;
  for (let i = start; i < start + count; i++) {
    if (Math.abs(values[i]!) > Math.abs(extreme)) extreme = values[i]!;
  }
  return extreme;
}

/** The smallest value in `values[start, start + count)`. */
export function minimum(values: Float32Array, start: number, count: number): number {
  let min = values[start]!;
  for (let i = start + 1; i < start + count; i++) if (values[i]! < min) min = values[i]!;
  return min;
}

/** The greatest value in `values[start, start + count)`. */
export function maximum(values: Float32Array, start: number, count: number): number {
  let max = values[start]!;
  for (let i = start + 1; i < start + count; i++) if (values[i]! > max) max = values[i]!;
  return max;
}

/** `1 / scale` in float32, or 0 where the block is all zero. */
export function inverseScale(scale: number): number {
  return scale === 0 ? 0 : Math.fround(1 / scale);
}

/** Nearest integer, halves away from zero, as C's `roundf`. */
export function roundHalfAway(value: number): number {
  return value < 0 ? -Math.floor(0.5 - value) : Math.floor(value + 0.5);
}

/** Nearest integer, halves to the even one. */
export function roundHalfEven(value: number): number {
  const floor = Math.floor(value);
  const rest = value - floor;
  if (rest !== 0.5) return rest < 0.5 ? floor : floor + 1;
  return floor % 2 === 0 ? floor : floor + 1;
}
