// Who may come in: so many answers at once, and none when the server is about to stop.

import { ApiError } from "./api_error.ts";

/** Seconds after which it is worth to ask again. */
const RETRY_AFTER = "1";

/** Places for answers. */
export class Admission {
  readonly #most: number;
  #taken = 0;
  #calls = 0;
  #isDraining = false;
  #idle: (() => void)[] = [];

  constructor(most: number) {
    this.#most = most;
  }

  /** Whether nobody is let in any more. */
  get isDraining(): boolean {
    return this.#isDraining;
  }

  /**
   * Begins a call; what it returns ends it.
   *
   * @param asks Whether it wants something of the engine: such calls are refused while draining.
   * @throws {ApiError} 503 while draining.
   */
  enter({ asks }: { readonly asks: boolean }): () => void {
    if (asks && this.#isDraining) {
      throw new ApiError(503, "The server is about to stop", {
        code: "draining",
        headers: { "retry-after": "5", connection: "close" },
      });
    }
    if (!asks) return () => {};
    this.#calls++;
    return () => {
      if (--this.#calls === 0) { for (const tell of this.#idle.splice(0)) tell(); }
    };
  }

  /**
   * Takes places; what it returns gives them back.
   *
   * @throws {ApiError} 429 if there are fewer. 400 if there are never so many.
   */
  take(count: number): () => void {
    if (count > this.#most) {
      throw new ApiError(
        400,
        `This asks for ${count} answers at once, and ${this.#most} is the limit`,
        {
          code: "too_many_answers",
        },
      );
    }
    if (this.#taken + count > this.#most) {
      throw new ApiError(429, `The server is busy: ${this.#taken} answers are under way`, {
        code: "rate_limit_exceeded",
        headers: { "retry-after": RETRY_AFTER },
      });
    }
    this.#taken += count;
    return () => this.#taken -= count;
  }

  /** Lets nobody in any more; resolves when all calls have ended. */
  async drain(): Promise<void> {
    this.#isDraining = true;
    if (this.#calls > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }
}
