// The servers that are measured, each in a process of its own: this engine's, and llama.cpp's. Theirs is given by its
// path; its source comes with the package llama-cpp-python:
//
//   pip download --no-deps --no-binary :all: llama-cpp-python && tar xzf llama_cpp_python-*.tar.gz
//   cmake -S llama_cpp_python-*/vendor/llama.cpp -B build -DCMAKE_BUILD_TYPE=Release -DLLAMA_CURL=OFF \
//     -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_UI=OFF && cmake --build build --target llama-server
//   deno task bench serve --llama-server build/bin/llama-server
//
// Without one node-llama-cpp stands behind the same endpoint, which says less about its server than about its engine.

import { startChild } from "../../tools/support/children.ts";
import { ROOT } from "../../tools/support/task.ts";
import type { Target } from "./load.ts";

/** How servers are started. */
export interface ServerOptions {
  readonly path: string;
  readonly threads: number;
  /** Answers at once, and tokens of all their caches. */
  readonly streams: number;
  readonly cacheTokens: number;
  readonly contextLength: number;
}

/** A server that is ready. */
export interface RunningServer extends Target, AsyncDisposable {
  readonly name: string;
  readonly pid: number;
  /** From its start to when it was ready. */
  readonly readyMs: number;
}

/** A kind of server. */
export interface ServerKind {
  readonly name: string;
  start(options: ServerOptions): Promise<RunningServer>;
}

const MODEL = "bench";

/** Ours. */
export const TROODON: ServerKind = {
  name: "troodon serve",
  start: ({ path, threads, streams, cacheTokens, contextLength }) =>
    start("troodon serve", {
      command: Deno.execPath(),
      args: (port) => [
        ...["run", "-A", "--no-check", `${ROOT}/main.ts`, "serve", `${MODEL}=${path}`, "--quiet"],
        ...["--port", `${port}`, "--threads", `${threads}`, "--context", `${contextLength}`],
        ...["--sessions", `${streams}`, "--cache-tokens", `${cacheTokens}`],
      ],
      isReady: "line",
    }),
};

/** llama.cpp's own server, at a path. */
export function llamaServer(program: string): ServerKind {
  return {
    name: "llama-server",
    start: ({ path, threads, streams, cacheTokens }) =>
      start("llama-server", {
        command: program,
        args: (port) => [
          ...["-m", path, "--port", `${port}`, "-t", `${threads}`, "-tb", `${threads}`],
          ...["-np", `${streams}`, "-c", `${cacheTokens}`, "--kv-unified"],
        ],
        isReady: "health",
      }),
  };
}

/** node-llama-cpp behind the same endpoint. */
export const NODE_LLAMA: ServerKind = {
  name: "node-llama-cpp 3.21.1 over HTTP",
  start: ({ path, threads, streams, cacheTokens }) =>
    start("node-llama-cpp 3.21.1 over HTTP", {
      command: Deno.execPath(),
      args: (port) => [
        ...["run", "-A", "--no-lock", "--no-config", `${ROOT}/bench/serve/node_llama_server.ts`],
        ...[path, `${port}`, `${threads}`, `${streams}`, `${cacheTokens}`],
      ],
      isReady: "line",
    }),
};

async function start(
  name: string,
  { command, args, isReady }: {
    readonly command: string;
    args(port: number): readonly string[];
    /** By a line `ready`, or as soon as /health says so. */
    readonly isReady: "line" | "health";
  },
): Promise<RunningServer> {
  const port = freePort(), begin = performance.now();
  const child = startChild(command, {
    args: [...args(port)],
    ...{ stdin: "null", stdout: isReady === "line" ? "piped" : "null", stderr: "null" },
    env: { XDG_RUNTIME_DIR: Deno.env.get("XDG_RUNTIME_DIR") ?? "/tmp" },
  });
  const url = `http://127.0.0.1:${port}`;
  const ended = child.status.then(({ code }) => {
    throw new Error(`${name} ended with ${code} before it was ready`);
  });
  ended.catch(() => {});
  await Promise.race([isReady === "line" ? readyLine(child) : healthy(url), ended]);
  return {
    ...{ name, url, model: MODEL, pid: child.pid, readyMs: performance.now() - begin },
    async [Symbol.asyncDispose]() {
      child.kill("SIGTERM");
      await child.status;
    },
  };
}

async function readyLine(child: Deno.ChildProcess): Promise<void> {
  const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  for (let text = ""; !/^ready$/m.test(text);) {
    const { done, value } = await reader.read();
    if (done) return await new Promise(() => {}); // its end is told elsewhere
    text += value;
  }
  void (async () => {
    while (!(await reader.read()).done);
  })();
}

async function healthy(url: string): Promise<void> {
  for (;;) {
    try {
      const response = await fetch(`${url}/health`);
      await response.body?.cancel();
      if (response.ok) return;
    } catch {
      // Not yet.
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

function freePort(): number {
  using listener = Deno.listen({ port: 0, hostname: "127.0.0.1" });
  return listener.addr.port;
}
