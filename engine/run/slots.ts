// Which slots of a device's states are taken. A slot is one session's copy of every state; all copies
// are allocated when a plan is prepared, so that opening a session allocates nothing.

import { ResourceError } from "../errors.ts";

/** Slots 0..count-1. */
export interface SlotPool {
  readonly count: number;
  /** The lowest free slot, now taken; its states are zero. @throws {ResourceError} If all are taken. */
  open(): number;
  /** Frees a slot. @throws {RangeError} If it is not taken. */
  close(slot: number): void;
  /** @throws {RangeError} If the slot is not taken. */
  check(slot: number): void;
  /** Says that something wrote into all slots, open or not. */
  markUsed(): void;
}

/** A pool with all slots free. `clear` makes the states of one zero again that was open before. */
export function createSlotPool(count: number, clear: (slot: number) => void = () => {}): SlotPool {
  if (!Number.isInteger(count) || count < 0) {
    throw new RangeError(`Cannot make ${count} slots: must be an integer of at least 0`);
  }
  const taken = new Array<boolean>(count).fill(false);
  const used = new Array<boolean>(count).fill(false);
  const check = (slot: number) => {
    if (!taken[slot]) throw new RangeError(`Cannot use slot ${slot}: no session has it open`);
  };
  return {
    count,
    open() {
      const slot = taken.indexOf(false);
      if (slot < 0) {
        throw new ResourceError(`Cannot open a session: all ${count} slots are taken`, {
          remedy: "Dispose a session or load the model with more `sessions`",
        });
      }
      taken[slot] = true;
      if (used[slot]) clear(slot);
      used[slot] = true;
      return slot;
    },
    close(slot) {
      check(slot);
      taken[slot] = false;
    },
    check,
    markUsed: () => void used.fill(true),
  };
}
