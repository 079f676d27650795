// Adapters that have less than kernels like: what is missing is not used, and answers stay the same. One that goes away is
// named with what to do.

import { assert, assertEquals, assertRejects } from "@std/assert";
import { generate, load, type Model } from "../mod.ts";
import { DeviceError, ResourceError } from "../engine/errors.ts";
import { createGpuBackend } from "../engine/run/gpu/backend.ts";
import { timeKernels } from "../engine/run/gpu/kernel_speed.ts";
import { openGpu } from "../gpu/gpu.ts";
import { gpuTest } from "./support/gpu.ts";
import { type Lack, lesserGpu } from "./support/lesser_gpu.ts";
import { TINY_LLAMA, writeLongTiny } from "./support/models.ts";

const ON = { contextLength: 64, batch: 16, selfTest: false } as const;

async function answer(options: Parameters<typeof load>[1]): Promise<readonly number[]> {
  using model = await load(TINY_LLAMA, { ...ON, ...options });
  return (await generate(model, "ab", { maxTokens: 8, temperature: 0 }).result).ids;
}

const LACKS: Readonly<Record<string, Lack>> = {
  "halves and timestamps": { features: ["shader-f16", "timestamp-query"] },
  "subgroups, and has no more than the standard promises": {
    subgroups: false,
    limits: {
      ...{ maxComputeWorkgroupStorageSize: 16384, maxComputeInvocationsPerWorkgroup: 256 },
      ...{ maxStorageBuffersPerShaderStage: 8, maxBufferSize: 256 << 20 },
      ...{ maxStorageBufferBindingSize: 128 << 20 },
    },
  },
};

for (const [what, lack] of Object.entries(LACKS)) {
  gpuTest(`an adapter that lacks ${what} computes the same`, async () => {
    const gpu = await lesserGpu(lack);
    const opened = await openGpu({ provider: gpu }), { capabilities } = opened;
    assertEquals(capabilities.adapter, "a lesser card");
    if (lack.features) assertEquals([capabilities.f16, capabilities.timestamp], [false, false]);
    else {
      assertEquals([capabilities.subgroupSize, capabilities.subgroupMatrix], [0, false]);
      assertEquals([capabilities.maxWorkgroupBytes, capabilities.maxStorageBindings], [16384, 8]);
    }
    opened.dispose();
    assertEquals(await answer({ device: "gpu", gpu }), await answer({ device: "reference" }));
  });
}

gpuTest("kernels of an adapter without timestamps are not timed", async () => {
  const provider = await lesserGpu({ features: ["timestamp-query"] });
  const gpu = await openGpu({ provider });
  const wanted = (name: string) => name === "gpu_rms_norm_f32";
  const speeds = timeKernels(createGpuBackend({ gpu }), { wanted });
  assertEquals(await Array.fromAsync(speeds), []);
  gpu.dispose();
});

gpuTest(
  "a device that is lost while pipelines compile is named, and the next load has another",
  async () => {
    let left = 3;
    const gpu = await lesserGpu({
      change(device) {
        const { createComputePipelineAsync } = device;
        device.createComputePipelineAsync = (descriptor) => {
          if (--left === 0) device.destroy();
          return createComputePipelineAsync.call(device, descriptor);
        };
      },
    });
    const error = await assertRejects(() => answer({ device: "gpu", gpu }), DeviceError);
    assert(/a lesser card: .*Load the model again/.test(error.message), error.message);
    assertEquals((await answer({ device: "gpu", gpu })).length, 8);
  },
);

/** Bytes of a card that the tiny model does not fit, in one buffer and in all. */
const SMALL_CARD = 40_000;

