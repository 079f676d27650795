// What the commands for encoders share: the model they take when none is named, and texts by flag or line.

import { type Flags, UsageError } from "./args.ts";
import { LOAD_FLAGS } from "./flags.ts";
import { textOrStdin } from "./stdin.ts";
import type { Terminal } from "./terminal.ts";

/** Model of `embed` when none is named. */
export const DEFAULT_ENCODER = "minilm";

/** How an encoder is made ready. */
export const ENCODER_LOAD_FLAGS = {
  ...LOAD_FLAGS,
  context: {
    type: "integer",
    value: "N",
    min: 1,
    help: "most tokens of a text; longer ones are cut",
  },
} as const satisfies Flags;

/** Texts, as `textsOrLines` takes them. */
export const TEXTS_FLAG = {
  type: "string",
  short: "t",
  multiple: true,
  help: "a text (may be repeated); - or nothing: each line of standard input is one",
} as const satisfies Flags[string];

/**
 * Texts of a flag that may be repeated, else the lines of standard input, also empty ones: results are by line.
 *
 * @throws {UsageError} If there is none.
 */
export async function textsOrLines(
  terminal: Terminal,
  { given, flag }: { readonly given: readonly string[] | undefined; readonly flag: string },
): Promise<readonly string[]> {
  if (given && given.length > 0 && !given.includes("-")) return given;
  if (given && given.length > 1) throw new UsageError(`${flag} - stands for itself`);
  const text = await textOrStdin(terminal, { given: given?.[0], flag });
  if (text.trim() !== "") return text.split(/\r?\n/);
  throw new UsageError(`Nothing to read: give ${flag} TEXT, or pipe lines in`);
}
