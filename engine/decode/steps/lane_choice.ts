// Which lane takes the rows of a slot, where several steps may be under way at once: as many lanes as keep all groups of
// devices at work, and more of them only where each has a step of rows that is worth reading weights for. A slot waits for
// one run at a time, so it may go to another lane from run to run.

/** Rows of a step, at least, before a lane more than necessary is taken. */
export const WORTH_ROWS = 8;
/** Rounds whose most slots count: lanes do not ask in step. */
const ROUNDS = 4;

/** Chooses by how many slots are asking: a round ends when one of them asks again. */
export class LaneChoice {
  readonly #least: number;
  readonly #most: number;
  readonly #asked = new Set<number>();
  readonly #rounds: number[] = new Array(ROUNDS).fill(0);
  #round = 0;

  constructor({ least, most }: { readonly least: number; readonly most: number }) {
    this.#least = Math.min(least, most);
    this.#most = most;
  }

  /** The lane of a slot that asks. */
  laneOf(slot: number): number {
    if (this.#asked.has(slot)) {
      this.#rounds[this.#round++ % ROUNDS] = this.#asked.size;
      this.#asked.clear();
    }
    this.#asked.add(slot);
    let asking = this.#asked.size;
    for (const count of this.#rounds) asking = Math.max(asking, count);
    const worth = Math.floor(asking / WORTH_ROWS);
    return slot % Math.min(this.#most, Math.max(this.#least, worth));
  }
}
