// infill(): what belongs between two texts, by models that were trained to fill in (code, as a rule).

import { UnsupportedError } from "../errors.ts";
import { checkOptionKinds } from "../option_keys.ts";
import { infillTokensOf } from "../text/answer/infill_tokens.ts";
import { coreOf, startGeneration } from "./generate.ts";
import type { StructuredGeneration } from "./generation.ts";
import type { GenerateOptions } from "./generate_options.ts";
import type { Model } from "./model.ts";
import type { Session } from "./session.ts";

/**
 * A text with a hole.
 * @category Text
 */
export interface Hole {
  /** What stands in front of it. */
  readonly prefix: string;
  /** What stands behind it. */
  readonly suffix: string;
}

/**
 * Fills in between two texts. The answer ends where the model has filled the hole, or by itself.
 *
 * Texts of control tokens in either text stay text.
 *
 * @param target A model with tokens for filling in (Qwen2.5-Coder, StarCoder, Code Llama, DeepSeek-Coder,
 * Codestral, …), or a session of one.
 * @throws {UnsupportedError} If its vocabulary has none.
 * @throws {RangeError | TypeError | ResourceError} As `generate`.
 *
 * @example
 * ```ts ignore
 * import { infill, load } from "@troodon/troodon";
 *
 * using model = await load("hf:Qwen/Qwen2.5-Coder-0.5B-GGUF/qwen2.5-coder-0.5b-q8_0.gguf");
 * const hole = { prefix: "function add(a, b) {\n", suffix: "\n}\n" };
 * console.log(await infill(model, hole, { maxTokens: 64 }).text());
 * ```
 * @category Text
 */
export function infill(
  target: Model | Session,
  { prefix, suffix }: Hole,
  options: GenerateOptions = {},
): StructuredGeneration {
  checkOptionKinds(options, "infill()");
  const { runtime } = coreOf(target);
  if (typeof prefix !== "string" || typeof suffix !== "string") {
    throw new TypeError("Cannot fill in: prefix and suffix must be texts");
  }
  const tokenizer = runtime.tokenizer();
  const marks = infillTokensOf(tokenizer);
  if (!marks || runtime.source) {
    throw new UnsupportedError("the model has no tokens for filling in", {
      file: runtime.name,
      remedy: "Use a model of code that was trained for it, or generate() with the text in front",
    });
  }
  const special = options.special ?? false;
  const encode = (text: string) => tokenizer.encode(text, { addSpecial: false, special });
  const front = [marks.prefix, ...encode(prefix)], rear = [marks.suffix, ...encode(suffix)];
  const texts = marks.isSuffixFirst ? [...rear, ...front] : [...front, ...rear];
  const last = marks.middle === undefined ? [] : [marks.middle];
  return startGeneration(target, {
    tokens: [...tokenizer.prefixIds, ...texts, ...last],
    keep: tokenizer.prefixIds.length,
    continues: true,
    ends: marks.ends,
  }, options);
}
