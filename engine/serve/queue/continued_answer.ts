// An answer that several workers may write, one after the other, as one answer. Each begins it anew, with the tokens that
// were given before forced upon it, so it tells everything again; here what was told already is left out, by the index
// of tokens and by characters of texts, so it does not matter how either worker cuts its answer into parts.

import type { AnswerEvent, AnswerPart } from "../engine.ts";
import { JobError } from "../job_error.ts";

/** What has been told of an answer. */
export class ContinuedAnswer {
  readonly #ids: number[] = [];
  readonly #calls = new Map<number, string>();
  #isStarted = false;
  #text = 0;
  #thinking = 0;
  /** What the present worker has told. */
  #again = { tokens: 0, text: 0, thinking: 0 };

  /** Tokens that were given. */
  get ids(): readonly number[] {
    return this.#ids;
  }

  /** Another worker begins. */
  restart(): void {
    this.#again = { tokens: 0, text: 0, thinking: 0 };
  }

  /**
   * What of an event is new.
   *
   * @throws {JobError} If the worker tells another answer than the one before it.
   */
  take(event: AnswerEvent): AnswerEvent | undefined {
    if (event.kind === "part") return this.#part(event);
    if (event.kind === "end") return event;
    if (this.#isStarted) return undefined;
    this.#isStarted = true;
    return event;
  }

  #part(part: AnswerPart): AnswerPart | undefined {
    const again = this.#again;
    const known = Math.min(part.tokens.length, Math.max(0, this.#ids.length - again.tokens));
    this.#check(part, known);
    const tokens = part.tokens.slice(known);
    const text = part.text.slice(Math.max(0, this.#text - again.text));
    const thinking = part.thinking?.slice(Math.max(0, this.#thinking - again.thinking));
    const isAgain = known > 0 && tokens.length === 0;
    const calls = isAgain ? undefined : part.calls?.filter(({ index, name, argumentsText }) => {
      const call = `${name} ${argumentsText}`;
      if (this.#calls.get(index) === call) return false;
      this.#calls.set(index, call);
      return true;
    });
    again.tokens += part.tokens.length;
    again.text += part.text.length;
    again.thinking += part.thinking?.length ?? 0;
    const at = this.#ids.length;
    for (const { id } of tokens) this.#ids.push(id);
    this.#text = Math.max(this.#text, again.text);
    this.#thinking = Math.max(this.#thinking, again.thinking);
    if (tokens.length === 0 && text === "" && !thinking && !calls?.length) return undefined;
    return {
      ...{ kind: "part", at, tokens, text },
      ...thinking && { thinking },
      ...calls?.length && { calls },
    };
  }

  #check({ tokens }: AnswerPart, known: number): void {
    for (let i = 0; i < known; i++) {
      if (tokens[i]!.id === this.#ids[this.#again.tokens + i]) continue;
      throw new JobError({
        status: 500,
        message: "A worker went on with another answer than the one that was begun: do all " +
          "workers serve the same file under this name?",
        code: "answers_differ",
      });
    }
  }
}
