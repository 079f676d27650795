// Connections between the processes of a placement, and those processes. One of the files that touch the system.

import { joiningArguments } from "../../../wasm/joining_flag.ts";
import { DeviceError, ResourceError } from "../../errors.ts";
import type { Connection } from "./channel.ts";

/** Modules are read when they are needed, and not all that some import names; vectors have 256 bits. */
const FLAGS = ["--unstable-lazy-dynamic-imports", ...joiningArguments(Deno.build.arch)];

/** Connects to a peer. @throws {DeviceError} If nobody listens there, or Deno may not connect. */
export async function connectTo(address: string): Promise<Connection> {
  const [, hostname, port] = /^\[?(.+?)\]?:(\d+)$/.exec(address)!;
  try {
    const connection = await Deno.connect({ hostname: hostname!, port: Number(port) });
    connection.setNoDelay(true);
    connection.setKeepAlive(true);
    return connection;
  } catch (cause) {
    throw new DeviceError(`peer ${address} cannot be reached: ${(cause as Error).message}`, {
      remedy: "Start it with troodon peer, and allow --allow-net",
      cause,
    });
  }
}

/** Waits for peers' coordinators. */
export interface PeerListener extends Disposable {
  readonly port: number;
  connections(): AsyncIterable<Connection>;
}

/** Listens. */
export function listen(
  { hostname, port }: { readonly hostname: string; readonly port: number },
): PeerListener {
  const listener = Deno.listen({ hostname, port });
  return {
    port: (listener.addr as Deno.NetAddr).port,
    async *connections() {
      for await (const connection of listener) {
        connection.setNoDelay(true);
        yield connection;
      }
    },
    [Symbol.dispose]() {
      try {
        listener.close();
      } catch {
        // It is closed.
      }
    },
  };
}

/** A process of this machine that computes for this one. */
export interface PeerProcess extends Disposable {
  readonly address: string;
  readonly pid: number;
}

/**
 * Starts `troodon peer` for one coordinator; it ends with the connection.
 *
 * @throws {ResourceError} If Deno may not start processes. @throws {DeviceError} If it does not come up.
 */
export async function spawnPeer(
  { device, key, env }: {
    readonly device: string;
    readonly key: string;
    readonly env: Readonly<Record<string, string>>;
  },
): Promise<PeerProcess> {
  const main = new URL("../../../main.ts", import.meta.url).href;
  let child: Deno.ChildProcess;
  try {
    child = new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--no-check", ...FLAGS, main, "peer", "--device", device, "--once"],
      env: { ...env, TROODON_PEER_KEY: key },
      ...{ stdin: "null", stdout: "piped", stderr: "null" },
    }).spawn();
  } catch (cause) {
    throw new ResourceError(
      `a process for device ${device} cannot be started: ${(cause as Error).message}`,
      {
        remedy: "Run with --allow-run and --allow-net",
        cause,
      },
    );
  }
  const stop = () => {
    try {
      child.kill("SIGKILL");
    } catch {
      // It has ended.
    }
  };
  const address = await addressIn(child.stdout);
  if (address) return { address, pid: child.pid, [Symbol.dispose]: stop };
  stop();
  throw new DeviceError(`the process for device ${device} ended before it listened`);
}

/** The address in the first line that a peer writes. */
async function addressIn(output: ReadableStream<Uint8Array>): Promise<string | undefined> {
  let text = "";
  const decoder = new TextDecoder();
  for await (const part of output) {
    text += decoder.decode(part, { stream: true });
    const [, address] = /listening on (\S+)\n/.exec(text) ?? [];
    if (address) return address;
  }
  return undefined;
}
