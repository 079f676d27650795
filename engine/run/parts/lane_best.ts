// The best values of rows that a run of one of several lanes has found: the device's own arrays are overwritten by the next
// lane's run. Made once a row; where all rows of a run were found, the rest of them is not fetched, and is gone.

import type { BestLogits, PreparedPlan, RankedWish } from "../backend.ts";
import { MOST_BEST } from "../step.ts";

interface Found {
  readonly ids: Uint32Array;
  readonly logits: Float32Array;
  count: number;
}

/** What a lane knows of its last run. */
export class LaneBest {
  readonly #rows: Found[] = [];
  #count = 0;

  /** Keeps what the device found of so many rows; whether that is something of all. */
  take(
    head: PreparedPlan,
    { rows, wish }: { readonly rows: number; readonly wish: RankedWish | undefined },
  ): boolean {
    this.#count = 0;
    for (let row = 0; wish && row < rows; row++) {
      const best = head.best?.(row);
      if (!best) return false;
      const own = this.#rows[row] ??= {
        ids: new Uint32Array(MOST_BEST),
        logits: new Float32Array(MOST_BEST),
        count: 0,
      };
      own.count = best.count;
      for (let i = 0; i < best.count; i++) {
        own.ids[i] = best.ids[i]!;
        own.logits[i] = best.logits[i]!;
      }
    }
    if (wish) this.#count = rows;
    return wish !== undefined;
  }

  best(row: number): BestLogits | undefined {
    return row < this.#count ? this.#rows[row] : undefined;
  }

  isGone(row: number): boolean {
    return row < this.#count;
  }
}
