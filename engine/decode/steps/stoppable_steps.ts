// How long a step may be that somebody might stop. A step of a device that computes in the caller's thread cannot be
// broken off, and nothing is heard meanwhile, neither Ctrl-C nor a timer: so where a prompt has a signal, its steps are
// so short that an abort acts within a tenth of a second. Rows have the bits of any other step (WASM's sums do not
// depend on what shares them), so that this changes nothing but time: steps of 48 rows take a few percent more than
// those of 256. A model whose shortest steps are longer is stopped behind the one at hand.

import type { StepRoom } from "./step_shares.ts";

/** Milliseconds of a step: with what stands between two of them well below a tenth of a second. */
const STEP_MS = 60;
/** Rows of the first step, before anything is known. */
const FIRST_ROWS = 32;
/** Fewer rows cost products more than they save; they also come in whole tiles. */
const LEAST_ROWS = 32, TILE = 16;

/** Limits the rows of steps by how long those before took. */
export class StoppableSteps {
  readonly #room: StepRoom;
  /** Handed out for every step, so that none is made for one. */
  readonly #short: { rows: number; readonly wanted: number };
  #msPerRow: number | undefined;

  /** @param room What a step may hold at most. */
  constructor(room: StepRoom) {
    this.#room = room;
    this.#short = { ...room };
  }

  /** What the next step may hold, where somebody might stop it; valid until it is asked for again. */
  get room(): StepRoom {
    const wanted = this.#msPerRow === undefined ? FIRST_ROWS : STEP_MS / this.#msPerRow;
    const tiles = Math.max(LEAST_ROWS, Math.floor(wanted / TILE) * TILE);
    this.#short.rows = Math.min(tiles, this.#room.rows);
    return this.#short;
  }

  /** Notes how long a step of so many rows took the caller's thread. */
  ran(rows: number, ms: number): void {
    if (rows >= TILE) this.#msPerRow = ms / rows;
  }
}
