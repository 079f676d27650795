import { assert, assertEquals, assertRejects } from "@std/assert";
import { SHAPES, syntheticLlama } from "../../../bench/gpu/synthetic.ts";
import { GpuFailure } from "../../../gpu/failure.ts";
import { type Gpu, openGpu } from "../../../gpu/gpu.ts";
import { gpuTest } from "../../../tests/support/gpu.ts";
import { ResourceError } from "../../errors.ts";
import { openDevice } from "../devices.ts";
import { prepareModel } from "../../models/prepare.ts";
import { createGpuBackend } from "./backend.ts";

/** The same device, as if it had so many bytes of memory. */
function withMemory(gpu: Gpu, most: number): Gpu {
  let used = 0;
  return Object.create(gpu, {
    createBuffer: {
      value(label: string, bytes: number, usage: number): GPUBuffer {
        used += bytes;
        if (used > most) throw new GpuFailure("memory", `${label} is over ${most} bytes`);
        return gpu.createBuffer(label, bytes, usage);
      },
    },
  });
}

gpuTest(
  "a model over the device's memory is refused with numbers and a remedy, before it is read",
  async () => {
    const shape = SHAPES.find(({ name }) => name === "smollm2")!;
    const options = { contextLength: 1024, batch: 8 };
    const { plan } = await prepareModel(
      syntheticLlama(shape),
      { options, kernels: await openDevice("gpu", {}) },
    );
    const gpu = await openGpu();
    let reads = 0;
    const error = await assertRejects(() =>
      createGpuBackend({ gpu: withMemory(gpu, 16 << 20) })
        .prepare(plan, { slots: 1, onProgress: () => reads++ }), ResourceError);
    const { message } = error as Error;
    const [, weights, session] =
      /needs (\d+) MiB for weights, \d+ MiB for activations and (\d+) MiB for each session/
        .exec(message) ?? [];
    // 4.5 bits or more for each of 135 million weights; keys and values of two bytes.
    assert(Number(weights) > 70 && Number(weights) < 160, message);
    assertEquals(Number(session), Math.round(2 * 30 * 1024 * 3 * 64 * 2 / 2 ** 20), message);
    assert(
      /is over 16777216 bytes\. Take a smaller model, lower contextLength/.test(message),
      message,
    );
    assertEquals([reads, gpu.liveBuffers], [0, 0]);
    gpu.dispose();
  },
);
