// What doctor and chat ask of the machine itself: permissions, processor, processes, files that a person names.
// Beside terminal.ts the only file of the CLI that uses `Deno.*`.

import { readError, writeError } from "../file_errors.ts";

/** State of a permission: `granted`, `prompt` (would be asked for) or `denied`. */
export interface PermissionState {
  readonly name: string;
  readonly state: string;
}

/** Permissions that some command uses; asking for their state needs none. */
export async function permissions(): Promise<PermissionState[]> {
  const names = ["read", "write", "net", "env", "run", "sys", "ffi"] as const;
  return await Promise.all(names.map(async (name) => ({
    name,
    state: (await Deno.permissions.query({ name })).state,
  })));
}

/** Facts about the machine that need no permission. */
export function machineFacts(): {
  readonly os: string;
  readonly arch: string;
  readonly deno: string;
  readonly v8: string;
  readonly threads: number;
} {
  return {
    os: Deno.build.os,
    arch: Deno.build.arch,
    deno: Deno.version.deno,
    v8: Deno.version.v8,
    threads: navigator.hardwareConcurrency,
  };
}

/** Peak resident memory of this process in bytes where the system tells (Linux), else the present one. */
export function peakResidentBytes(): number {
  try {
    const kilobytes = /^VmHWM:\s+(\d+)/m.exec(Deno.readTextFileSync("/proc/self/status"))?.[1];
    if (kilobytes) return Number(kilobytes) * 1024;
  } catch {
    // Not Linux, or not permitted.
  }
  return Deno.memoryUsage().rss;
}

/** A module that runs in a process of its own. */
export interface ModuleProcess extends Disposable {
  /** What it writes to standard output, by line; ends when the process has. */
  readonly lines: AsyncIterable<string>;
}

/** Whether processes may be started without asking. */
export function mayStartModules(): boolean {
  return Deno.permissions.querySync({ name: "run" }).state === "granted";
}

/** Whether a server may be reached without asking. */
export function mayReach(host: string): boolean {
  return Deno.permissions.querySync({ name: "net", host }).state === "granted";
}

/** Runs a module in a process, which gets one argument; to be disposed of is to be killed. */
export function startModule(url: URL, argument: string): ModuleProcess {
  // Of the npm package the runtime is Node or Bun. Deno reads all that some import names, or what is needed.
  const flags = Deno.version.deno === "none"
    ? []
    : ["run", "-A", "--no-check", "--unstable-lazy-dynamic-imports"];
  const module = url.protocol === "file:" ? decodeURIComponent(url.pathname) : url.href;
  const child = new Deno.Command(Deno.execPath(), {
    args: [...flags, Deno.build.os === "windows" ? url.href : module, argument],
    // Ctrl-C is ours: theirs would look like a driver's doing.
    ...{ stdin: "null", stdout: "piped", stderr: "null", detached: true },
  }).spawn();
  const output = child.stdout.getReader();
  return {
    lines: linesOf(output),
    [Symbol.dispose]() {
      try {
        child.kill("SIGKILL");
      } catch {
        // It has ended.
      }
      // Within its driver a process may outlive its end for a while.
      void output.cancel();
    },
  };
}

async function* linesOf(output: ReadableStreamDefaultReader<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { done, value } = await output.read();
    if (done) return;
    const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
    rest = lines.pop()!;
    yield* lines;
  }
}

/** Text of a file that the user named. */
export async function readText(path: string): Promise<string> {
  try {
    return await Deno.readTextFile(path);
  } catch (error) {
    throw readError(path, error);
  }
}

/** Text of a file if it is there and may be read without asking; undefined otherwise. */
export async function readIfPermitted(path: string): Promise<string | undefined> {
  const { state } = await Deno.permissions.query({ name: "read", path });
  if (state !== "granted") return undefined;
  try {
    return await Deno.readTextFile(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw readError(path, error);
  }
}

/** Writes a file that the user named; with `folders`, those that are missing, too. */
export async function writeText(
  path: string,
  text: string,
  { folders = false }: { readonly folders?: boolean } = {},
): Promise<void> {
  try {
    if (folders) await Deno.mkdir(path.slice(0, path.lastIndexOf("/")), { recursive: true });
    await Deno.writeTextFile(path, text);
  } catch (error) {
    throw writeError(path, error);
  }
}

/** Whether a file that the user named can be written, before what goes into it is worked out. @throws {SourceError} */
export async function checkWritable(path: string): Promise<void> {
  try {
    (await Deno.open(path, { append: true, create: true })).close();
  } catch (error) {
    throw writeError(path, error);
  }
}

/** Writes a file that the user named. */
export async function writeBytes(path: string, bytes: Uint8Array): Promise<void> {
  try {
    await Deno.writeFile(path, bytes);
  } catch (error) {
    throw writeError(path, error);
  }
}
