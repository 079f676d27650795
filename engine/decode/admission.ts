// Who may begin when a model has no place for another query: by priority, and among equals first come, first served.
// Whoever waits looks again each time something is given back.

/** One who waits. */
interface Waiting {
  readonly priority: number;
  /** Whether it got in; throws if it never will. */
  tryEnter(): boolean;
}

/** The line before a model's places. */
export class Admission {
  readonly #waiting: Waiting[] = [];

  /** How many wait. */
  get length(): number {
    return this.#waiting.length;
  }

  /**
   * Enters when it can.
   *
   * @param tryEnter Gives what it got, or undefined if there is no place yet; what it throws rejects.
   * @throws The signal's reason, if that fires while it waits.
   */
  async enter<T extends object>(
    tryEnter: () => T | undefined,
    { priority, signal }: { readonly priority: number; readonly signal: AbortSignal },
  ): Promise<T> {
    signal.throwIfAborted();
    if (!this.#waiting.some((other) => other.priority >= priority)) {
      const got = tryEnter();
      if (got) return got;
    }
    return await new Promise<T>((resolve, reject) => {
      const leave = (settle: () => void) => {
        signal.removeEventListener("abort", abort);
        this.#waiting.splice(this.#waiting.indexOf(one), 1);
        settle();
      };
      const abort = () => {
        leave(() => reject(signal.reason));
        this.look();
      };
      const one: Waiting = {
        priority,
        tryEnter() {
          try {
            const got = tryEnter();
            if (got) leave(() => resolve(got));
            return got !== undefined;
          } catch (error) {
            leave(() => reject(error));
            return true;
          }
        },
      };
      const behind = this.#waiting.findIndex((other) => other.priority < priority);
      this.#waiting.splice(behind < 0 ? this.#waiting.length : behind, 0, one);
      signal.addEventListener("abort", abort, { once: true });
    });
  }

  /** Lets in whoever can, in order; to be called when something was given back. */
  look(): void {
    while (this.#waiting[0]?.tryEnter());
  }
}
