// Options of generate() and chat(): its own here, those of sampling in sampling/sampler_options.ts, which also
// refuses names that nobody knows.

import type { Model } from "./model.ts";
import type { PictureSource } from "./pictures/picture_source.ts";
import type { SamplerOptions } from "./sampling/sampler_options.ts";
import { resolveStructure, type Structure, type StructureOptions } from "./structured.ts";

/**
 * Who proposes tokens: another model, the text itself, or also earlier answers.
 * @category Text
 */
export type DraftSource = Model | "lookup" | "history";

/**
 * Who proposes tokens, and how many of them are checked at once.
 * @category Text
 */
export interface DraftOptions {
  /** Who proposes. */
  readonly from: DraftSource;
  /**
   * So many tokens are checked in every step, as far as so many are proposed: below the model's `logitRows`. Default: as
   * many as pay by what is measured, 0 where none do.
   */
  readonly k?: number;
}

/**
 * What is known of a generation when its prompt has been computed.
 * @category Text
 */
export interface GenerationStart {
  /** Tokens of the prompt, those that an encoder reads among them. */
  readonly promptTokens: number;
  /** Those of them that were computed; the others were found in the cache. */
  readonly prefillTokens: number;
  /** Seed of the random numbers. */
  readonly seed: number;
}

/**
 * Options of a generation.
 * @category Text
 */
export interface GenerateOptions extends SamplerOptions, StructureOptions {
  /** Most tokens to take. Default 1024. */
  readonly maxTokens?: number;
  /** Texts at which the answer ends; they are not part of it. */
  readonly stop?: readonly string[];
  /** Whether to go on after the model's own end of text. Default false. */
  readonly ignoreEos?: boolean;
  /**
   * Ends the generation before the next token or chunk of the prompt; not an error. A step that runs keeps the thread on
   * `wasm` and `reference`, so that it is seen behind it: with a signal, steps of a prompt that is alone are therefore as
   * long as 60 ms (an abort acts within a tenth of a second), or 32 rows where the model is so large that they take longer.
   */
  readonly signal?: AbortSignal;
  /** Called when the prompt has been computed, before the first token; in a chat with tools once a round. */
  readonly onStart?: (start: GenerationStart) => void;
  /** Gives log-probabilities with every token, and so many alternatives (0 to 100). */
  readonly logprobs?: number;
  /**
   * What happens when the context is full before the answer has ended:
   * - `error` (default): a ResourceError
   * - `stop`: the answer ends with finishReason `context`
   * - `slide`: the first `keep` tokens stay, the older half of the others is dropped, and what is left is
   *   computed anew, so the logits are those of a fresh evaluation of the kept tokens
   */
  readonly onContextFull?: "error" | "stop" | "slide";
  /**
   * Leading tokens that `slide` never drops. Default: in a chat the system messages, else what the
   * tokenizer put in front of the prompt.
   */
  readonly keep?: number;
  /**
   * How much each adapter counts, by name; those not named count nothing. Default: the scales with which
   * the model was loaded. On a session whose adapters this changes all tokens are computed again.
   */
  readonly adapters?: Readonly<Record<string, number>>;
  /**
   * Who proposes tokens, several of which are then computed in one step: `lookup` what followed the last tokens earlier
   * in the text, `history` also what followed them in answers that this model gave with `history`, a smaller
   * model with the same vocabulary what it would write. The answer stays what it would be: greedy ones are the same,
   * drawn ones have the same distribution. It pays where many proposals are right, as in answers that copy; as many
   * are checked as pay, and none where that is slower.
   */
  readonly draft?: DraftSource | DraftOptions;
  /**
   * Before whom it goes where several answers are written at once: `"high"` (2), `"normal"` (0, the default), `"low"`
   * (-2), or a whole number from -8 to 8. It gets a session before those of a lower priority that wait for one, comes
   * before them when a step cannot take all, and each level doubles the share of a step that a long prompt gets. Nobody
   * starves: who was passed over by four steps comes first in the next one.
   */
  readonly priority?: "high" | "normal" | "low" | number;
  /** Whether texts of control tokens in the prompt become those tokens. Default false. */
  readonly special?: boolean;
  /**
   * Of models that see: pictures in the prompt, by path, address, the bytes of a file, or pixels. They stand where the prompt
   * has the model's mark of a picture (`<image>`, …), as often as there are pictures, or in front of it where it has none.
   */
  readonly images?: readonly PictureSource[];
  /**
   * The first tokens of the answer, which are taken whatever the sampler would take: an answer that was begun goes on
   * with the same seed as if it had not been left. They are given as all tokens are. Not with a model as `draft`.
   */
  readonly forced?: readonly number[];
}

