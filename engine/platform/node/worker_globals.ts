// The global scope of a web worker for modules that run in threads of worker.ts. Threads of other origin stay as they are.

import { nodeModule } from "./node_module.ts";

const { parentPort, workerData } = nodeModule<typeof import("node:worker_threads")>(
  "node:worker_threads",
);

if (parentPort && (workerData as { readonly isOfTroodon?: boolean } | null)?.isOfTroodon) {
  const port = parentPort;
  Object.assign(globalThis, {
    WorkerGlobalScope: Object,
    postMessage: (data: unknown, transfer?: readonly Transferable[]) =>
      port.postMessage(data, transfer as never),
    close: () => process.exit(),
  });
  let handler: ((event: { readonly data: unknown }) => void) | null = null;
  Object.defineProperty(globalThis, "onmessage", {
    get: () => handler,
    set(next: typeof handler) {
      if (!handler) port.on("message", (data) => handler?.({ data }));
      handler = next;
    },
  });
}
