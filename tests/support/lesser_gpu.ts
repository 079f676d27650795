// The adapter of this machine as if it were a lesser one: without features, with small limits, or with a device that a test
// may change. What a shader asks of it beyond that is refused, as a driver would.

import type { GpuProvider } from "../../gpu/capabilities.ts";

/** What an adapter lacks. */
export interface Lack {
  readonly features?: readonly string[];
  /** Its limits, where they are lower. */
  readonly limits?: Readonly<Record<string, number>>;
  readonly subgroups?: boolean;
  /** Sees the device that is opened. */
  readonly change?: (device: GPUDevice) => void;
}

/** A provider of such an adapter. */
export async function lesserGpu(
  { features: without = [], limits = {}, subgroups = true, change = () => {} }: Lack,
): Promise<GpuProvider> {
  const adapter = (await (navigator as Navigator & { gpu: GPU }).gpu.requestAdapter())!;
  const left = new Set([...adapter.features].filter((name) => !without.includes(name)));
  const members: Record<string, unknown> = {
    features: left,
    limits: new Proxy(adapter.limits, {
      get: (target, name) => limits[name as string] ?? Reflect.get(target, name, target),
    }),
    info: { vendor: "test", architecture: "", device: "", description: "a lesser card" },
    async requestDevice(descriptor: GPUDeviceDescriptor) {
      const asked = [...descriptor.requiredFeatures ?? []];
      const missing = asked.find((name) => !left.has(name) && name !== "subgroups");
      if (missing || !subgroups && asked.includes("subgroups" as GPUFeatureName)) {
        throw new TypeError(`no feature ${missing ?? "subgroups"}`);
      }
      const device = await adapter.requestDevice(descriptor);
      const { createShaderModule } = device;
      device.createShaderModule = (module) => {
        if (!subgroups && /subgroup/.test(module.code)) throw new TypeError("no subgroups");
        if (without.includes("shader-f16") && /enable f16/.test(module.code)) {
          throw new TypeError("no halves");
        }
        return createShaderModule.call(device, module);
      };
      change(device);
      return device;
    },
  };
  const lesser = new Proxy(adapter, {
    get: (target, name) => members[name as string] ?? Reflect.get(target, name, target),
  });
  return { requestAdapter: () => Promise.resolve(lesser) };
}