/** Own options, complete; the rest are for the sampler. */
export interface ResolvedGenerateOptions {
  readonly maxTokens: number;
  readonly stop: readonly string[];
  readonly ignoreEos: boolean;
  readonly signal: AbortSignal | undefined;
  readonly onStart: ((start: GenerationStart) => void) | undefined;
  readonly logprobs: number | undefined;
  readonly onContextFull: "error" | "stop" | "slide";
  readonly keep: number | undefined;
  readonly special: boolean;
  readonly priority: number;
  readonly adapters: Readonly<Record<string, number>> | undefined;
  /** Not checked: that takes the model (speculate/draft_option.ts). */
  readonly draft: DraftSource | DraftOptions | undefined;
  readonly forced: readonly number[];
  /** What binds the answer. */
  readonly structure: Structure | undefined;
  readonly sampler: SamplerOptions;
}

const PRIORITIES: Readonly<Record<string, number>> = { high: 2, normal: 0, low: -2 };
const MOST_PRIORITY = 8;
const CONTEXT_RULES = ["error", "stop", "slide"];

/**
 * Checks and completes options.
 *
 * @throws {RangeError} Naming the option, its value and what is allowed.
 * @throws {TypeError} If `stop` is no list of texts. @throws {FormatError | UnsupportedError} See
 * {@linkcode resolveStructure}.
 */
export function resolveGenerateOptions(options: GenerateOptions): ResolvedGenerateOptions {
  const {
    maxTokens = 1024,
    stop = [],
    ignoreEos = false,
    signal,
    onStart,
    logprobs,
    onContextFull = "error",
    keep,
    special = false,
    images: _shown,
    priority = "normal",
    adapters,
    draft,
    forced = [],
    schema,
    grammar,
    regex,
    ...sampler
  } = options;
  checkCount("maxTokens", { value: maxTokens, min: 0, max: 2 ** 31 });
  if (logprobs !== undefined) checkCount("logprobs", { value: logprobs, min: 0, max: 100 });
  if (keep !== undefined) checkCount("keep", { value: keep, min: 0, max: 2 ** 31 });
  if (!CONTEXT_RULES.includes(onContextFull)) {
    throw new RangeError(
      `Cannot use onContextFull "${onContextFull}": it is one of ${CONTEXT_RULES.join(", ")}`,
    );
  }
  if (!Array.isArray(stop) || !stop.every((text) => typeof text === "string" && text !== "")) {
    throw new TypeError("Cannot use stop: it is a list of texts that are not empty");
  }
  return {
    maxTokens,
    stop,
    ignoreEos,
    signal,
    onStart,
    logprobs,
    onContextFull,
    keep,
    special,
    priority: priorityOf(priority),
    adapters,
    draft,
    forced,
    structure: resolveStructure({ schema, grammar, regex }),
    sampler,
  };
}

function priorityOf(priority: string | number): number {
  const level = typeof priority === "number" ? priority : PRIORITIES[priority];
  if (Number.isInteger(level) && Math.abs(level!) <= MOST_PRIORITY) return level!;
  throw new RangeError(
    `Cannot use priority ${JSON.stringify(priority)}: it is one of ${
      Object.keys(PRIORITIES).join(", ")
    }, ` +
      `or an integer from -${MOST_PRIORITY} to ${MOST_PRIORITY}`,
  );
}

/** @throws {RangeError} If an option is no integer in its range. */
export function checkCount(
  name: string,
  { value, min, max }: { readonly value: number; readonly min: number; readonly max: number },
): void {
  if (Number.isInteger(value) && value >= min && value <= max) return;
  throw new RangeError(`Cannot use ${name} ${value}: it is an integer from ${min} to ${max}`);
}
