// The words of a command that takes a model and a text. Who types `troodon generate "What is …?"` means a text for the
// default model: what has white space in it, and is no file, is no model.

import { modelNames } from "../formats/hub/catalogue.ts";
import { parseModelSource } from "../formats/hub/source_name.ts";
import { pathKind } from "../io.ts";
import { nearest } from "../nearest.ts";
import { UsageError } from "./args.ts";

/** What is meant; absent what is left out. */
export interface ModelAndText {
  readonly model?: string | undefined;
  readonly text?: string | undefined;
}

/**
 * The model and the text among at most two words.
 *
 * @param flag How a text is given by a flag, and its value if it is.
 * @throws {UsageError} If the text is given twice.
 */
export function modelAndText(
  [first, second]: readonly string[],
  flag?: { readonly name: string; readonly given: string | undefined },
): ModelAndText {
  const given = flag?.given;
  if (second !== undefined) {
    if (given !== undefined) {
      throw new UsageError(`the text is given twice, as ${flag!.name} and as "${second}"`);
    }
    return { model: first, text: second };
  }
  const isText = first !== undefined && given === undefined && readsAsText(first);
  return isText ? { text: first } : { model: first, text: given };
}

/** Whether there is neither a file nor a known name of that kind. */
export function isUnknownModel(word: string): boolean {
  return parseModelSource(word).kind === "path" && pathKind(word) === undefined;
}

/** Names of models, paths and addresses have these; words of a language hardly do. */
const OF_NAMES = /[\d/\\:_-]|\.\w/;

function readsAsText(word: string): boolean {
  if (word.trim() === "") return true;
  if (word === "-") return true; // standard input
  const isUnknown = isUnknownModel(word);
  if (!isUnknown || /\s/.test(word)) return isUnknown;
  return !OF_NAMES.test(word) && nearest(word.toLowerCase(), modelNames()) === undefined;
}
