// Devices that fail under a model or a graph: what is thrown is the engine's own error, with the device and what to do,
// then and at every later call, and everything can still be disposed.

import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import type { GpuProvider } from "../gpu/gpu.ts";
import {
  DeviceError,
  generate,
  load,
  loadGraph,
  ResourceError,
  type TroodonError,
} from "../mod.ts";
import { disguisedGpu } from "./support/disguised_gpu.ts";
import { fixturePath } from "./support/fixtures.ts";
import { gpuTest } from "./support/gpu.ts";
import { TINY_LLAMA } from "./support/models.ts";

/** How a device fails. */
const FAULTS: Readonly<
  Record<string, { fail(device: GPUDevice): void; kind: typeof TroodonError; says: RegExp }>
> = {
  "is lost": {
    fail: (device) => device.destroy(),
    kind: DeviceError,
    says: /disguised: .*\. Load the model again$/,
  },
  "is lost in the middle of a step": {
    fail(device) {
      const { queue } = device, { submit } = queue;
      queue.submit = (commands) => {
        submit.call(queue, commands);
        device.destroy();
      };
    },
    kind: DeviceError,
    says: /disguised: .*\. Load the model again$/,
  },
  "has no memory left": {
    fail(device) {
      class GPUOutOfMemoryError extends Error {}
      const error = new GPUOutOfMemoryError("no memory is left");
      device.dispatchEvent(Object.assign(new Event("uncapturederror"), { error }));
    },
    kind: ResourceError,
    says: /disguised has no memory for it: no memory is left/,
  },
  "refuses commands": {
    fail(device) {
      device.createCommandEncoder = () => {
        throw new DOMException("no encoder", "OperationError");
      };
    },
    kind: DeviceError,
    says: /disguised: no encoder/,
  },
};

/** A provider, and the device that it gave. */
async function watched() {
  const given: { device?: GPUDevice } = {};
  const provider = await disguisedGpu((device) => given.device = device) as GpuProvider;
  return { provider, deviceOf: () => given.device! };
}

for (const [what, { fail, kind, says }] of Object.entries(FAULTS)) {
  gpuTest(`a language model whose GPU ${what} between two tokens says so`, async () => {
    const { provider, deviceOf } = await watched();
    const model = await load(TINY_LLAMA, {
      ...{ device: "gpu", gpu: provider, precision: "exact", contextLength: 64, selfTest: false },
    });
    const session = model.createSession();
    const answer = async (failAt: number) => {
      let count = 0;
      const options = { maxTokens: 24, temperature: 0, ignoreEos: true };
      for await (const _ of generate(session, "ab", options)) {
        if (++count === failAt) fail(deviceOf());
      }
    };
    const error = await assertRejects(() => answer(5), kind) as Error;
    assertMatch(error.message, says);
    if (what !== "has no memory left") {
      assertMatch((await assertRejects(() => answer(0), kind) as Error).message, says);
    }
    session.dispose();
    model.dispose();
  });

  gpuTest(`a graph whose GPU ${what} between two runs says so`, async () => {
    const { provider, deviceOf } = await watched();
    const graph = await loadGraph(fixturePath("public/pc-onnx-25/attn_kheads1.onnx"), {
      ...{ device: "gpu", gpu: provider },
    });
    const inputs = Object.fromEntries(graph.inputs.map(({ name, dims }) => {
      const sizes = dims as readonly number[];
      return [name, { data: new Float32Array(sizes.reduce((a, b) => a * b, 1)), dims: sizes }];
    }));
    await graph.run(inputs);
    fail(deviceOf());
    const error = await assertRejects(() => graph.run(inputs), kind) as Error;
    assertMatch(error.message, says);
    if (what !== "has no memory left") await assertRejects(() => graph.run(inputs), kind);
    graph.dispose();
  });
}

