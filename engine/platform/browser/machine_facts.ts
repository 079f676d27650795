// What a browser offers the engine, in lines for people.

import { isSoftware } from "../../../gpu/capabilities.ts";
import { builtIn, fastAdapter } from "../../../gpu/gpu.ts";
import { probeCapabilities } from "../../../wasm/probe.ts";

/** The lines. */
export async function describeCapabilities(): Promise<string[]> {
  const { simd, dotI8U8Exact, dotI8I8Exact } = probeCapabilities();
  const adapter = await fastAdapter(builtIn()).catch(() => null);
  return [
    navigator.userAgent,
    `${navigator.hardwareConcurrency} processors, ` +
    (globalThis.crossOriginIsolated
      ? "threads share memory"
      : "one thread: the page is not cross-origin isolated (COOP and COEP headers)"),
    `WASM SIMD ${simd}, dot of 8 bit exact: unsigned ${dotI8U8Exact}, signed ${dotI8I8Exact}`,
    adapter ? `WebGPU: ${describeAdapter(adapter)}` : "no WebGPU adapter",
  ];
}

function describeAdapter(adapter: GPUAdapter): string {
  const { vendor, architecture, device, description } = adapter.info;
  const names = [vendor, architecture, device, description].filter((name) => name !== "");
  const features = [...adapter.features].sort().join(" ");
  const { maxBufferSize, maxStorageBufferBindingSize } = adapter.limits;
  return `${names.join(", ")}${
    isSoftware(adapter) ? " (computes on the CPU)" : ""
  }; ${features}; ` +
    `buffers of ${maxBufferSize} bytes, ${maxStorageBufferBindingSize} in a binding`;
}
