// onnxruntime as a second opinion: one Python process for all graphs, a JSON line each way. Without Python or the
// package, or with an older one, whose shapes of empty tensors are wrong (1.30), there is no peer, which the caller says. A graph that ends the process is taken as refused.

import type { DataType } from "../../../engine/graph/graph.ts";
import { hostArray, type HostTensor } from "../../../engine/ops/host_tensor.ts";
import { startChild } from "../../support/children.ts";
import { bytesOf } from "./writer.ts";
import { countOf } from "./sizes.ts";

/** Results by name. */
export type Tensors = ReadonlyMap<string, HostTensor>;

/** Runs models elsewhere. */
export interface Peer extends AsyncDisposable {
  /** Version of the package. */
  readonly version: string;
  /** Results of each run, or why the peer refuses. */
  run(model: Uint8Array, runs: readonly Tensors[]): Promise<readonly Tensors[] | string>;
}

interface Wire {
  readonly type: DataType;
  readonly shape: readonly number[];
  readonly data: string;
}

interface Reply {
  readonly version?: string;
  readonly error?: string;
  readonly runs?: readonly Readonly<Record<string, Wire>>[];
}

interface Lines {
  ask(line: string): Promise<Reply | undefined>;
  close(): Promise<void>;
}

/** Version of the package, at least. */
export const PEER_VERSION = "1.32.0";

const SCRIPT = new URL("./onnxruntime_peer.py", import.meta.url).pathname;

/** Starts the peer; undefined where Python does not have it. */
export async function openPeer(): Promise<Peer | undefined> {
  const first = await start();
  if (!first) return undefined;
  let lines: Lines | undefined = first.lines;
  return {
    version: first.version,
    async run(model, runs) {
      lines ??= (await start())?.lines;
      const request = {
        model: model.toBase64(),
        runs: runs.map((run) =>
          Object.fromEntries([...run].map(([name, tensor]) => [name, toWire(tensor)]))
        ),
      };
      const reply = await lines?.ask(JSON.stringify(request));
      if (!reply) {
        await lines?.close();
        lines = undefined;
        return "the process ended";
      }
      return reply.runs?.map((run) =>
        new Map(Object.entries(run).map(([name, wire]) => [name, fromWire(wire)]))
      ) ?? reply.error!;
    },
    async [Symbol.asyncDispose]() {
      await lines?.close();
    },
  };
}

async function start(): Promise<{ readonly version: string; readonly lines: Lines } | undefined> {
  let child: Deno.ChildProcess;
  try {
    child = startChild("python3", {
      args: [SCRIPT],
      ...{ stdin: "piped", stdout: "piped", stderr: "null" },
    });
  } catch {
    return undefined;
  }
  const lines = linesOf(child);
  const { version } = await lines.ask("") ?? {};
  if (version !== undefined && !isOlder(version)) return { version, lines };
  await lines.close();
  return undefined;
}

function isOlder(version: string): boolean {
  return version.localeCompare(PEER_VERSION, "en", { numeric: true }) < 0;
}

function linesOf(child: Deno.ChildProcess): Lines {
  const writer = child.stdin.getWriter();
  const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  return {
    async ask(line) {
      try {
        // The first line comes unasked: it says the version.
        if (line !== "") await writer.write(new TextEncoder().encode(`${line}\n`));
        for (let end = rest.indexOf("\n"); end < 0; end = rest.indexOf("\n")) {
          const { value, done } = await reader.read();
          if (done) return undefined;
          rest += value;
        }
        const at = rest.indexOf("\n");
        const reply = JSON.parse(rest.slice(0, at)) as Reply;
        rest = rest.slice(at + 1);
        return reply;
      } catch {
        return undefined; // a pipe that broke
      }
    },
    async close() {
      await writer.close().catch(() => {});
      await reader.cancel().catch(() => {});
      await child.status;
    },
  };
}

function toWire(tensor: HostTensor): Wire {
  return { type: tensor.dtype, shape: tensor.shape, data: bytesOf(tensor).toBase64() };
}

function fromWire({ type, shape, data }: Wire): HostTensor {
  const tensor = { dtype: type, shape, data: hostArray(type, { count: countOf(shape) }) };
  bytesOf(tensor).set(Uint8Array.fromBase64(data));
  return tensor;
}
