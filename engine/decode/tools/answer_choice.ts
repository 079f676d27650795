// An answer that is a text within a grammar or calls of tools, whichever the model begins: both go on while both can.
// Behind thinking that the template begins, calls may begin where it ends.

import type { Constraint } from "../../text/grammar/constraint.ts";
import type { Tokenizer } from "../../text/tokenizer_types.ts";
import { binary } from "./call_constraint.ts";

/** What the answer may be. */
export interface AnswerChoices {
  readonly tokenizer: Pick<Tokenizer, "tokenBytes" | "vocabSize">;
  /** The text, thinking included. */
  readonly text: Constraint;
  /** Starts calls. */
  startCalls(): Constraint;
  /** What ends the thinking. */
  readonly closes?: string | undefined;
}

/** What was still possible behind a token. */
interface Moment {
  readonly isText: boolean;
  readonly isCalls: boolean;
  /** The end of the thinking so far, a byte a character. */
  readonly tail: string;
}

/** One of the two. */
export class AnswerChoice implements Constraint {
  readonly #choices: AnswerChoices;
  readonly #closes: string;
  readonly #tokens: Uint32Array;
  /** The present one is the last. */
  readonly #moments: Moment[];
  #calls: { readonly constraint: Constraint; readonly start: number } | undefined;

  constructor(choices: AnswerChoices) {
    const { tokenizer, closes, startCalls } = choices;
    this.#choices = choices;
    this.#closes = closes === undefined ? "" : binary(new TextEncoder().encode(closes));
    this.#tokens = new Uint32Array(Math.ceil(tokenizer.vocabSize / 32));
    if (closes === undefined) this.#calls = { constraint: startCalls(), start: 0 };
    this.#moments = [{ isText: true, isCalls: closes === undefined, tail: "" }];
  }

  get length(): number {
    return this.#moments.length - 1;
  }

  get canEnd(): boolean {
    return this.#alive.some(({ canEnd }) => canEnd);
  }

  get isComplete(): boolean {
    return this.#alive.every(({ isComplete }) => isComplete);
  }

  get isFree(): boolean {
    return this.#alive.some(({ isFree }) => isFree);
  }

  mask(): Uint32Array {
    const [first, second] = this.#alive.map((one) => one.mask());
    if (!second) return first!;
    for (let word = 0; word < this.#tokens.length; word++) {
      this.#tokens[word] = first![word]! | second[word]!;
    }
    return this.#tokens;
  }

  allows(id: number): boolean {
    return this.#alive.some((one) => one.allows(id));
  }

  accept(id: number): void {
    const { text, tokenizer, startCalls } = this.#choices;
    const { isText: wasText, isCalls: wasCalls, tail } = this.#now;
    const calls = wasCalls ? this.#calls!.constraint : undefined;
    const isCalls = calls?.allows(id) ?? false;
    const isText = wasText && text.allows(id);
    if (isText || !isCalls) text.accept(id); // says why where neither allows it
    if (isCalls) calls!.accept(id);
    const isThinking = this.#calls === undefined;
    const more = isThinking ? tail + binary(tokenizer.tokenBytes(id)) : "";
    const at = isThinking ? more.lastIndexOf(this.#closes) : -1;
    const begins = at >= 0 && more.slice(at + this.#closes.length).trim() === "";
    this.#moments.push({
      ...{ isText, isCalls: isCalls || begins },
      tail: more.slice(-2 * this.#closes.length),
    });
    if (begins) this.#calls = { constraint: startCalls(), start: this.length };
  }

  rollback(count: number): void {
    if (!Number.isInteger(count) || count < 0 || count > this.length) {
      throw new RangeError(`Cannot take back ${count} tokens of ${this.length}`);
    }
    this.#moments.length -= count;
    const { text } = this.#choices;
    text.rollback(Math.max(0, text.length - this.length));
    if (!this.#calls) return;
    const { constraint, start } = this.#calls;
    if (this.length < start) this.#calls = undefined;
    else constraint.rollback(Math.max(0, constraint.length - (this.length - start)));
  }

  get #now(): Moment {
    return this.#moments.at(-1)!;
  }

  get #alive(): readonly Constraint[] {
    const { isText, isCalls } = this.#now;
    return [...isText ? [this.#choices.text] : [], ...isCalls ? [this.#calls!.constraint] : []];
  }
}
