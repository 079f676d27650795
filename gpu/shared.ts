// One open device for all that a process loads from a provider: its compiled shaders serve every model, and
// opening takes longer than loading a small one. A device that was lost is opened anew.

import type { GpuProvider } from "./capabilities.ts";
import { builtIn, type Gpu, openGpu } from "./gpu.ts";

/** Whose device is shared. */
export interface SharedGpuOptions {
  /** Who gives adapters; default: `navigator.gpu`. */
  readonly provider?: GpuProvider | undefined;
}

const opened = new WeakMap<GpuProvider, Promise<Gpu>>();

/**
 * The open device of a provider.
 *
 * @throws {GpuFailure} `no adapter`, if there is none.
 */
export async function sharedGpu({ provider = builtIn() }: SharedGpuOptions = {}): Promise<Gpu> {
  if (!provider) return await openGpu();
  const known = await opened.get(provider)?.catch(() => undefined);
  if (known && !known.isLost) return known;
  const fresh = openGpu({ provider });
  opened.set(provider, fresh);
  return await fresh;
}
