// Work beside a user interface (spec TL-9, E1): a step is cut into pieces that take no longer than asked, as far as what
// it is made of allows, and events are let through between two of them. What an item takes is learnt from run to run, so
// the first run goes item by item. Left out: items that take longer by themselves; a step of fewer rows has shorter ones
// (`batch` of load).

import type { DimEnv } from "../graph/dim/mod.ts";

/**
 * How urgent the work of a model is.
 * @category Pictures
 */
export interface PriorityOptions {
  /**
   * `low`: steps are cut into pieces of at most `maxSubmitMs`, and other work of this thread and of the GPU gets its turn
   * between them; for models beside a user interface. Answers are the same. Default `normal`.
   */
  readonly priority?: "low" | "normal" | undefined;
  /** With `priority: "low"`, milliseconds that a piece may take. Default 8. */
  readonly maxSubmitMs?: number | undefined;
}

const DEFAULT_MS = 8;
/** Sizes of steps whose times are known. */
const MOST_SIZES = 16;

/**
 * Milliseconds of a piece; undefined: work is not cut.
 *
 * @throws {RangeError} If an option is none.
 */
export function paceOf({ priority = "normal", maxSubmitMs }: PriorityOptions): number | undefined {
  if (priority !== "low" && priority !== "normal") {
    throw new RangeError(`Cannot use priority "${priority}": it is low or normal`);
  }
  if (priority === "normal") {
    if (maxSubmitMs === undefined) return undefined;
    throw new RangeError('Cannot use maxSubmitMs without priority "low"');
  }
  if (maxSubmitMs === undefined) return DEFAULT_MS;
  if (Number.isFinite(maxSubmitMs) && maxSubmitMs > 0) return maxSubmitMs;
  throw new RangeError(`Cannot use maxSubmitMs ${maxSubmitMs}: it is a number of milliseconds`);
}

/** Says how long a piece of a list of items may be. */
export class Pacer {
  readonly #maxMs: number;
  readonly #times = new Map<string, Float64Array>();
  #of: Float64Array = new Float64Array(0);

  constructor(maxMs: number) {
    this.#maxMs = maxMs;
  }

  /** Begins a run of so many items at some sizes. */
  begin(bindings: DimEnv, count: number): void {
    const key = Object.entries(bindings).map(([name, value]) => `${name}=${value}`).join();
    let times = this.#times.get(key);
    if (times?.length !== count) {
      // Unknown: an item fills a piece.
      times = new Float64Array(count).fill(this.#maxMs);
      if (this.#times.size >= MOST_SIZES) this.#times.delete(this.#times.keys().next().value!);
      this.#times.set(key, times);
    }
    this.#of = times;
  }

  /** Items of the piece that begins at one: one at least. */
  take(first: number): number {
    const times = this.#of;
    let end = first + 1;
    for (let sum = times[first]!; end < times.length; end++) {
      sum += times[end]!;
      if (sum > this.#maxMs) break;
    }
    return end - first;
  }

  /** What a piece took: its items are expected to take their shares of it. */
  took(
    first: number,
    { count, ms }: { readonly count: number; readonly ms: number },
  ): void {
    const piece = this.#of.subarray(first, first + count);
    const sum = piece.reduce((a, b) => a + b, 0);
    for (let i = 0; i < count; i++) piece[i] = sum > 0 ? piece[i]! * ms / sum : ms / count;
  }
}
