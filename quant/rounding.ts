// The one interface of calibrated rounding: a grid chooses the scales of a group as its format's encoder
// would, holds them, and rounds values to their levels one by one. What asks for which value next, and what it
// makes of the error, is the method's business (gptq.ts), so that every method works for every format.
// The levels of a group are read off the format's own decoder: a block of lowest codes and one of highest codes
// tell offset and step of each value, also where sub-blocks have scales of their own.

import { type EncodeOptions, formatBytes, type NumberFormat } from "./format.ts";

/** Rounds the values of one group after another to a format. */
export interface RoundingGrid {
  readonly format: NumberFormat;
  /** Values that get their scales together: a block of the format. */
  readonly group: number;
  /**
   * Chooses scales for a group of `group` values, which then stay.
   *
   * @throws {RangeError} If the format cannot hold them.
   */
  fit(values: Float32Array, options?: EncodeOptions): void;
  /** Level nearest to `value` for the value at `index` of the group; its code is kept. */
  round(index: number, value: number): number;
  /** Writes the group at `at`, each value with the code that it was last rounded to. */
  write(out: Uint8Array, at: number): void;
}

/** Whether values of a format can be rounded one by one. */
export function hasGrid({ grid, encode }: NumberFormat): boolean {
  return grid !== undefined && encode !== undefined;
}

/**
 * The grid of a format.
 *
 * @throws {RangeError} If it has none.
 */
export function createRoundingGrid(format: NumberFormat): RoundingGrid {
  const { grid, encode, decode, blockSize: group, name } = format;
  if (!grid || !encode) {
    throw new RangeError(`Cannot round values one by one to ${name}: it has no grid`);
  }
  const { codes: count, places = Array.from({ length: count }, (_, code) => code) } = grid;
  const [first, last] = [places[0]!, places[count - 1]!];
  const block = new Uint8Array(formatBytes(format, group));
  const codes = new Uint8Array(group);
  const low = new Float32Array(group);
  const high = new Float32Array(group);
  const steps = new Float64Array(group);
  const isEven = grid.places === undefined;

  function nearest(place: number): number {
    if (isEven) return Math.max(0, Math.min(count - 1, Math.round(place)));
    let code = 0;
    while (code < count - 1 && 2 * place >= places[code]! + places[code + 1]!) code++;
    return code;
  }

  return {
    format,
    group,
    fit(values, options) {
      encode(values, block, options);
      grid.write(codes.fill(0), block, 0);
      decode(block, low);
      grid.write(codes.fill(count - 1), block, 0);
      decode(block, high);
      for (let i = 0; i < group; i++) steps[i] = (high[i]! - low[i]!) / (last - first);
    },
    round(index, value) {
      const step = steps[index]!;
      const code = step === 0 ? 0 : nearest((value - low[index]!) / step + first);
      codes[index] = code;
      return low[index]! + (places[code]! - first) * step;
    },
    write(out, at) {
      grid.write(codes, block, 0);
      out.set(block, at);
    },
  };
}
