// A grammar on one text of one tokenizer: which tokens may follow, and what has been taken. Control tokens are never
// allowed; the end of the text is, where the grammar may end. Every token taken can be taken back, so that tokens can
// be tried.

import { UnsupportedError } from "../../errors.ts";
import type { Tokenizer } from "../tokenizer_types.ts";
import type { Threads } from "./frames.ts";
import type { Grammar } from "./grammar.ts";
import { wordsOf } from "./leaf_mask.ts";
import { Reader } from "./reader.ts";
import { type MaskInput, maskTokens } from "./token_mask.ts";
import { type TokenTrie, trieOf } from "./token_trie.ts";

/** A grammar on one text. */
export interface Constraint {
  /** Tokens taken so far, an end of the text included. */
  readonly length: number;
  /** Whether the text may end here. */
  readonly canEnd: boolean;
  /** Whether it must: nothing may follow. */
  readonly isComplete: boolean;
  /** Whether any token may follow just now; absent: not. */
  readonly isFree?: boolean;
  /**
   * The tokens that may follow, by bit: `mask()[id >> 5] >> (id & 31) & 1`. Tokens that end a generation are among them
   * where the text may end. Valid until a token is taken or taken back.
   *
   * @throws {UnsupportedError} If the vocabulary has no token with which the text can go on.
   */
  mask(): Uint32Array;
  /** Whether the last mask took a search through the vocabulary: a token is known to be allowed much sooner. Absent: no. */
  readonly isSearched?: boolean;
  /** Whether a token may follow; cheaper than a mask. */
  allows(id: number): boolean;
  /**
   * Takes a token.
   *
   * @throws {RangeError} If it may not follow.
   */
  accept(id: number): void;
  /** Takes the last tokens back. */
  rollback(count: number): void;
}

/** What a constraint needs besides its grammar. */
export interface ConstraintOptions {
  readonly tokenizer: Tokenizer;
  /** How many blanks are dropped from the front of the first token, as `Tokenizer.leadingBlanks` says. Default 0. */
  readonly leadingBlanks?: number;
}

/** Starts a text. */
export function createConstraint(grammar: Grammar, options: ConstraintOptions): Constraint {
  return new TextConstraint(grammar, options);
}

interface Moment {
  readonly threads: Threads;
  readonly length: number;
  readonly hasEnded: boolean;
}

class TextConstraint implements Constraint {
  readonly #tokenizer: Tokenizer;
  readonly #trie: TokenTrie;
  readonly #reader: Reader;
  readonly #leadingBlanks: number;
  /** The present one is the last. */
  readonly #moments: Moment[];
  readonly #tokens: Uint32Array;
  #isFresh = false;
  #isSearched = false;

  constructor(grammar: Grammar, { tokenizer, leadingBlanks = 0 }: ConstraintOptions) {
    this.#tokenizer = tokenizer;
    this.#trie = trieOf(tokenizer);
    this.#tokens = new Uint32Array(wordsOf(this.#trie));
    this.#reader = new Reader(grammar.root);
    this.#leadingBlanks = leadingBlanks;
    this.#moments = [{ threads: this.#reader.start(), length: 0, hasEnded: false }];
  }

  get #now(): Moment {
    return this.#moments.at(-1)!;
  }

  get length(): number {
    return this.#moments.length - 1;
  }

  get canEnd(): boolean {
    return this.#now.threads.canEnd && !this.#now.hasEnded;
  }

  get isComplete(): boolean {
    return this.#now.hasEnded || this.#now.threads.canEnd && this.#now.threads.list.length === 0;
  }

  get isSearched(): boolean {
    return this.#isSearched;
  }

  mask(): Uint32Array {
    if (this.#isFresh) return this.#tokens;
    const tokens = this.#tokens.fill(0);
    const { threads, hasEnded } = this.#now;
    if (!hasEnded) {
      const input: MaskInput = {
        ...{ reader: this.#reader, trie: this.#trie, tokens },
        dropped: this.length === 0 ? this.#leadingBlanks : 0,
      };
      maskTokens(threads, input);
      this.#isSearched = input.isSearched ?? false;
      if (threads.canEnd) {
        for (const id of this.#tokenizer.endOfGenerationIds) tokens[id >> 5]! |= 1 << (id & 31);
      }
    }
    this.#isFresh = true;
    if (!hasEnded && !threads.canEnd && tokens.every((word) => word === 0)) throw this.#stuck();
    return tokens;
  }

  allows(id: number): boolean {
    if (this.#isFresh) return (this.#tokens[id >> 5]! >> (id & 31) & 1) === 1;
    const { length } = this.#reader;
    const next = this.#after(id);
    this.#reader.length = length;
    return next !== undefined;
  }

  accept(id: number): void {
    const next = this.#after(id);
    if (!next) {
      this.#reader.length = this.#now.length;
      throw new RangeError(
        `Cannot take token ${id} (${JSON.stringify(this.#tokenizer.tokenText(id))}): ` +
          "the grammar does not allow it here",
      );
    }
    this.#moments.push(next);
    this.#isFresh = false;
  }

  rollback(count: number): void {
    if (!Number.isInteger(count) || count < 0 || count > this.length) {
      throw new RangeError(`Cannot take back ${count} tokens of ${this.length}`);
    }
    this.#moments.length -= count;
    this.#reader.length = this.#now.length;
    if (count > 0) this.#isFresh = false;
  }

  // The moment behind a token; its bytes stand in the reader's text then.
  #after(id: number): Moment | undefined {
    const { threads, hasEnded, length } = this.#now;
    const tokenizer = this.#tokenizer;
    if (hasEnded) return undefined;
    if (tokenizer.endOfGenerationIds.has(id)) {
      return threads.canEnd ? { threads, length, hasEnded: true } : undefined;
    }
    if (tokenizer.isSpecial(id)) return undefined;
    const bytes = tokenizer.tokenBytes(id);
    let at = 0;
    if (this.length === 0) {
      while (at < this.#leadingBlanks && at < bytes.length && bytes[at] === 0x20) at++;
    }
    // A first token of nothing but dropped blanks is one that says nothing.
    if (at === bytes.length) return at > 0 ? { threads, length, hasEnded: false } : undefined;
    let now = threads;
    for (; at < bytes.length; at++) {
      this.#reader.push(bytes[at]!);
      now = this.#reader.step(now, bytes[at]!);
      if (now.list.length === 0 && (!now.canEnd || at < bytes.length - 1)) return undefined;
    }
    return { threads: now, length: this.#reader.length, hasEnded: false };
  }

  #stuck(): UnsupportedError {
    const { text, length } = this.#reader;
    const before = new TextDecoder().decode(text.subarray(Math.max(0, length - 20), length));
    return new UnsupportedError(
      `the vocabulary has no token with which the grammar can go on behind ${
        JSON.stringify(before)
      }`,
    );
  }
}