Deno.test("a system that refuses WASM its memory is an error with the device and a remedy", async () => {
  const worker = new Worker(import.meta.resolve("./support/refused_memory_worker.ts"), {
    type: "module",
  });
  const said = await new Promise<readonly (readonly [string, string])[]>((resolve, reject) => {
    worker.onmessage = ({ data }) => resolve(data);
    worker.onerror = ({ message }) => reject(new Error(message));
  });
  worker.terminate();
  assertEquals(said.length, 3);
  const [[name, message], ...ofMachines] = said as [typeof said[0], ...typeof said];
  assertEquals(name, "ResourceError");
  assert(message.includes("Cannot reserve") && message.includes("Free memory"), message);
  for (const [name, message] of ofMachines) {
    assertEquals(name, "ResourceError");
    assert(message.includes("device wasm: Cannot reserve 4294967296 bytes"), message);
    assert(message.includes("Free memory"), message);
  }
});

Deno.test("a system that refuses a WASM memory of 4 GiB gives a smaller one, and a note says so", async () => {
  const { Memory } = WebAssembly;
  WebAssembly.Memory = class extends Memory {
    constructor(descriptor: WebAssembly.MemoryDescriptor) {
      if (descriptor.maximum! > 2 ** 13) throw new RangeError("could not allocate memory");
      super(descriptor);
    }
  } as typeof Memory;
  try {
    using model = await load(TINY_LLAMA, { device: "wasm", contextLength: 64 });
    assertEquals(model.notes, [
      "a WASM memory has 536870912 bytes at most: the system refuses 4294967296",
    ]);
  } finally {
    WebAssembly.Memory = Memory;
  }
});

Deno.test("threads beyond the processors are as many as there are, and a note says so", async () => {
  const { hardwareConcurrency } = navigator, threads = hardwareConcurrency + 1;
  using model = await load(TINY_LLAMA, { device: "wasm", contextLength: 64, threads });
  assertEquals(model.notes, [
    `${threads} threads were asked for; this machine has ${hardwareConcurrency} processors`,
  ]);
});

Deno.test("a processor without relaxed SIMD computes what others do", async () => {
  const answer = async () => {
    using model = await load(TINY_LLAMA, { device: "wasm", contextLength: 64 });
    return (await generate(model, "ab", { maxTokens: 8, temperature: 0 }).result).ids;
  };
  const { validate } = WebAssembly, usual = await answer();
  let asked = 0;
  WebAssembly.validate = () => {
    asked++;
    return false;
  };
  try {
    assertEquals(await answer(), usual);
  } finally {
    WebAssembly.validate = validate;
  }
  assertEquals(asked > 0, true);
});

gpuTest("a GPU that is closed while it works, twenty times, lets the process end", async () => {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-check", import.meta.resolve("./support/close_while_working.ts")],
    signal: AbortSignal.timeout(240_000),
  }).output();
  const text = new TextDecoder();
  assertEquals([code, text.decode(stdout)], [0, "20 closed\n"], text.decode(stderr));
});

gpuTest(
  "no command buffer is handed over twice, also of steps that were ahead and were not taken",
  async () => {
    const used = new WeakSet<GPUCommandBuffer>();
    let submitted = 0, again = 0;
    const gpu = await disguisedGpu((device) => {
      const { queue } = device, { submit } = queue;
      queue.submit = (commands) => {
        const all = [...commands];
        for (const one of all) {
          submitted++;
          if (used.has(one)) again++;
          used.add(one);
        }
        submit.call(queue, all);
      };
      return device;
    }) as GpuProvider;
    const ways = [{ sessions: 3 }, { priority: "low", maxSubmitMs: 1 }, { stream: true }] as const;
    for (const way of ways) {
      using model = await load(TINY_LLAMA, {
        ...{ device: "gpu", gpu, precision: "exact", contextLength: 64, selfTest: false, ...way },
      });
      const options = { maxTokens: 24, ignoreEos: true };
      const greedy = generate(model, "ab", options).result;
      const drawn = generate(model, "ba", { ...options, temperature: 2, topK: 4, seed: 1 }).result;
      for await (const _ of generate(model, "a", options)) break; // what is ahead is left
      const proposed = generate(model, "abab", { ...options, draft: "lookup" }).result;
      for (const { ids } of await Promise.all([greedy, drawn, proposed])) {
        assertEquals(
          ids.length,
          24,
        );
      }
    }
    assertEquals([submitted > 50, again], [true, 0]);
  },
);
