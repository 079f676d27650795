// Bandwidths for reports (report.ts), measured where they are asked for: how fast a device reads memory, how fast bytes go to
// it and back, and how long it takes to do nothing. A second or less; the best of several times.

import { isSoftware } from "../../gpu/capabilities.ts";
import { builtIn, fastAdapter, STORAGE_USAGE } from "../../gpu/gpu.ts";
import type { DeviceOptions } from "../run/devices.ts";
import type { Bandwidths } from "./report.ts";

const BYTES = 2 ** 26;
const TIMES = 5;
/** GPUMapMode.READ, and the usages of a buffer that is read on the host. */
const READ = 1, READBACK_USAGE = 1 | 8;

/** Of this process: a copy reads and writes, a part needs no message. */
export function measureHost(): Bandwidths {
  const from = new Uint8Array(BYTES), to = new Uint8Array(BYTES);
  from.fill(1);
  const seconds = best(() => to.set(from));
  return { read: 2 * BYTES / seconds, link: BYTES / seconds, latency: 2e-5, hardware: "cpu" };
}

/** Of a GPU; undefined where there is none. */
export async function measureGpu(
  { gpu }: Pick<DeviceOptions, "gpu">,
): Promise<Bandwidths | undefined> {
  const adapter = await fastAdapter(gpu ?? builtIn());
  const device = await adapter?.requestDevice();
  if (!device) return undefined;
  const buffer = (size: number, usage: number) => device.createBuffer({ size, usage });
  const from = buffer(BYTES, STORAGE_USAGE), to = buffer(BYTES, STORAGE_USAGE);
  const readback = buffer(BYTES / 4, READBACK_USAGE);
  const copy = async (target: GPUBuffer, size: number) => {
    const encoder = device.createCommandEncoder();
    encoder.copyBufferToBuffer(from, 0, target, 0, size);
    device.queue.submit([encoder.finish()]);
    await device.queue.onSubmittedWorkDone();
  };
  const fetch = async (size: number) => {
    await copy(readback, size);
    await readback.mapAsync(READ, 0, size);
    readback.getMappedRange(0, size).slice(0);
    readback.unmap();
  };
  const latency = await bestOf(() => fetch(256));
  const read = 2 * BYTES / Math.max(1e-9, await bestOf(() => copy(to, BYTES)) - latency / 2);
  const link = BYTES / 4 / Math.max(1e-9, await bestOf(() => fetch(BYTES / 4)) - latency);
  for (const one of [from, to, readback]) one.destroy();
  device.destroy();
  return { read, link, latency, hardware: isSoftware(adapter!) ? "cpu" : "gpu" };
}

function best(work: () => void): number {
  let least = Infinity;
  for (let i = 0; i < TIMES; i++) {
    const start = performance.now();
    work();
    least = Math.min(least, performance.now() - start);
  }
  return Math.max(least, 1e-3) / 1000;
}

async function bestOf(work: () => Promise<void>): Promise<number> {
  let least = Infinity;
  for (let i = 0; i < TIMES; i++) {
    const start = performance.now();
    await work();
    least = Math.min(least, performance.now() - start);
  }
  return Math.max(least, 1e-3) / 1000;
}
