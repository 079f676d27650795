// What a sampling step may know of the past: the tokens so far, and where the prompt ends. Repetition
// penalties count both parts, frequency and presence penalties the generated one only; what of the
// prompt came from a cache makes no difference.

/**
 * Tokens of the sequence, prompt first, newest last.
 * @category Sampling
 */
export interface TokenHistory {
  /** Token ids; may be a larger buffer, of which the first `length` count. */
  readonly tokens: ArrayLike<number>;
  /** Number of tokens so far. */
  readonly length: number;
  /** How many of them are the prompt. */
  readonly promptLength: number;
}

/** A history without tokens. */
export const EMPTY_HISTORY: TokenHistory = { tokens: [], length: 0, promptLength: 0 };
