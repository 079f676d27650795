import { assert, assertEquals, assertRejects } from "@std/assert";
import { createBufferScope, openGpu, STORAGE_USAGE } from "../../../gpu/gpu.ts";
import { readOnce } from "../../../gpu/readback.ts";
import { createUploads } from "../../../gpu/uploads.ts";
import { gpuTest } from "../../../tests/support/gpu.ts";
import { writeRandomLlama } from "../../../tests/support/random_llama.ts";
import { closing, readBeside } from "../../byte_source.ts";
import { openFile } from "../../io.ts";
import { openModel } from "../../models/open_model.ts";
import { prepareModel } from "../../models/prepare.ts";
import { openDevice } from "../devices.ts";
import { distinctWeights } from "../plan_weights.ts";
import { allocateGpuWeights, createMatrixLoader, loadGpuWeights } from "./weights.ts";

const SHAPE = {
  ...{ layers: 1, hidden: 256, heads: 4, kvHeads: 2, headDim: 64, feedForward: 768 },
  ...{ vocabulary: 301, context: 64 },
};

/** The plan of a file, which stays open. */
async function planOf(path: string) {
  const file = await openModel(path), kernels = await openDevice("gpu", {});
  const { plan } = await prepareModel(file, { options: { contextLength: 32 }, kernels });
  return { plan, file };
}

gpuTest("a device arranges the weights of a file as the host does, bit for bit", async () => {
  const gpu = await openGpu();
  for (const format of ["Q4_0", "Q8_0", "Q4_K_M"]) {
    const path = await Deno.makeTempFile({ suffix: ".gguf" });
    await writeRandomLlama(path, SHAPE, format);
    const { plan, file } = await planOf(path);
    using _file = closing(file);
    const loaded = async (onDevice: boolean, oneByOne = false) => {
      const scope = createBufferScope(gpu),
        weights = allocateGpuWeights(scope, { plan, packed: new Set() });
      const progress: number[] = [];
      const place = { buffer: scope.createBuffer("vectors", 4096, 8), offset: 0 };
      if (oneByOne) {
        // As weights that come and go are loaded.
        const load = createMatrixLoader(scope, onDevice);
        for (const { id, tensor } of distinctWeights(plan).values()) {
          const weight = weights.matrices.get(id);
          if (weight) await load(weight, tensor!);
        }
      } else {
        await loadGpuWeights(scope, { plan, weights, placeOf: () => place, onDevice }, {
          ...{ slots: 1, onProgress: ({ loadedBytes }) => void progress.push(loadedBytes) },
        });
      }
      const planes = [];
      for (const { parts } of new Set(weights.matrices.values())) {
        for (const { planes: own } of parts) {
          for (const slice of own) planes.push(await readOnce(scope, [slice]));
        }
      }
      scope.free();
      assertEquals(progress, progress.toSorted((a, b) => a - b));
      return { planes, bytes: progress.at(-1) };
    };
    const [device, host] = [await loaded(true), await loaded(false)];
    assertEquals((await loaded(true, true)).planes, host.planes, format);
    assert(host.planes.some((plane) => plane.some((byte) => byte !== 0)), format);
    assertEquals(device, host, format);
    await Deno.remove(path);
  }
  assertEquals(gpu.liveBuffers, 0);
  gpu.check();
  gpu.dispose();
});

gpuTest(
  "a file that ends while a device arranges its weights is an error that frees what was made",
  async () => {
    const gpu = await openGpu();
    const path = await Deno.makeTempFile({ suffix: ".gguf" });
    await writeRandomLlama(path, SHAPE, "Q4_0");
    const { plan, file } = await planOf(path);
    using _file = closing(file);
    await Deno.truncate(path, 200_000);
    const scope = createBufferScope(gpu),
      weights = allocateGpuWeights(scope, { plan, packed: new Set() });
    const place = { buffer: scope.createBuffer("vectors", 4096, 8), offset: 0 };
    const before = gpu.liveBuffers;
    await assertRejects(
      () =>
        loadGpuWeights(scope, { plan, weights, placeOf: () => place, onDevice: true }, {
          slots: 1,
        }),
      Error,
      "the file ends here",
    );
    assertEquals(gpu.liveBuffers, before);
    scope.free();
    gpu.dispose();
    await Deno.remove(path);
  },
);

gpuTest(
  "bytes of a file that are read beside arrive as they are, and what it lacks is an error",
  async () => {
    const gpu = await openGpu(), scope = createBufferScope(gpu);
    const path = await Deno.makeTempFile(), bytes = 11 << 20;
    const words = Uint32Array.from({ length: bytes / 4 }, (_, i) => Math.imul(i, 2654435761));
    await Deno.writeFile(path, new Uint8Array(words.buffer));
    const buffer = scope.createBuffer("all", bytes, STORAGE_USAGE);
    const slice = { buffer, offset: 0, bytes, access: "read" as const };
    const source = openFile(path);
    using _source = closing(source);
    // Of a large model.
    const uploads = createUploads(scope, 1 << 28);
    const bring = async () => {
      let beside = 0;
      await uploads.add({
        ...{ bytes, places: [{ slice, at: 0 }] },
        fill(target, at) {
          const reading = readBeside(source, { offset: at, target });
          if (reading) beside++;
          return reading;
        },
      });
      await uploads.flush();
      return beside;
    };
    assertEquals(await bring(), 2);
    assertEquals(new Uint32Array((await readOnce(scope, [slice])).buffer), words);
    await Deno.truncate(path, 6 << 20);
    await assertRejects(bring, Error, "the file ends here");
    await uploads.destroy();
    scope.free();
    assertEquals(gpu.liveBuffers, 0);
    gpu.dispose();
    await Deno.remove(path);
  },
);

gpuTest("matrices share as few buffers as hold them, and lie apart", async () => {
  const gpu = await openGpu(), limit = 1 << 18;
  const path = await Deno.makeTempFile({ suffix: ".gguf" });
  await writeRandomLlama(path, SHAPE, "Q4_0");
  const { plan, file } = await planOf(path);
  using _file = closing(file);
  for (const maxBufferBytes of [gpu.capabilities.maxBufferBytes, limit]) {
    const scope = createBufferScope({
      ...gpu,
      capabilities: { ...gpu.capabilities, maxBufferBytes },
    });
    const { matrices, bytes } = allocateGpuWeights(scope, { plan, packed: new Set() });
    const ends = new Map<GPUBuffer, number>();
    for (const { parts } of new Set(matrices.values())) {
      for (const { buffer, offset, bytes } of parts.flatMap(({ planes }) => planes)) {
        assertEquals(offset % 256, 0);
        assert(offset >= (ends.get(buffer) ?? 0) && offset + bytes <= buffer.size);
        ends.set(buffer, offset + bytes);
      }
    }
    const sizes = [...ends.keys()].map(({ size }) => size);
    assertEquals(sizes.reduce((sum, size) => sum + size), bytes);
    assert(sizes.every((size) => size <= maxBufferBytes));
    // Two behind each other are more than one holds.
    assertEquals(sizes.length === 1, bytes <= maxBufferBytes);
    assert(sizes.every((size, i) => i === 0 || sizes[i - 1]! + size > maxBufferBytes));
    scope.free();
  }
  gpu.dispose();
  await Deno.remove(path);
});
