// The web's Worker on node:worker_threads: wasm/pool.ts gives source as a data: URL, others a module's address. What a
// thread finds as globals (`onmessage`, `postMessage`, `close`, and of `Deno` what reads files) is written in front of
// such source; modules import worker_globals.ts themselves.

import type { Worker as NodeThread } from "node:worker_threads";
import { nodeModule } from "./node_module.ts";

const { Worker: Thread } = nodeModule<typeof import("node:worker_threads")>("node:worker_threads");

/** What stands in front of source text: engine/io.ts reads files by these names. */
const PRELUDE = `
const { parentPort } = require("node:worker_threads"), fs = require("node:fs");
globalThis.postMessage = (data, transfer) => parentPort.postMessage(data, transfer);
globalThis.close = () => process.exit();
Object.defineProperty(globalThis, "onmessage", {
  set: (handler) => parentPort.on("message", (data) => handler({ data })),
});
globalThis.Deno ??= {
  SeekMode: { Start: 0 },
  permissions: { querySync: () => ({ state: "granted" }) },
  openSync(path) {
    const fd = fs.openSync(path);
    let at = 0;
    return {
      close: () => fs.closeSync(fd),
      statSync: () => fs.fstatSync(fd),
      seekSync: (offset) => void (at = offset),
      readSync(target) {
        const count = fs.readSync(fd, target, 0, target.length, at);
        at += count;
        return count || null;
      },
    };
  },
};
`;

/** A thread, with what of the web's Worker the engine uses. */
export class NodeWorker {
  onmessage: ((event: { readonly data: unknown }) => void) | null = null;
  onmessageerror: ((event: { readonly data: unknown }) => void) | null = null;
  onerror: ((event: { readonly message: string; preventDefault(): void }) => void) | null = null;
  readonly #thread: NodeThread;

  constructor(url: string | URL, _options?: WorkerOptions) {
    const { protocol, href } = new URL(url);
    const source = protocol === "data:"
      ? PRELUDE + decodeURIComponent(href.slice(href.indexOf(",") + 1))
      : undefined;
    this.#thread = source ? new Thread(source, { eval: true }) : new Thread(new URL(url), {
      workerData: { isOfTroodon: true },
    });
    this.#thread.on("message", (data) => this.onmessage?.({ data }));
    this.#thread.on("messageerror", (data) => this.onmessageerror?.({ data }));
    this.#thread.on("error", ({ message }) => {
      this.onerror?.({ message, preventDefault: () => {} });
    });
  }

  postMessage(data: unknown, transfer?: readonly Transferable[]): void {
    this.#thread.postMessage(data, transfer as never);
  }

  terminate(): void {
    void this.#thread.terminate();
  }
}
