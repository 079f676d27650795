// Prompts from standard input.

import { UsageError } from "./args.ts";
import type { Terminal } from "./terminal.ts";

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
  from: { readonly given: string | undefined; readonly flag: string },
): Promise<string> {
  const text = await textOrStdin(terminal, from);
  if (text.trim() !== "") return text;
  throw new UsageError(`There is nothing to answer: give ${from.flag} TEXT, or pipe a text in`);
}

/**
 * The text of a flag; `-`, or nothing while standard input is piped, means standard input.
 *
 * @throws {UsageError} If there is neither.
 */
export async function textOrStdin(
  terminal: Terminal,
  { given, flag }: { readonly given: string | undefined; readonly flag: string },
): Promise<string> {
  if (given !== undefined && given !== "-") return given;
  if (given === undefined && terminal.keyboard) {
    throw new UsageError(`Nothing to read: give ${flag} TEXT, or pipe the text in`);
  }
  return await readAll(terminal);
}
