// Runs the command line in a process of its own, with the permissions and variables that a test is about.

import { assertEquals, assertMatch } from "@std/assert";
import { ROOT } from "../../tools/support/task.ts";

/** How a command ended. */
export interface Outcome {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** What it gets besides its arguments. */
export interface RunOptions {
  readonly permissions?: readonly string[];
  readonly stdin?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Runs one command line of the CLI. */
export async function troodon(
  args: readonly string[],
  { permissions = ["--allow-all"], stdin, env = {} }: RunOptions = {},
): Promise<Outcome> {
  const command = new Deno.Command(Deno.execPath(), {
    args: ["run", "--no-check", "--no-prompt", ...permissions, `${ROOT}/main.ts`, ...args],
    stdin: stdin === undefined ? "null" : "piped",
    stdout: "piped",
    stderr: "piped",
    // Mesa's layers complain on stderr where no desktop has set it.
    env: { XDG_RUNTIME_DIR: Deno.env.get("XDG_RUNTIME_DIR") ?? "/tmp", ...env },
  });
  const child = command.spawn();
  if (stdin !== undefined) {
    const writer = child.stdin.getWriter();
    await writer.write(new TextEncoder().encode(stdin));
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
