// examples/edge as a platform runs it: one file, in a process that may use the network and nothing else, without workers.
// For its test and its bench.

import { buildEdge } from "../../examples/edge/build.ts";

/** Files of a model by name, as the example fetches them. */
export type EdgeFiles = Readonly<Record<string, Uint8Array<ArrayBuffer>>>;

/** A process as a platform has it. */
export interface Edge extends AsyncDisposable {
  /** From the start of the process until it listens, in ms. */
  readonly startMs: number;
  /** What it answers, and how long each part took that it speaks of (Server-Timing), in ms. */
  ask(path: string, body: unknown): Promise<EdgeAnswer>;
  /** The most memory that it has taken, where the system tells. */
  peakBytes(): number | undefined;
  /** Processor time of all its threads so far, in ms, where the system tells (to 10 ms). */
  processorMs(): number | undefined;
}

/** An answer. */
export interface EdgeAnswer {
  readonly status: number;
  readonly value: unknown;
  readonly timings: Readonly<Record<string, number>>;
}

/** The example, made for a model that this process serves. */
export interface EdgeBuild extends AsyncDisposable {
  /** Length of the code. */
  readonly bytes: number;
  /** Starts a process, or one with an empty handler, to compare. */
  start(script?: "platform.js" | "empty.js"): Promise<Edge>;
}

/** As platforms without workers have it. */
const SCRIPTS = {
  "platform.js": `delete globalThis.Worker; export { default } from "./main.js";`,
  "empty.js": `export default { fetch: () => Response.json([]) };`,
};

/** Makes the example for a model of these files; files that are put in later are served as well. */
export async function prepareEdge(files: EdgeFiles): Promise<EdgeBuild> {
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, (request) => {
    const bytes = files[new URL(request.url).pathname.slice(1)];
    return bytes ? new Response(bytes) : new Response("", { status: 404 });
  });
  const folder = await Deno.makeTempDir();
  const bytes = await buildEdge(folder, `http://127.0.0.1:${server.addr.port}/`);
  for (const [name, text] of Object.entries(SCRIPTS)) {
    await Deno.writeTextFile(`${folder}/${name}`, text);
  }
  return {
    bytes,
    start: (script = "platform.js") => startEdge(folder, script),
    async [Symbol.asyncDispose]() {
      await server.shutdown();
      await Deno.remove(folder, { recursive: true });
    },
  };
}

async function startEdge(folder: string, script: string): Promise<Edge> {
  const start = performance.now();
  const child = new Deno.Command(Deno.execPath(), {
    args: [
      ...["serve", "--no-config", "--no-prompt", "--allow-net=127.0.0.1", "--host", "127.0.0.1"],
      ...["--port", "0", script],
    ],
    cwd: folder,
    env: { NO_COLOR: "1" },
    stdout: "null",
    stderr: "piped",
  }).spawn();
  const [lines, rest] = child.stderr.tee();
  void rest.cancel();
  const origin = await addressIn(lines);
  return {
    startMs: performance.now() - start,
    async ask(path, body) {
      const response = await fetch(`${origin}${path}`, {
        method: "POST",
        body: JSON.stringify(body),
      });
      const said = response.headers.get("server-timing") ?? "";
      const timings = [...said.matchAll(/(\w+);dur=([\d.]+)/g)]
        .map(([, name, ms]) => [name!, Number(ms)] as const);
      return {
        status: response.status,
        value: await response.json(),
        timings: Object.fromEntries(timings),
      };
    },
    peakBytes: () => peakOf(child.pid),
    processorMs: () => processorMsOf(child.pid),
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.status;
    },
  };
}

async function addressIn(output: ReadableStream<Uint8Array>): Promise<string> {
  let text = "";
  const decoder = new TextDecoder();
  for await (const part of output) {
    text += decoder.decode(part, { stream: true });
    const [found] = /http:\/\/127\.0\.0\.1:\d+/.exec(text) ?? [];
    if (found) return found;
  }
  throw new Error(text);
}

function peakOf(pid: number): number | undefined {
  try {
    const status = Deno.readTextFileSync(`/proc/${pid}/status`);
    return Number(/^VmHWM:\s+(\d+)/m.exec(status)![1]) * 1024;
  } catch {
    return undefined;
  }
}

function processorMsOf(pid: number): number | undefined {
  try {
    // utime and stime, in hundredths of a second; the name before them may hold blanks.
    const [, rest] = Deno.readTextFileSync(`/proc/${pid}/stat`).split(") ");
    const [user, system] = rest!.split(" ").slice(11, 13).map(Number);
    return 10 * (user! + system!);
  } catch {
    return undefined;
  }
}
