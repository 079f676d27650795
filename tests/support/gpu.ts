// Tests that need a WebGPU adapter, a real one or Mesa's software one.

import { type Need, testWith } from "./skip.ts";

const adapter = await (navigator as Navigator & { gpu?: GPU }).gpu?.requestAdapter()
  .catch(() => null);

/** A need of `testWith` for an adapter. */
export const adapterNeed: Need = {
  what: "a WebGPU adapter",
  present: adapter !== null && adapter !== undefined,
  remedy: "apt install mesa-vulkan-drivers libvulkan1",
};

/** A test on whatever adapter there is. */
export function gpuTest(
  name: string,
  fn: (t: Deno.TestContext) => void | Promise<void>,
): void {
  testWith([adapterNeed], name, fn);
}
