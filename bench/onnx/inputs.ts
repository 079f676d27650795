// Inputs of a case as numbers; native.py has the same rules.

/** An input: `ids` counts through a vocabulary, `wave` is a sine, `strokes` look like lines of text. */
export interface InputRule {
  readonly name: string;
  readonly type: "int64" | "int32" | "float32";
  readonly dims: readonly number[];
  readonly fill: "ids" | "wave" | "strokes" | "zero" | "one" | number;
}

/** Elements of an input. */
export function elementsOf(
  { type, dims, fill }: InputRule,
): Float32Array | Int32Array | BigInt64Array {
  const length = dims.reduce((product, size) => product * size, 1);
  const value = (i: number): number =>
    fill === "ids"
      ? 1000 + i * 7919 % 20000
      : fill === "wave"
      ? Math.sin(i * 0.013)
      : fill === "strokes"
      ? isInk(i, dims.at(-1)!) ? -1 : 1
      : fill === "zero"
      ? 0
      : fill === "one"
      ? 1
      : fill;
  if (type === "int64") return BigInt64Array.from({ length }, (_, i) => BigInt(value(i)));
  return type === "int32"
    ? Int32Array.from({ length }, (_, i) => value(i))
    : Float32Array.from({ length }, (_, i) => value(i));
}

function isInk(index: number, width: number): boolean {
  const column = index % width, row = Math.floor(index / width);
  const stroke = Math.floor((column * 7 + Math.floor(row / 5) * 3) / 4) % 3 === 0;
  return stroke && row % 64 < 20 && column % 160 < 120;
}

/** Numbers all over an output, some 512, by which engines are compared; its text runs in pages too. */
export function sampleOf(data: ArrayLike<number>): number[] {
  const step = Math.floor(data.length / 512) | 1; // odd, so that no column is met again and again
  return Array.from({ length: Math.ceil(data.length / step) }, (_, i) => data[i * step]!);
}
