// Prompts from standard input.

import { UsageError } from "./args.ts";
import { isUnknownModel } from "./model_or_text.ts";
import type { Terminal } from "./terminal.ts";

interface From {
  /** The flag's value. */
  readonly given: string | undefined;
  readonly flag: string;
  /** The word that stands for a model. */
  readonly model?: string | undefined;
}

/** All of standard input as text, without one line end at its end. */
async function readAll(terminal: Terminal): Promise<string> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let text = "";
  try {
    for (let bytes = await terminal.read(); bytes; bytes = await terminal.read()) {
      text += decoder.decode(bytes, { stream: true });
    }
    text += decoder.decode();
  } catch (error) {
    if (error instanceof TypeError) throw new UsageError("Standard input is not UTF-8 text");
    throw error;
  }
  return text.replace(/\r?\n$/, "");
}

/**
 * As `textOrStdin`, for what is answered: a model invents something where nothing is asked.
 *
 * @throws {UsageError} If there is neither, or only white space.
 */
export async function promptOrStdin(
  terminal: Terminal,
  from: From,
): Promise<string> {
  const text = await textOrStdin(terminal, from);
  if (text.trim() !== "") return text;
  const ways = `give ${from.flag} TEXT, or pipe a text in${takenForModel(from)}`;
  throw new UsageError(`There is nothing to answer: ${ways}`);
}

/**
 * The text of a flag; `-`, or nothing while standard input is piped, means standard input.
 *
 * @throws {UsageError} If there is neither.
 */
export async function textOrStdin(
  terminal: Terminal,
  from: From,
): Promise<string> {
  const { given, flag } = from;
  if (given !== undefined && given !== "-") return given;
  if (given === undefined && terminal.keyboard) {
    const ways = `give ${flag} TEXT, or pipe the text in${takenForModel(from)}`;
    throw new UsageError(`Nothing to read: ${ways}`);
  }
  return await readAll(terminal);
}

/** Says so where a word that may have been meant for the text is near the name of a model. */
function takenForModel({ given, model }: From): string {
  if (given !== undefined || model === undefined || !isUnknownModel(model)) return "";
  return `. "${model}" was taken for a model, and there is none of that name`;
}
