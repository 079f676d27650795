// fillMask(): what a masked language model puts in the place of its mask token.

import { type EncoderCallOptions, encodeSequences } from "../decode/encoder_run.ts";
import type { Model } from "../decode/model.ts";
import { encoderOf, maskIdOf, orderedScores, softmaxInPlace, tokensOf } from "./encoder_text.ts";
import { checkOptionKeys, type OptionKeys } from "../option_keys.ts";

/**
 * Options of {@linkcode fillMask}.
 * @category Encoders
 */
export interface FillMaskOptions extends EncoderCallOptions {
  /** How many candidates for each mask. Default 5. */
  readonly top?: number;
  /** Id that stands for a hidden word. Default: that of `[MASK]` or `<mask>` in the vocabulary. */
  readonly maskId?: number;
}

const FILL_KEYS: OptionKeys<FillMaskOptions> = {
  top: true,
  maskId: true,
  adapters: true,
  signal: true,
};

/**
 * A token for a mask.
 * @category Encoders
 */
export interface MaskCandidate {
  /** Token id. */
  readonly id: number;
  /** Its text as the vocabulary writes it; empty where the model has no tokenizer. */
  readonly token: string;
  /** Of all tokens of the vocabulary, 0 to 1. */
  readonly probability: number;
  /** Score before the softmax. */
  readonly logit: number;
}

/**
 * Candidates for every mask of a text, in the order of the masks, each list best first.
 *
 * @param model A masked language model.
 * @param text Text with mask tokens, or token ids with special tokens as the model wants them.
 * @throws {UnsupportedError} If the model has no head for masks.
 * @throws {RangeError} If the text has no mask, or on a bad option.
 *
 * @example
 * ```ts
 * import { fillMask, load } from "@troodon/troodon";
 * import { assertEquals } from "@std/assert";
 *
 * using model = await load("encoder");
 * const [first] = await fillMask(model, [15, 47, 4, 30, 104], { maskId: 4, top: 2 });
 * assertEquals(first!.map(({ id }) => id), [125, 13]);
 * ```
 * @category Encoders
 */
export async function fillMask(
  model: Model,
  text: string | readonly number[],
  options: FillMaskOptions = {},
): Promise<MaskCandidate[][]> {
  checkOptionKeys(options, { of: "fillMask()", known: FILL_KEYS });
  const runtime = encoderOf(model, { use: "fill masks", head: "logits" });
  const { top = 5, maskId = maskIdOf(runtime) } = options;
  const { headWidth } = runtime.encoder;
  if (!Number.isInteger(top) || top < 1 || top > headWidth) {
    throw new RangeError(`Cannot use top ${top}: it is an integer from 1 to ${headWidth}`);
  }
  const tokens = tokensOf(runtime, text);
  const wanted = tokens.flatMap((id, index) => id === maskId ? [index] : []);
  if (wanted.length === 0) {
    throw new RangeError(`Cannot fill masks: the text has no token ${maskId} for a hidden word`);
  }
  const nameOf = typeof text === "string"
    ? (id: number) => runtime.tokenizer().tokenText(id)
    : tokenNames(model);
  const results: MaskCandidate[][] = [];
  await encodeSequences(runtime, {
    sequences: [{ tokens, wanted }],
    read: ({ head }) => {
      for (let mask = 0; mask < wanted.length; mask++) {
        const logits = orderedScores(head.slice(mask * headWidth, (mask + 1) * headWidth));
        const probabilities = softmaxInPlace(logits.slice());
        const best = Array.from(logits.keys()).sort((a, b) => logits[b]! - logits[a]!).slice(
          0,
          top,
        );
        results.push(best.map((id) => ({
          id,
          token: nameOf(id),
          probability: probabilities[id]!,
          logit: logits[id]!,
        })));
      }
    },
  }, options);
  return results;
}

function tokenNames(model: Model): (id: number) => string {
  try {
    const { tokenizer } = model;
    return (id) => tokenizer.tokenText(id);
  } catch {
    return () => ""; // ids in, ids out
  }
}
