// `troodon serve` in a process of its own, for the time of a test.

import { ROOT } from "../../tools/support/task.ts";

/** A server that says it is ready. */
export interface Served extends AsyncDisposable {
  /** Where it serves, if it does. */
  readonly url: string;
  readonly pid: number;
  /** Lines of standard output until it was ready. */
  readonly lines: readonly string[];
  /** Sends a signal, and waits for the end; `rest` is standard output behind `lines`. */
  stop(signal?: Deno.Signal): Promise<Awaited<Served["ended"]> & { readonly rest: string }>;
  /** Sends a signal. */
  signal(signal: Deno.Signal): void;
  /** How it ended. */
  readonly ended: Promise<{ readonly code: number; readonly err: string }>;
}

/** Starts `troodon serve` on a free port, and waits until it is ready. */
export function startServe(args: readonly string[]): Promise<Served> {
  return startTroodon(["serve", "--port", "0", ...args]);
}

/** Starts a command that says when it is ready. */
export async function startTroodon(args: readonly string[]): Promise<Served> {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-check", `${ROOT}/main.ts`, ...args],
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
    env: { XDG_RUNTIME_DIR: Deno.env.get("XDG_RUNTIME_DIR") ?? "/tmp" },
  }).spawn();
  const errors = new Response(child.stderr).text();
  const ended = child.status.then(async ({ code }) => ({ code, err: await errors }));
  const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (!/^ready$/m.test(text)) {
    const { done, value } = await reader.read();
    if (done) throw new Error(`${args[0]} ended: ${text}${(await ended).err}`);
    text += value;
  }
  const rest = (async () => {
    let rest = "";
    for (let next = await reader.read(); !next.done; next = await reader.read()) rest += next.value;
    return rest;
  })();
  const stop = async (signal: Deno.Signal = "SIGTERM") => {
    child.kill(signal);
    return { rest: await rest, ...await ended };
  };
  let isOver = false;
  void child.status.then(() => isOver = true);
  return {
    ...{ pid: child.pid, lines: text.trimEnd().split("\n"), stop, ended },
    url: / at (http:\S+)/.exec(text)?.[1] ?? "",
    signal: (signal) => child.kill(signal),
    async [Symbol.asyncDispose]() {
      if (!isOver) await stop("SIGKILL");
    },
  };
}
