// Rows of logits that a step has left on the device, because the best of them were all that was wanted. A row's slot may
// ask for it until that slot goes on; if another one's step is about to take its place, whoever has the slot open is
// given it first, where the device has it at hand. Some devices leave none.

import type { BestLogits, PreparedPlan } from "./backend.ts";
import type { Step } from "./step.ts";

/** Rows that the last step has left. */
export interface LeftRows {
  /** Forgets a slot's row. */
  reset(slot: number, keep?: (logits: Float32Array) => void): void;
  /** To be called before a step. */
  makeWay(step: Step): void;
  /** To be called behind a step. */
  note(step: Step, best: (row: number) => BestLogits | undefined): void;
  /** The slot's last row, or the one so many rows before it, if the step left that one, too. */
  of(slot: number, back?: number): Float32Array | undefined;
}

/** Looks after the rows of all slots; `logits` gives one by its place in the step. */
export function createLeftRows(
  { keepsRows }: PreparedPlan,
  { slotCount, logits, isGone }: {
    readonly slotCount: number;
    readonly logits: (row: number) => Float32Array;
    readonly isGone: (row: number) => boolean;
  },
): LeftRows {
  const keepers = new Array<((logits: Float32Array) => void) | undefined>(slotCount);
  /** By slot, the last row of the step, −1: none was left; and the first of those that were left. */
  const rows = new Int32Array(slotCount).fill(-1), firsts = new Int32Array(slotCount);
  let count = 0;
  return {
    reset(slot, keep) {
      keepers[slot] = keep;
      rows[slot] = -1;
    },
    makeWay(step) {
      if (count === 0) return;
      for (let row = 0; row < step.count; row++) rows[step.slots[row]!] = -1;
      for (let slot = 0; keepsRows && slot < slotCount; slot++) {
        if (rows[slot]! >= 0) keepers[slot]?.(logits(rows[slot]!));
      }
      rows.fill(-1);
      count = 0;
    },
    note(step, best) {
      for (let row = 0; row < step.count; row++) {
        if (step.wanted[row]! <= 0 || !best(row) || isGone(row)) continue;
        const slot = step.slots[row]!;
        if (rows[slot]! < 0) firsts[slot] = row;
        rows[slot] = row;
        count++;
      }
    },
    of(slot, back = 0) {
      const row = rows[slot]! - back;
      return rows[slot]! >= 0 && row >= firsts[slot]! ? logits(row) : undefined;
    },
  };
}
