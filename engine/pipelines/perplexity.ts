// How well a model predicts a text (spec IF-24): non-overlapping windows of ids, each scored on its own
// from an empty context; within a window every token is predicted from those before it, its first token
// only where a beginning-of-text token stands in front. Perplexity is exp(Σ nll / scored). Logits are read
// row by row while they are computed, so memory does not grow with the text.

import { logProbability } from "../decode/sampling/log_softmax.ts";
import type { Session } from "../decode/session.ts";
import type { Model } from "../decode/model.ts";
import { checkOptionKeys, type OptionKeys } from "../option_keys.ts";

/**
 * Options of {@linkcode perplexity}.
 * @category Text
 */
export interface PerplexityOptions {
  /** Tokens of a window, those in front of it counted. Default 512. */
  readonly window?: number;
  /** Like `window`, from one window to the next; where it is smaller they overlap. Default: `window`. */
  readonly stride?: number;
  /** Ids at the beginning of each window. Default: what the tokenizer puts in front of a text. */
  readonly bos?: readonly number[];
  /** An open session to use; its tokens are forgotten. Default: a new one. */
  readonly session?: Session;
  /** Most windows to score; default all. */
  readonly windows?: number;
  /** Stops between two chunks. */
  readonly signal?: AbortSignal;
  /** Called after each window. */
  readonly onWindow?: (window: WindowLoss) => void;
}

const KEYS: OptionKeys<PerplexityOptions> = {
  window: true,
  stride: true,
  bos: true,
  session: true,
  windows: true,
  signal: true,
  onWindow: true,
};

/**
 * Loss of one window.
 * @category Text
 */
export interface WindowLoss {
  /** Number of the window, from 0. */
  readonly index: number;
  /** Sum of -ln p over its scored tokens. */
  readonly nll: number;
  /** Scored tokens. */
  readonly scored: number;
}

/**
 * Result of {@linkcode perplexity}.
 * @category Text
 */
export interface PerplexityResult {
  /** exp(nll / scored). */
  readonly perplexity: number;
  /** Standard error of the perplexity, from the spread over tokens. */
  readonly standardError: number;
  /** Sum of -ln p over all scored tokens. */
  readonly nll: number;
  /** Scored tokens. */
  readonly scored: number;
  /** Loss of each window. */
  readonly windows: readonly WindowLoss[];
}

/**
 * Perplexity of a text.
 *
 * Load the model with `logitRows` of 32 or more: one row of logits a step makes this many times slower.
 *
 * @param text Text, or its token ids.
 * @throws {RangeError} On a bad option, or if no token can be scored.
 * @throws {ResourceError} If a window is longer than the context.
 *
 * @example
 * ```ts
 * import { load, perplexity } from "@troodon/troodon";
 * import { assertEquals } from "@std/assert";
 *
 * const path = "model.gguf";
 * using model = await load(path, { logitRows: 16 });
 * const { scored, windows } = await perplexity(model, [5, 6, 7, 8, 9], { window: 4, bos: [] });
 * assertEquals([scored, windows.length], [3, 2]); // 3 of the first window, none of the second
 * ```
 * @category Text
 */
export async function perplexity(
  model: Model,
  text: string | ArrayLike<number>,
  options: PerplexityOptions = {},
): Promise<PerplexityResult> {
  checkOptionKeys(options, { of: "perplexity()", known: KEYS });
  const { window = 512, stride = window, windows = Infinity, signal, onWindow } = options;
  positive("window", window);
  positive("stride", stride);
  if (windows !== Infinity) positive("windows", windows);
  const ids = typeof text === "string" ? model.tokenizer.encode(text, { addSpecial: false }) : text;
  const bos = options.bos ?? model.tokenizer.prefixIds;
  const [length, step] = [window - bos.length, stride - bos.length];
  if (length < 1 || step < 1) {
    throw new RangeError(
      `Cannot use window ${window} and stride ${stride}: ${bos.length} are given`,
    );
  }
  const done: WindowLoss[] = [];
  let nll = 0, scored = 0, squares = 0;
  using opened = options.session ? undefined : model.createSession();
  const session = options.session ?? opened!;
  for (let start = 0; start < ids.length && done.length < windows; start += step) {
    const tokens = [...bos, ...Array.prototype.slice.call(ids, start, start + length)];
    let windowNll = 0;
    if (tokens.length > 1) {
      session.rewind(0);
      await session.eval(tokens.slice(0, -1), {
        signal,
        onLogits(logits, index) {
          // Tokens in front are given, not predicted.
          if (index + 1 < bos.length) return;
          const loss = -logProbability(logits, tokens[index + 1]!);
          windowNll += loss;
          squares += loss * loss;
        },
      });
    }
    const count = Math.max(0, tokens.length - Math.max(1, bos.length));
    const result = { index: done.length, nll: windowNll, scored: count };
    done.push(result);
    onWindow?.(result);
    nll += windowNll;
    scored += count;
  }
  if (scored === 0) throw new RangeError("Cannot score a text of fewer than two tokens");
  const value = Math.exp(nll / scored);
  const variance = Math.max(0, squares / scored - (nll / scored) ** 2) / Math.max(1, scored - 1);
  return {
    perplexity: value,
    standardError: value * Math.sqrt(variance),
    nll,
    scored,
    windows: done,
  };
}

function positive(name: string, value: number): void {
  if (Number.isInteger(value) && value >= 1) return;
  throw new RangeError(`Cannot use ${name} ${value}: it is an integer of at least 1`);
}