/** A device whose memory is used up after so many bytes, and which says so as drivers do. */
function withMemory(device: GPUDevice, bytes: number): void {
  const { createBuffer, pushErrorScope, popErrorScope } = device;
  const filters: string[] = [], failed: boolean[] = [];
  let used = 0;
  device.createBuffer = (descriptor) => {
    used += descriptor.size;
    const at = filters.lastIndexOf("out-of-memory");
    if (used > bytes && at >= 0) failed[at] = true;
    return createBuffer.call(device, descriptor);
  };
  device.pushErrorScope = (filter) => {
    failed[filters.push(filter) - 1] = false;
    return pushErrorScope.call(device, filter);
  };
  device.popErrorScope = async () => {
    const isFull = failed[filters.length - 1];
    filters.pop();
    const error = await popErrorScope.call(device);
    return isFull ? new GPUOutOfMemoryError("not enough memory left") : error;
  };
}

/** A device whose buffers have at most so many bytes. */
function withBuffers(device: GPUDevice, maxBufferSize: number): void {
  const limits = new Proxy(device.limits, {
    get: (target, name) =>
      name === "maxBufferSize" ? maxBufferSize : Reflect.get(target, name, target),
  });
  Object.defineProperty(device, "limits", { value: limits });
}

const SMALL_CARDS: Readonly<Record<string, Lack>> = {
  "one buffer": { change: (device) => withBuffers(device, SMALL_CARD) },
  "all its memory": { change: (device) => withMemory(device, SMALL_CARD) },
};

for (const [what, lack] of Object.entries(SMALL_CARDS)) {
  gpuTest(
    `a model beyond ${what} of a card is refused with sizes; auto computes it on the CPU`,
    async () => {
      const gpu = await lesserGpu(lack);
      const error = await assertRejects(() => answer({ device: "gpu", gpu }), ResourceError);
      assert(
        /needs \d+ MiB for weights.* a lesser card has no memory for it: .*device wasm/.test(
          error.message,
        ),
        error.message,
      );
      using model = await load(TINY_LLAMA, { ...ON, device: "auto", gpu });
      assert(/on the CPU, because the GPU cannot run this model/.test(model.notes.join()));
      const { ids } = await generate(model, "ab", { maxTokens: 8, temperature: 0 }).result;
      assertEquals(ids, await answer({ device: "wasm" }));
    },
  );
}

/** What a step asks of a device. */
const CALLS = ["submit", "writeBuffer", "createCommandEncoder", "createBindGroup"] as const;
/** Answers that go ahead, that pick among what is allowed, and that are drawn. */
const ANSWERS = [{}, { regex: "[\\s\\S]{40}" }, { temperature: 0.8, topK: 8, seed: 3 }] as const;

/** Has the call of a name on the way to an answer that `left` counts down to fail. */
interface Fault {
  name: typeof CALLS[number] | undefined;
  left: number;
}

function withFault(device: GPUDevice, fault: Fault): void {
  for (const name of CALLS) {
    const object = (name in device ? device : device.queue) as unknown as Record<
      string,
      (...given: unknown[]) => unknown
    >;
    const call = object[name]!;
    object[name] = (...given) => {
      if (fault.name === name && --fault.left === 0) throw new RangeError("not this time");
      return call.apply(object, given);
    };
  }
}

gpuTest("answers behind one that failed, wherever it did, are what they were", async () => {
  const fault: Fault = { name: undefined, left: 0 };
  const gpu = await lesserGpu({ change: (device) => withFault(device, fault) });
  const open = () => load(TINY_LLAMA, { ...ON, device: "gpu", gpu, stepsAhead: 4 });
  const ask = async (model: Model, options: typeof ANSWERS[number]) => {
    const given = { maxTokens: 12, temperature: 0, ignoreEos: true, ...options };
    return (await generate(model, "ab", given).result).ids;
  };
  using used = await open();
  const expected: (readonly number[])[] = [];
  for (const options of ANSWERS) expected.push(await ask(used, options));
  const failed = new Set<string>();
  for (const name of CALLS) {
    for (const left of [1, 2, 3, 4, 7]) {
      // What dispatches bind is made by the first answer.
      using fresh = name === "createBindGroup" ? await open() : undefined;
      const model = fresh ?? used;
      for (const [i, options] of ANSWERS.entries()) {
        Object.assign(fault, { name, left });
        await ask(model, options).catch(({ message }) => assertEquals(message, "not this time"));
        if (fault.left <= 0) failed.add(name);
        fault.name = undefined;
        const what = `${JSON.stringify(options)}: call ${left} of ${name}`;
        assertEquals(await ask(model, options), expected[i], what);
      }
    }
  }
  assertEquals([...failed], [...CALLS]);
});

