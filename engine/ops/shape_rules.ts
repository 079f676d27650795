// The checks that shape rules share. Messages say which input and what it is; the graph builder puts
// the op and the node's path in front.

import { type Dim, equal, formatDim } from "../graph/dim/mod.ts";
import type { DataType, TensorType } from "../graph/graph.ts";
import { formatType } from "../graph/verify.ts";

/** What an input must be. */
export interface InputRule {
  /** Allowed element types; default f32. */
  readonly dtype?: DataType | readonly DataType[];
  /** Exact number of dims. */
  readonly rank?: number;
  /** Least number of dims. */
  readonly minRank?: number;
}

/** Which input is meant, and what it must be. */
interface InputAt extends InputRule {
  readonly index: number;
  readonly name: string;
}

/**
 * Input `index`, checked.
 *
 * @throws {TypeError} If it is absent or of another element type. @throws {RangeError} On another rank.
 */
export function requireInput(inputs: readonly (TensorType | undefined)[], at: InputAt): TensorType {
  const input = optionalInput(inputs, at);
  if (!input) throw new TypeError(`input ${at.index} (${at.name}) is missing`);
  return input;
}

/** As `requireInput`, for an input that may be absent. */
export function optionalInput(
  inputs: readonly (TensorType | undefined)[],
  { index, name, dtype = "f32", rank, minRank = 0 }: InputAt,
): TensorType | undefined {
  const input = inputs[index];
  if (!input) return undefined;
  const right = typeof dtype === "string" ? input.dtype === dtype : dtype.includes(input.dtype);
  if (!right) {
    throw new TypeError(wrongInput(input, { index, name, must: [dtype].flat().join(" or ") }));
  }
  const dims = input.shape.length;
  if (rank !== undefined && dims !== rank) {
    throw new RangeError(wrongInput(input, { index, name, must: `of ${rank} dims` }));
  }
  if (dims < minRank) {
    throw new RangeError(wrongInput(input, { index, name, must: `of at least ${minRank} dims` }));
  }
  return input;
}

function wrongInput(
  input: TensorType,
  { index, name, must }: { readonly index: number; readonly name: string; readonly must: string },
): string {
  return `input ${index} (${name}) is ${formatType(input)}: must be ${must}`;
}

/**
 * No more inputs than the op knows.
 *
 * @throws {TypeError} Otherwise.
 */
export function checkInputCount(inputs: readonly unknown[], most: number): void {
  if (inputs.length > most) throw new TypeError(`got ${inputs.length} inputs, takes ${most}`);
}

/** Two dims that must be equal and are not proven so; what declares symbols may make them equal. */
export class DimsDiffer extends RangeError {
  /** The dims. */
  readonly dims: readonly [Dim, Dim];
  /** Other pairs of dims of the same node that differ. */
  readonly related: (readonly [Dim, Dim])[] = [];

  constructor(a: Dim, b: Dim, message: string) {
    super(message);
    this.dims = [a, b];
  }
}

/**
 * Two dims that must be equal.
 *
 * @throws {RangeError} If that is not proven.
 */
export function requireEqual(
  a: Dim,
  { b, what }: { readonly b: Dim; readonly what: string },
): void {
  if (!equal(a, b)) {
    const message = `${what} must be equal: they are ${formatDim(a)} and ${formatDim(b)}`;
    throw new DimsDiffer(a, b, message);
  }
}

/**
 * A dim that must be one of some sizes; those of different symbols may turn out equal in a run.
 *
 * @throws {RangeError} If it is known to be none of them.
 */
export function refuseMisfit(
  dim: Dim,
  { sizes, what }: { readonly sizes: readonly Dim[]; readonly what: string },
): void {
  const isKnown = [dim, ...sizes].every((one) => typeof one === "number");
  if (!isKnown || sizes.includes(dim)) return;
  throw new RangeError(`${what} must be ${sizes.join(" or ")}: it is ${dim}`);
}

/**
 * A dim that must be a plain number.
 *
 * @throws {RangeError} If it is symbolic.
 */
export function requireStatic(dim: Dim, what: string): number {
  if (typeof dim === "number") return dim;
  throw new RangeError(`${what} must be a known number: it is ${formatDim(dim)}`);
}

/** Last dim of a shape of rank 1 or more. */
export function lastDim({ shape }: TensorType): Dim {
  return shape.at(-1)!;
}

/**
 * NumPy broadcasting of two shapes.
 *
 * @throws {RangeError} If two dims are neither proven equal nor 1.
 */
export function broadcastShapes(a: readonly Dim[], b: readonly Dim[]): Dim[] {
  const rank = Math.max(a.length, b.length);
  return Array.from({ length: rank }, (_, i) => {
    const left = a[a.length - rank + i] ?? 1, right = b[b.length - rank + i] ?? 1;
    if (equal(left, 1)) return right;
    if (equal(right, 1) || equal(left, right)) return left;
    const message = `cannot broadcast dims ${formatDim(left)} and ${formatDim(right)}`;
    throw new DimsDiffer(left, right, message);
  });
}

/** Flat index in a tensor of shape `source` that broadcasts to `shape`, of an index there. */
export function broadcastIndex(
  index: number,
  { shape, source }: { readonly shape: readonly number[]; readonly source: readonly number[] },
): number {
  let at = 0, stride = 1;
  for (let axis = 1; axis <= source.length; axis++) {
    const size = source.at(-axis)!, outSize = shape.at(-axis)!;
    if (size !== 1) at += (index % outSize) * stride;
    index = Math.floor(index / outSize);
    stride *= size;
  }
  return at;
}

/** One input, as it is: the rule of ops that move a value between devices. */
export function inferTransfer(inputs: readonly (TensorType | undefined)[]): TensorType[] {
  checkInputCount(inputs, 1);
  const [x] = inputs;
  if (!x) throw new TypeError("input 0 (x) is missing");
  return [{ dtype: x.dtype, shape: x.shape }];
}
