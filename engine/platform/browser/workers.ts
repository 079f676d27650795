// Threads of the engine in a browser. wasm/threads.ts gives source as a data: URL, whose worker would be of another origin
// and may share no memory; the same source as a blob may.

/**
 * Makes a worker of source text.
 * @category Browser
 */
export type WorkerFactory = (source: string) => Worker;

const factory: { make: WorkerFactory } = {
  make(source) {
    const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    try {
      return new globalThis.Worker(url, { type: "module" });
    } finally {
      // The worker has asked for it by now.
      setTimeout(() => URL.revokeObjectURL(url), 10_000);
    }
  },
};

/**
 * Has threads made otherwise: under a name, or where a page's policy forbids blobs.
 *
 * @example
 * ```ts ignore
 * import { makeWorkersBy } from "troodon/browser";
 *
 * makeWorkersBy((source) => {
 *   const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
 *   return new Worker(url, { type: "module", name: "troodon" });
 * });
 * ```
 * @category Browser
 */
export function makeWorkersBy(make: WorkerFactory): void {
  factory.make = make;
}

/** What `new Worker(url)` becomes. */
export const createWorker = function (url: string | URL): Worker {
  const { protocol, href } = new URL(url);
  if (protocol !== "data:") return new globalThis.Worker(url, { type: "module" });
  return factory.make(decodeURIComponent(href.slice(href.indexOf(",") + 1)));
} as unknown as new (url: string | URL, options?: WorkerOptions) => Worker;
