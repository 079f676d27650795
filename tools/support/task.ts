// What every task of tools/ shares: the help page, one-line errors, and the exit code. A task states its
// command line as data (engine/cli/args.ts) and does its work in a function that returns the exit code.

import {
  type CommandLine,
  type Flags,
  helpPage,
  type ParsedLine,
  parseLine,
  UsageError,
} from "../../engine/cli/args.ts";
import { TroodonError } from "../../engine/errors.ts";
import { isInterrupted, startChild } from "./children.ts";

/** The repository's root, wherever a task is called from. */
export const ROOT: string = import.meta.dirname!.replace(/[\\/]tools[\\/]support$/, "");

/** Parses the arguments, runs the task, and ends the process with its exit code. */
export async function runTask<const F extends Flags>(
  line: CommandLine & { readonly flags: F },
  task: (parsed: ParsedLine<F>) => Promise<number>,
): Promise<never> {
  try {
    const parsed = parseLine(line, Deno.args);
    if (parsed.help) {
      console.log(helpPage(line));
      Deno.exit(0);
    }
    Deno.exit(await task(parsed));
  } catch (error) {
    if (isInterrupted()) return await new Promise<never>(() => {});
    if (error instanceof UsageError) {
      console.error(`error: ${error.message}`);
      Deno.exit(2);
    }
    // A typed error says what to do; anything else is a fault of the task itself.
    if (error instanceof TroodonError) console.error(`error: ${error.message}`);
    else console.error(error instanceof Error ? error.stack ?? error.message : error);
    Deno.exit(1);
  }
}

/** Runs `deno` with the terminal's own output, at the root unless it is told where; returns the exit code. */
export async function deno(
  args: readonly string[],
  { env = {}, cwd = ROOT }: {
    readonly env?: Readonly<Record<string, string>>;
    readonly cwd?: string;
  } = {},
): Promise<number> {
  const child = startChild(Deno.execPath(), {
    args: [...args],
    ...{ cwd, env },
    stdin: "null",
    stdout: "inherit",
    stderr: "inherit",
  });
  return (await child.status).code;
}
