// The process of Node and Bun under the names that the command line and the download code call: standard streams,
// environment, signals, programs that are started.

import type { Readable as NodeReadable } from "node:stream";
import { nodeModule } from "./node_module.ts";

const { spawn } = nodeModule<typeof import("node:child_process")>("node:child_process");
const fs = nodeModule<typeof import("node:fs")>("node:fs");
const os = nodeModule<typeof import("node:os")>("node:os");
const process = nodeModule<typeof import("node:process")>("node:process");
const { Readable } = nodeModule<typeof import("node:stream")>("node:stream");
const tty = nodeModule<typeof import("node:tty")>("node:tty");

/** A stream of the process that is written at once, also when it is a pipe that is full for a moment. */
function output(fd: 1 | 2) {
  const writeSync = (bytes: Uint8Array): number => {
    for (;;) {
      try {
        return fs.writeSync(fd, bytes);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EAGAIN") throw error;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
      }
    }
  };
  return {
    isTerminal: () => tty.isatty(fd),
    writeSync,
    write: async (bytes: Uint8Array) => await writeSync(bytes),
  };
}

/** Standard input, read as it comes; what does not fit is kept. */
function input() {
  let chunks: AsyncIterator<Uint8Array> | undefined;
  let rest = new Uint8Array();
  return {
    isTerminal: () => tty.isatty(0),
    setRaw: (raw: boolean) => void process.stdin.setRawMode?.(raw),
    async read(target: Uint8Array): Promise<number | null> {
      chunks ??= process.stdin[Symbol.asyncIterator]();
      while (rest.length === 0) {
        const { done, value } = await chunks.next();
        if (done) return null;
        rest = new Uint8Array(value);
      }
      const part = rest.subarray(0, target.length);
      target.set(part);
      rest = rest.subarray(part.length);
      return part.length;
    },
  };
}

interface CommandOptions {
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: "null" | "piped";
  readonly stdout?: "null" | "piped";
  readonly stderr?: "null" | "piped";
  readonly signal?: AbortSignal;
}

const STREAMS = { null: "ignore", piped: "pipe" } as const;

/** A program to start. */
class Command {
  readonly #command: string;
  readonly #options: CommandOptions;

  constructor(command: string, options: CommandOptions = {}) {
    this.#command = command;
    this.#options = options;
  }

  spawn() {
    const { args = [], env, stdin = "null", stdout = "piped", stderr = "piped" } = this.#options;
    const { signal } = this.#options;
    const child = spawn(this.#command, [...args], {
      env: { ...process.env, ...env },
      stdio: [STREAMS[stdin], STREAMS[stdout], STREAMS[stderr]],
      ...signal && { signal },
    });
    // Node tells by an event what Deno throws; there is no number of a process that did not start.
    if (child.pid === undefined) {
      child.on("error", () => {});
      throw Object.assign(new Error(`there is no program ${this.#command}`), { code: "ENOENT" });
    }
    const ended = Promise.withResolvers<{ readonly code: number; readonly success: boolean }>();
    child.on("error", ended.reject);
    child.on("close", (code) => ended.resolve({ code: code ?? 1, success: code === 0 }));
    const read = async (stream: NodeReadable | null) => {
      const parts: Uint8Array[] = [];
      for await (const part of stream ?? []) parts.push(part);
      return new Uint8Array(Buffer.concat(parts));
    };
    return {
      pid: child.pid,
      status: ended.promise,
      kill: (signalName: NodeJS.Signals) => void child.kill(signalName),
      stdout: child.stdout && Readable.toWeb(child.stdout),
      async output() {
        const [out, err, status] = await Promise.all([
          read(child.stdout),
          read(child.stderr),
          ended.promise,
        ]);
        return { ...status, stdout: out, stderr: err };
      },
    };
  }
}

const OS: Readonly<Record<string, string>> = { win32: "windows" };
const ARCH: Readonly<Record<string, string>> = { x64: "x86_64", arm64: "aarch64" };
const granted = { state: "granted" } as const;

/** The functions and facts. There are no permissions: all are granted. */
export function createProcess() {
  return {
    args: process.argv.slice(2),
    pid: process.pid,
    noColor: Boolean(process.env.NO_COLOR),
    build: {
      os: OS[process.platform] ?? process.platform,
      arch: ARCH[process.arch] ?? process.arch,
    },
    version: { deno: "none", v8: process.versions.v8 ?? "none" },
    env: { get: (name: string) => process.env[name] },
    permissions: { querySync: () => granted, query: async () => await granted },
    stdin: input(),
    stdout: output(1),
    stderr: output(2),
    consoleSize: () => ({ columns: process.stdout.columns ?? 80 }),
    addSignalListener: (signal: string, handler: () => void) => void process.on(signal, handler),
    removeSignalListener: (signal: string, handler: () => void) =>
      void process.off(signal, handler),
    memoryUsage: () => process.memoryUsage(),
    systemMemoryInfo: () => ({ available: os.freemem(), swapFree: 0 }),
    execPath: () => process.execPath,
    exit: (code: number): never => process.exit(code),
    Command,
  } as const;
}
