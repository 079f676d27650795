// Runs the command line as a script meets it: arguments and standard input in, exit code and what was written out.

import { assertEquals, assertMatch } from "@std/assert";
import config from "../../deno.json" with { type: "json" };
import { runCommandLine } from "../../engine/cli/command_line.ts";
import type { Terminal } from "../../engine/cli/terminal.ts";
import { ROOT } from "../../tools/support/task.ts";

/** How a command ended. */
export interface Outcome {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** What it gets besides its arguments; with permissions or variables, `{}` too, it is a process of its own. */
export interface RunOptions {
  readonly permissions?: readonly string[];
  readonly stdin?: string | Uint8Array;
  /** With its first output comes a signal that ends who does not hear it with this code. */
  readonly endedBy?: number;
  readonly env?: Readonly<Record<string, string>>;
}

/**
 * Runs one command line of the CLI: in this process, which has loaded what most commands are made of, or in one of its own
 * where it is about what a process may do or is told.
 */
export function troodon(args: readonly string[], options: RunOptions = {}): Promise<Outcome> {
  return options.permissions || options.env ? inProcess(args, options) : inThisOne(args, options);
}

function bytesOf(stdin: string | Uint8Array): Uint8Array {
  return typeof stdin === "string" ? new TextEncoder().encode(stdin) : stdin;
}

/** A terminal that is none: pipes on all sides. */
async function inThisOne(
  args: readonly string[],
  { stdin, endedBy }: RunOptions,
): Promise<Outcome> {
  const written = { out: "", err: "" };
  let interrupt: ((code: number) => void) | undefined;
  const left = stdin ? [bytesOf(stdin)] : [];
  const terminal: Terminal = {
    ...{ screen: false, progress: false, keyboard: false, colours: { out: false, err: false } },
    columns: () => 80,
    out(text) {
      written.out += text;
      if (endedBy !== undefined) interrupt?.(endedBy);
      interrupt = undefined;
    },
    err: (text) => void (written.err += text),
    read: () => Promise.resolve(left.pop()),
    setRaw() {
      throw new Error("a pipe has no keys");
    },
    onInterrupt(handler) {
      interrupt = handler;
      return () => void (interrupt = undefined);
    },
  };
  const exit = (code: number): never => {
    throw new Error(`the command ends the process with ${code}`);
  };
  const code = await runCommandLine(args, { terminal, exit, version: config.version });
  return { code, ...written };
}

async function inProcess(
  args: readonly string[],
  { permissions = ["--allow-all"], stdin, env = {} }: RunOptions,
): Promise<Outcome> {
  const command = new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "--quiet",
      "--no-check",
      "--no-prompt",
      ...permissions,
      `${ROOT}/main.ts`,
      ...args,
    ],
    stdin: stdin === undefined ? "null" : "piped",
    stdout: "piped",
    stderr: "piped",
    // Mesa's layers complain on stderr where no desktop has set it.
    env: { XDG_RUNTIME_DIR: Deno.env.get("XDG_RUNTIME_DIR") ?? "/tmp", ...env },
  });
  const child = command.spawn();
  if (stdin !== undefined) {
    const writer = child.stdin.getWriter();
    await writer.write(bytesOf(stdin));
    await writer.close();
  }
  const { code, stdout, stderr } = await child.output();
  const decoder = new TextDecoder();
  return { code, out: decoder.decode(stdout), err: decoder.decode(stderr) };
}

/** Fails unless the outcome is a one-line error with this exit code. */
export function assertRefused(
  { code, out, err }: Outcome,
  expected: number,
  message: RegExp,
): void {
  assertEquals(code, expected, err);
  assertEquals(out, "");
  assertEquals(err.trimEnd().split("\n").length, 1, err);
  assertMatch(err, /^error: /);
  assertMatch(err, message);
}
