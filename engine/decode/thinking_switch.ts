// Names by which chat templates switch thinking on and off. A template that has none of them cannot do it, and
// then it is an error to ask for it.

import { UnsupportedError } from "../errors.ts";
import { thinkingMarksOf } from "../text/answer/call_formats.ts";
import type { Runtime } from "./runtime.ts";

/** What templates call their switch, and where it says so. A message's field `thinking` is none. */
const SWITCHES: readonly (readonly [name: string, sign: RegExp])[] = [
  ["enable_thinking", /\benable_thinking\b/],
  ["thinking", /(?<![.\w'"])thinking is (?:not )?defined|\bif (?:not )?thinking\b/],
];

/**
 * Names for the template that switch thinking; none where nobody asks.
 *
 * @throws {UnsupportedError} If the template has no switch for what is asked.
 */
export function thinkingSwitch(
  { chatTemplate, name, tokenizer }: Runtime,
  thinking: boolean | undefined,
): Record<string, boolean> {
  const source = chatTemplate?.source ?? "";
  if (thinking === undefined) return {};
  const switches = SWITCHES.filter(([, sign]) => sign.test(source)).map(([name]) => name);
  if (switches.length > 0) return Object.fromEntries(switches.map((name) => [name, thinking]));
  const isToken = (text: string) => tokenizer().idOf(text) !== undefined;
  const thinks = thinkingMarksOf(source, isToken) !== undefined || source.includes("analysis");
  if (!thinks && !thinking) return {};
  throw new UnsupportedError(
    thinks
      ? "the model's chat template has no switch for thinking"
      : "the model's chat template knows no thinking",
    { file: name, remedy: "Leave `thinking` out" },
  );
}
