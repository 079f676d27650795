// What `deno task bench formats` measures: one product of activations with weights in a number format, on one
// backend. Weights do not fit into a cache, because that is how a model's are read.

import { gpuLayoutOf } from "../../gpu/weight_layout.ts";
import { findFormat, formats, type NumberFormat, rowFormatsOf } from "../../quant/mod.ts";
import { Q8_GROUP } from "../../quant/q8_activation.ts";

/** One product: `rows` rows of activations times [outputs, columns]. */
export interface FormatShape {
  readonly columns: number;
  readonly outputs: number;
  readonly rows: number;
}

/** What was measured. */
export interface FormatFigure {
  readonly backend: "wasm" | "gpu";
  /** Threads, or the name of an adapter. */
  readonly device: string;
  readonly format: string;
  readonly shape: FormatShape;
  readonly activations: "q8" | "f32";
  /** Bits of a weight in memory, all of them read. */
  readonly bitsAWeight: number;
  /** Bytes of weights that one product reads. */
  readonly bytes: number;
  /** Of one product. */
  readonly seconds: number;
  readonly gbps: number;
  /** 10⁹ multiplications and additions a second. */
  readonly gops: number;
  /**
   * Part of the nearer limit of the same run: a plain read of the same bytes on the same threads, or, for many
   * rows, arithmetic and nothing else.
   */
  readonly share: number;
}

/** What to measure. */
export interface FormatBenchOptions {
  readonly formats: readonly string[];
  readonly shapes: readonly FormatShape[];
  /** Thread counts; of backend wasm. */
  readonly threads: readonly number[];
  /** How often all copies of the weights are gone through. */
  readonly rounds: number;
  /** Float activations instead of 8-bit ones. */
  readonly exact: boolean;
}

/** Formats of weights in less than 16 bits, from many bits to few, but for those that differ from another in a constant. */
export function benchedFormats(): NumberFormat[] {
  const bits = ({ blockBytes, blockSize }: NumberFormat) => blockBytes / blockSize;
  return [...formats.values(), ...rowFormatsOf(4096)]
    .filter((format) => bits(format) < 2 && !format.use && !format.variant)
    .sort((a, b) => bits(b) - bits(a));
}

/** Measured unless told otherwise: one of each kind of code and of scale. */
export const DEFAULT_FORMATS: readonly string[] = benchedFormats()
  .filter(({ block }) => block)
  .map(({ name, rowFamily = name }) => ({ name: rowFamily, kind: gpuLayoutOf(name, 4096).id }))
  .filter(({ kind }, i, all) => all.findIndex((other) => other.kind === kind) === i)
  .map(({ name }) => name);

/** A row of a 1.1B and of an 8B model. */
export const DEFAULT_SHAPES: readonly FormatShape[] = [
  { columns: 2048, outputs: 5632, rows: 1 },
  { columns: 4096, outputs: 4096, rows: 1 },
];

/**
 * A shape as text, `COLUMNSxOUTPUTS` or `COLUMNSxOUTPUTSxROWS`.
 *
 * @throws {RangeError} If it is none.
 */
export function parseShape(text: string): FormatShape {
  const [columns, outputs, rows = 1, ...rest] = text.split("x").map(Number);
  const sizes = [columns, outputs, rows];
  if (rest.length > 0 || !sizes.every((n) => Number.isInteger(n) && n! > 0)) {
    throw new RangeError(`Shapes are COLUMNSxOUTPUTS or COLUMNSxOUTPUTSxROWS: got "${text}"`);
  }
  if (columns! % Q8_GROUP !== 0) {
    throw new RangeError(`Columns of a shape are a multiple of ${Q8_GROUP}: got "${text}"`);
  }
  return { columns: columns!, outputs: outputs!, rows };
}

/** The formats whose blocks fill rows of a shape; others are named on standard error. */
export function formatsFor({ formats }: FormatBenchOptions, { columns }: FormatShape): string[] {
  return formats.filter((name) => {
    const { blockSize } = findFormat(name, columns);
    if (columns % blockSize === 0) return true;
    console.error(`${name} is left out: its blocks of ${blockSize} do not fill rows of ${columns}`);
    return false;
  });
}

/** A shape as text. */
export function shapeText({ columns, outputs, rows }: FormatShape): string {
  return `${columns}x${outputs}${rows === 1 ? "" : `x${rows}`}`;
}
