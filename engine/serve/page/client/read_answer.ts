// Puts the pieces of an answer into its message, and measures how it goes.

import type { AnswerFigures, Message } from "./conversation.ts";
import type { Piece } from "./piece.ts";

/** What is known of an answer's course so far. */
class Course {
  readonly #start = performance.now();
  /** When the first piece came, and the first one behind the thinking. */
  #first: number | undefined;
  #thought: number | undefined;
  /** Tokens as far as the pieces tell; the server's own count comes at the end. */
  #tokens = 0;
  #last: Piece = {};

  take(piece: Piece, { thinking }: Message): void {
    const now = performance.now();
    const hasText = piece.text !== undefined;
    if (hasText || piece.thinking !== undefined) {
      this.#first ??= now;
      this.#tokens += piece.tokens?.length ?? 1;
    }
    if (hasText && thinking) this.#thought ??= now;
    this.#last = { ...this.#last, ...piece };
  }

  figures(): AnswerFigures {
    const { usage, seed } = this.#last;
    const tokens = usage?.completion ?? this.#tokens;
    const perSecond = this.#last.perSecond ?? this.#measured(tokens);
    return {
      tokens,
      ...perSecond !== undefined && { perSecond },
      ...this.#first !== undefined && { firstMs: this.#first - this.#start },
      ...this.#thought !== undefined && { thinkingMs: this.#thought - this.#start },
      ...usage && { context: usage.total },
      ...seed !== undefined && { seed },
    };
  }

  /** Tokens a second by the page's own clock, until the server says it. */
  #measured(tokens: number): number | undefined {
    const ms = this.#first === undefined ? 0 : performance.now() - this.#first;
    return tokens > 1 && ms > 0 ? (tokens - 1) / ms * 1000 : undefined;
  }
}

/**
 * Reads an answer to its end; `grew` is called after each piece.
 *
 * @throws {ApiError | DOMException} What the pieces throw; what has come stays in the message.
 */
export async function readAnswer(
  pieces: AsyncIterable<Piece>,
  message: Message,
  { grew }: { readonly grew: () => void },
): Promise<void> {
  const course = new Course();
  try {
    for await (const piece of pieces) {
      course.take(piece, message);
      message.text += piece.text ?? "";
      if (piece.thinking) message.thinking = (message.thinking ?? "") + piece.thinking;
      if (piece.tokens) (message.tokens ??= []).push(...piece.tokens);
      if (piece.finish) message.finish = piece.finish;
      message.figures = course.figures();
      grew();
    }
  } finally {
    message.figures = course.figures();
  }
}
