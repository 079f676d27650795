// The adapter of this machine under another name: one that says it is no software, and whose device a test may change.

/** A provider of such an adapter; `change` sees the device that is opened. */
export async function disguisedGpu(change: (device: GPUDevice) => GPUDevice = (device) => device) {
  const adapter = (await (navigator as Navigator & { gpu: GPU }).gpu.requestAdapter())!;
  const members: Record<string, unknown> = {
    info: { vendor: "test", architecture: "", device: "", description: "disguised" },
    requestDevice: async (descriptor: GPUDeviceDescriptor) =>
      change(await adapter.requestDevice(descriptor)),
  };
  const disguise = new Proxy(adapter, {
    get: (target, name) => members[name as string] ?? Reflect.get(target, name, target),
  });
  return { requestAdapter: () => Promise.resolve(disguise) };
}
