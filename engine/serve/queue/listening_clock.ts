// How long somebody has listened. Who stands still for a while (a stopped process, a machine that slept, a long step)
// hears nothing in that time, and must not take it for the others' silence: what they said lies there unread.

/** A clock that goes on only while its owner listens. */
export class ListeningClock {
  readonly #turnMs: number;
  readonly #time: () => number;
  #listened = 0;
  #turnedAt: number;

  /**
   * @param turnMs How often `turn` is called; no more than this counts between two calls.
   * @param time Milliseconds; a clock that only goes forward.
   */
  constructor(turnMs: number, time: () => number = () => performance.now()) {
    this.#turnMs = turnMs;
    this.#time = time;
    this.#turnedAt = time();
  }

  /** Milliseconds that were listened. */
  get now(): number {
    return this.#listened + Math.min(this.#time() - this.#turnedAt, this.#turnMs);
  }

  /** Its owner listens: messages that had come were heard, or are heard next. */
  turn(): void {
    this.#listened = this.now;
    this.#turnedAt = this.#time();
  }
}
