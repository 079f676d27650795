// Tests that need a WebGPU adapter, a real one or Mesa's software one (Debian: mesa-vulkan-drivers, libvulkan1).
// Where there is none they are listed as ignored, with the reason in their name.

const adapter = await (navigator as Navigator & { gpu?: GPU }).gpu?.requestAdapter()
  .catch(() => null);

/** Whether this machine has an adapter. */
export const hasAdapter: boolean = adapter !== null && adapter !== undefined;

/** A test on the GPU. */
export function gpuTest(name: string, fn: () => void | Promise<void>): void {
  const ignore = !hasAdapter;
  Deno.test({ name: ignore ? `${name} (no WebGPU adapter here)` : name, ignore, fn });
}
