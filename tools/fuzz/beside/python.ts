// A Python process that answers what a reference implementation says: one JSON line asks, one answers, and the
// process lives as long as ours. Nothing is compared in silence with nothing: where Python or a package is missing,
// the error names it.

import { ResourceError } from "../../../engine/errors.ts";
import { startChild } from "../../support/children.ts";

/** A reference implementation. */
export interface Reference {
  /** Asks; the answer is what the script returns. */
  ask(question: unknown): Promise<unknown>;
  /** Ends the process. */
  close(): Promise<void>;
}

/** What a script needs: modules by name, with the version that answers are compared with. */
export type Packages = Readonly<Record<string, string>>;

/** The command that mends a missing package. */
export function remedyOf(packages: Packages): string {
  const wanted = Object.entries(packages).map(([name, version]) => `${name}==${version}`);
  return `python3 -m pip install ${wanted.join(" ")}`;
}

/** Whether Python has the packages; asked once. */
export function hasPackages(packages: Packages): boolean {
  const names = Object.keys(packages).join(", ");
  try {
    return new Deno.Command("python3", { args: ["-c", `import ${names}`] }).outputSync().success;
  } catch {
    return false;
  }
}

const started = new Map<string, Promise<Reference>>();

/** Ends all processes; the next question starts another. */
export async function endReferences(): Promise<void> {
  const running = [...started.values()];
  started.clear();
  for (const result of await Promise.allSettled(running)) {
    if (result.status === "fulfilled") await result.value.close();
  }
}

/**
 * The process of a script beside this file, started at the first call.
 *
 * @throws {ResourceError} If Python or a package is missing.
 */
export function reference(script: string, packages: Packages): Promise<Reference> {
  let known = started.get(script);
  if (known === undefined) started.set(script, known = start(script, packages));
  return known;
}

async function start(script: string, packages: Packages): Promise<Reference> {
  const refuse = (what: string): never => {
    throw new ResourceError(`${what}, so there is nothing to compare with`, {
      file: script,
      remedy: remedyOf(packages),
    });
  };
  let child: Deno.ChildProcess;
  try {
    child = startChild("python3", {
      args: [new URL(script, import.meta.url).pathname],
      stdin: "piped",
      stdout: "piped",
      stderr: "null",
    });
  } catch {
    return refuse("python3 cannot be started");
  }
  const writer = child.stdin.getWriter();
  const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  async function readLine(): Promise<string> {
    while (!rest.includes("\n")) {
      const { value, done } = await reader.read();
      if (done) return refuse(`${script} ended`);
      rest += value;
    }
    const at = rest.indexOf("\n");
    const line = rest.slice(0, at);
    rest = rest.slice(at + 1);
    return line;
  }
  // The first line comes unasked: versions, or the module that is missing.
  const ready = JSON.parse(await readLine()) as { missing?: string };
  if (ready.missing !== undefined) return refuse(`Python has no module ${ready.missing}`);
  return {
    async ask(question) {
      await writer.write(new TextEncoder().encode(JSON.stringify(question) + "\n"));
      return JSON.parse(await readLine());
    },
    async close() {
      await writer.close().catch(() => {});
      await reader.cancel().catch(() => {});
      await child.status;
    },
  };
}
