// Arithmetic on vectors of texts.

/** Mean of rows: f32[rows · width] → f32[width], summed in double precision. */
export function meanOfRows(rows: Float32Array, width: number): Float32Array {
  const sum = new Float64Array(width);
  for (let at = 0; at < rows.length;) {
    for (let i = 0; i < width; i++) sum[i]! += rows[at++]!;
  }
  return Float32Array.from(sum, (value) => value * width / rows.length);
}

/** The vector with length 1; zeros stay. */
export function unitVector(vector: Float32Array): Float32Array {
  const length = Math.sqrt(dot(vector, vector));
  return length === 0 ? vector : vector.map((value) => value / length);
}

/** Cosine of the angle between two vectors; NaN where one is all zeros. */
export function cosine(a: Float32Array, b: Float32Array): number {
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
}

/** The sum of products. */
export function dot(a: Float32Array, b: Float32Array): number {
  return a.reduce((sum, value, i) => sum + value * b[i]!, 0);
}
