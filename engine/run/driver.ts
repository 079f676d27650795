// The driver of WebGPU, loaded beside this thread. Deno's `requestAdapter` holds the thread that calls it while the system's
// libraries are read, some 90 ms with NVIDIA's on Linux; the second adapter of a process takes 4. So a thread of its own asks
// for the first one while this one reads code and plans, and the first token is there some 80 ms sooner.

import { createThread } from "../../wasm/threads.ts";
import { mayHaveGpu } from "../io.ts";
import type { DeviceOptions } from "./devices.ts";

const SOURCE = "await navigator.gpu.requestAdapter({ powerPreference: 'high-performance' })";

/**
 * Begins to load the driver, if Deno's WebGPU is or may be what computes.
 *
 * @returns What keeps it loaded until an adapter of this thread does.
 */
export function loadDriver(
  { device = "auto", gpu }: Pick<DeviceOptions, "gpu"> & { readonly device?: string | undefined },
): Disposable | undefined {
  const isMeant = device === "gpu" || device === "auto" && mayHaveGpu();
  // Elsewhere than in Deno itself there is none, or it is in a process of its own.
  if (!isMeant || gpu || !("Deno" in globalThis)) return undefined;
  try {
    const thread = createThread(SOURCE, { onError: () => {} });
    return { [Symbol.dispose]: () => thread.terminate() };
  } catch {
    return undefined; // where the system has no thread left this one waits for the driver
  }
}
