// A process whose system gives machines of WASM no memory, as a worker: what `load` and `loadGraph` say there. Patched here, the
// constructor of memories is nobody else's.

import { load, loadGraph } from "../../mod.ts";
import { fixturePath } from "./fixtures.ts";
import { TINY_LLAMA } from "./models.ts";

const { Memory } = WebAssembly;
WebAssembly.Memory = class {
  constructor() {
    throw new RangeError("WebAssembly.Memory(): could not allocate memory");
  }
} as unknown as typeof Memory;
const ofAll = await errorOf(() => load(TINY_LLAMA, { device: "wasm" }));

// The few pages that read a header are there, those of a machine are not.
WebAssembly.Memory = class extends Memory {
  constructor(descriptor: WebAssembly.MemoryDescriptor) {
    if (descriptor.maximum !== undefined) {
      throw new RangeError("WebAssembly.Memory(): could not allocate memory");
    }
    super(descriptor);
  }
} as typeof Memory;

async function errorOf(action: () => Promise<unknown>): Promise<readonly [string, string]> {
  try {
    await action();
    return ["none", ""];
  } catch (error) {
    return [(error as Error).name, (error as Error).message];
  }
}

const graph = fixturePath("public/pc-onnx-23/dyn_squeeze_flip.onnx");
const x = { data: new Float32Array(8), dims: [4, 2] };
(self as unknown as { postMessage(message: unknown): void }).postMessage([
  ofAll,
  await errorOf(() => load(TINY_LLAMA, { device: "wasm" })),
  await errorOf(async () => {
    using loaded = await loadGraph(graph, { device: "wasm" });
    await loaded.run({ x });
  }),
]);