/** A device whose queue takes each command buffer once, as drivers may, and whose calls are counted. */
function withSingleUse(device: GPUDevice, seen: { submitted: number; again: number }): void {
  const { queue } = device, { submit } = queue, used = new WeakSet<GPUCommandBuffer>();
  queue.submit = (buffers) => {
    const all = [...buffers];
    for (const one of all) {
      seen.submitted++;
      if (used.has(one)) seen.again++;
      used.add(one);
    }
    return submit.call(queue, all);
  };
}

gpuTest(
  "no command buffer is submitted twice, whatever is generated, ahead or aborted",
  async () => {
    const seen = { submitted: 0, again: 0 };
    const gpu = await lesserGpu({ change: (device) => withSingleUse(device, seen) });
    using model = await load(TINY_LLAMA, {
      ...ON,
      ...{ device: "gpu", gpu, stepsAhead: 4, sessions: 2 },
    });
    for (const options of ANSWERS) {
      const given = { maxTokens: 12, ignoreEos: true, temperature: 0, ...options };
      const both = ["ab", "ba"].map((text) => generate(model, text, given).result);
      assertEquals((await Promise.all(both)).map(({ ids }) => ids.length), [12, 12]);
      const abort = new AbortController();
      const left = generate(model, "abab", { ...given, signal: abort.signal });
      for await (const _ of left) abort.abort();
      assertEquals((await left.result).finishReason, "abort");
    }
    using session = model.createSession();
    await session.eval([3, 4, 5]);
    session.rewind(1);
    await session.eval([5, 6]);
    assert(seen.submitted > 30, `${seen.submitted}`);
    assertEquals(seen.again, 0);
  },
);

/** Calls of a device that make something, and bytes that are copied on it. */
function countMaking(device: GPUDevice, made: Record<string, number>): void {
  for (const name of ["createBuffer", "createTexture", "createComputePipelineAsync"] as const) {
    const call = device[name] as (...given: unknown[]) => unknown;
    Object.assign(device, {
      [name](...given: unknown[]) {
        made[name] = (made[name] ?? 0) + 1;
        return call.apply(device, given);
      },
    });
  }
  const { createCommandEncoder } = device;
  device.createCommandEncoder = (...given) => {
    const encoder = createCommandEncoder.apply(device, given);
    const copy = encoder.copyBufferToBuffer as (...given: unknown[]) => void;
    Object.assign(encoder, {
      copyBufferToBuffer(...args: unknown[]) {
        made.copied = (made.copied ?? 0) + Number(args.at(-1));
        copy.apply(encoder, args);
      },
    });
    return encoder;
  };
}

gpuTest(
  "an answer over several pages makes nothing on the device, and copies no cache [TL-5, TL-12]",
  async () => {
    const made: Record<string, number> = {};
    const gpu = await lesserGpu({ change: (device) => countMaking(device, made) });
    await using file = await writeLongTiny();
    using model = await load(file.path, {
      ...{ device: "gpu", gpu, contextLength: 256, batch: 16, selfTest: false },
    });
    assert(made.createBuffer! > 5 && made.createComputePipelineAsync! > 5);
    for (const name of Object.keys(made)) delete made[name];
    const given = { maxTokens: 200, temperature: 0, ignoreEos: true };
    assertEquals((await generate(model, "ab", given).result).ids.length, 200);
    const { copied = 0, ...calls } = made;
    assertEquals(calls, {});
    // The ids that were chosen; keys and values of a token are 128 bytes.
    assert(copied < 16 * 200, `${copied}`);
  },
);
