// Programs of npm, fetched by its own client where they are not in its cache yet.

/** How a program ended. */
export interface Ended {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Runs a program. */
export async function runProgram(
  command: string,
  args: readonly string[],
  { cwd, env = {} }: {
    readonly cwd?: string;
    readonly env?: Readonly<Record<string, string>>;
  } = {},
): Promise<Ended> {
  const { code, stdout, stderr } = await new Deno.Command(command, {
    args: [...args],
    ...cwd !== undefined && { cwd },
    env: { NO_COLOR: "1", ...env },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).output();
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  return { code, out: text(stdout), err: text(stderr) };
}

/** Runs a program that must end well. @returns What it wrote. */
export async function runWell(...given: Parameters<typeof runProgram>): Promise<string> {
  const { code, out, err } = await runProgram(...given);
  if (code !== 0) throw new Error(`${given[0]} ${given[1].join(" ")}: ${err || out}`);
  return out;
}

/** Runtimes of JavaScript beside Deno, by the package that brings them. */
const RUNTIMES = { node: "node@22.23.3", bun: "bun@1.4.5" } as const;

/** Path of a runtime. */
export async function runtimePath(name: keyof typeof RUNTIMES): Promise<string> {
  const out = await runWell("npm", [
    ...["exec", "--yes", "--prefer-offline", `--package=${RUNTIMES[name]}`, "--"],
    ...[name, "--print", "process.execPath"],
  ]);
  return out.trim();
}
