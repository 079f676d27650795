// How much memory a GPU gives, found by asking for it: WebGPU tells no size. Buffers are made until one is refused or as much
// is there as could be wanted, and given back at once.

import { builtIn, fastAdapter, STORAGE_USAGE } from "../../gpu/gpu.ts";
import type { DeviceOptions } from "../run/devices.ts";

const BLOCK = 2 ** 28;
/** More is not looked for where nobody says how much is wanted. */
const MOST = 2 ** 38;
/** What drivers, readbacks and pipelines take of it. */
const SPARE = 0.95;

/** Bytes that buffers may take together, at most `wanted`; 0 without a GPU. */
export async function measureGpuBytes(
  { gpu }: Pick<DeviceOptions, "gpu">,
  wanted = MOST,
): Promise<number> {
  const adapter = await fastAdapter(gpu ?? builtIn());
  const device = await adapter?.requestDevice();
  if (!device) return 0;
  const block = Math.min(BLOCK, device.limits.maxBufferSize);
  const buffers: GPUBuffer[] = [];
  let bytes = 0;
  try {
    while (bytes < wanted / SPARE) {
      device.pushErrorScope("out-of-memory");
      const buffer = device.createBuffer({ size: block, usage: STORAGE_USAGE });
      if (await device.popErrorScope()) break;
      buffers.push(buffer);
      bytes += block;
    }
  } finally {
    for (const buffer of buffers) buffer.destroy();
    device.destroy();
  }
  return Math.min(wanted, Math.floor(bytes * SPARE));
}
