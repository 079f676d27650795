import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { gpuTest } from "../tests/support/gpu.ts";
import { withStrictMapping } from "../tests/support/gpu_strict.ts";
import { BUFFER_USAGE } from "./constants.ts";
import { GpuFailure, messageOf } from "./failure.ts";
import { createBufferScope, openGpu, STORAGE_USAGE } from "./gpu.ts";
import type { GpuSlice, Shader } from "./kernel.ts";
import { createProgram, spread } from "./program.ts";
import { createReadback, readOnce } from "./readback.ts";
import { timeDispatches } from "../bench/gpu/timing.ts";
import { wgsl } from "./wgsl.ts";

const addOne: Shader = {
  name: "add_one",
  storage: { y: "array<u32>" },
  writes: ["y"],
  uniforms: { count: "u32", step: "u32" },
  code: wgsl`
    @compute @workgroup_size(1)
    fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
      let i = flat_workgroup(id, groups);
      if (i < params.count) { y[i] += params.step; }
    }
  `,
};

async function kindOf(action: () => unknown): Promise<[string, string]> {
  const error = await assertRejects(async () => {
    await action();
  }, GpuFailure);
  return [(error as GpuFailure).kind, error.message];
}

Deno.test("no adapter is a failure of its own kind", async () => {
  const provider = { requestAdapter: () => Promise.resolve(null) };
  assertEquals(await kindOf(() => openGpu({ provider })), [
    "no adapter",
    "this machine offers no GPU",
  ]);
});

Deno.test("counts of workgroups are spread where they are over the limit", () => {
  assertEquals(spread("k", [0]), [0, 0, 0]);
  assertEquals(spread("k", [3, 0]), [0, 0, 0]);
  assertEquals(spread("k", [65_535]), [65_535, 1, 1]);
  assertEquals(spread("k", [65_536]), [32_768, 2, 1]);
  assertEquals(spread("k", [5, 6, 7]), [5, 6, 7]);
  for (const count of [65_537, 1_000_003, 2 ** 31]) {
    const [x, y] = spread("k", [count]);
    assert(x * y >= count && x * y - count < y && Math.max(x, y) <= 65_535);
  }
  assertThrows(() => spread("k", [65_536, 1]), RangeError, "65536×1");
});

Deno.test("messages of whatever was thrown are one line", () => {
  assertEquals(messageOf(new Error("a\n  b")), "a b");
  assertEquals(messageOf({ message: "c" }), "c");
  assertEquals(messageOf("d"), "d");
});

gpuTest("a program follows its bindings, and runs what has something to do", async () => {
  const gpu = await openGpu();
  const buffer = gpu.createBuffer("y", 70_000 * 4, STORAGE_USAGE);
  const y: GpuSlice = { buffer, offset: 0, bytes: 70_000 * 4, access: "read_write" };
  const count = (env: { n: number }) => env.n;
  const program = await createProgram<{ n: number }>(gpu, {
    dispatches: [
      {
        name: "a",
        shader: addOne,
        storage: { y },
        uniforms: { count, step: 1 },
        workgroups: [count],
      },
      {
        name: "b",
        shader: addOne,
        storage: { y },
        uniforms: { count: 2, step: 10 },
        workgroups: [2],
      },
    ],
  });
  const run = async (n: number): Promise<Uint32Array> => {
    program.bind({ n });
    const encoder = gpu.device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    program.encode(pass);
    pass.end();
    gpu.device.queue.submit([encoder.finish()]);
    return new Uint32Array((await readOnce(gpu, [y])).buffer);
  };
  assertEquals([...(await run(0)).subarray(0, 3)], [10, 10, 0]);
  assertEquals(program.activeCount, 1);
  assertEquals([...(await run(3)).subarray(0, 4)], [21, 21, 1, 0]);
  const large = await run(70_000); // more than one axis takes
  assertEquals([large[0], large[3], large[65_535], large[69_999]], [32, 1, 1, 1]);
  // Sizes that are remembered, and those of so long ago that they are not any more.
  for (const n of [3, 4, 5, 6, 7, 8, 9, 10, 3]) await run(n);
  const again = await run(70_000), last = await run(0);
  assertEquals([again[0], again[2], again[3], again[9]], [142, 12, 9, 3]);
  assertEquals([last[0], last[2]], [152, 12]);
  assertEquals(gpu.pipelines.count, 1);
  if (gpu.capabilities.timestamp) {
    const times = await timeDispatches(createBufferScope(gpu), program);
    assertEquals(times.map(({ name }) => name), ["b"]);
    assert(times.every(({ ms }) => ms >= 0));
  }
  gpu.check();
  gpu.dispose();
});

gpuTest("values that a shader does not have, and those that it misses, are named", async () => {
  const gpu = await openGpu();
  const buffer = gpu.createBuffer("y", 16, STORAGE_USAGE);
  const storage = { y: { buffer, offset: 0, bytes: 16, access: "read_write" } as const };
  const create = (uniforms: Record<string, number>) =>
    createProgram(gpu, {
      dispatches: [{ name: "k", shader: addOne, storage, uniforms, workgroups: [1] }],
    });
  await assertRejects(() => create({ count: 1 }), TypeError, "Cannot run k: no value for step");
  await assertRejects(() => create({ count: 1, step: 1, pace: 2 }), TypeError, "has no pace");
  gpu.dispose();
});

gpuTest("a shader that the compiler refuses is named with its line", async () => {
  const gpu = await openGpu();
  const buffer = gpu.createBuffer("y", 16, STORAGE_USAGE);
  const y: GpuSlice = { buffer, offset: 0, bytes: 16, access: "read_write" };
  const shader = { ...addOne, code: "@compute @workgroup_size(1)\nfn main() { y[0] = nothing; }" };
  const [kind, message] = await kindOf(() => gpu.pipelines.get(shader, { y }));
  assertEquals(kind, "shader");
  assert(/add_one: line \d+: .*nothing/.test(message), message);
  gpu.check(); // the device lives on
  gpu.dispose();
});

gpuTest(
  "a shader that is refused on the way to a step is named, at once or at the next check",
  async () => {
    const gpu = await openGpu();
    const buffer = gpu.createBuffer("y", 16, STORAGE_USAGE);
    const y: GpuSlice = { buffer, offset: 0, bytes: 16, access: "read_write" };
    const shader = {
      ...addOne,
      code: "@compute @workgroup_size(1)\nfn main() { y[0] = nothing; }",
    };
    const [kind, message] = await kindOf(async () => {
      gpu.pipelines.getNow(shader, { y });
      await gpu.device.queue.onSubmittedWorkDone();
      await new Promise((resolve) => setTimeout(resolve));
      gpu.check();
    });
    assertEquals(kind, "shader");
    assert(/^add_one: .*nothing/.test(message), message);
    gpu.device.createComputePipeline = () => {
      throw new TypeError("no pipeline");
    };
    const [thrown, said] = await kindOf(() => gpu.pipelines.getNow(addOne, { y }));
    assertEquals([thrown, said], ["shader", "add_one: no pipeline"]);
    gpu.dispose();
  },
);

gpuTest(
  "a device that is gone before its results are taken is lost, not a type error",
  async () => {
    const gpu = await openGpu();
    const readback = await createReadback(gpu, 4);
    const encoder = gpu.device.createCommandEncoder();
    readback.copy(encoder, []);
    readback.stamp();
    gpu.device.queue.submit([encoder.finish()]);
    gpu.device.destroy();
    assertEquals((await kindOf(async () => await readback.read(0, () => {})))[0], "lost");
    readback.destroy();
    gpu.dispose();
  },
);

gpuTest("memory that cannot be had is refused with sizes, and what was made is freed", async () => {
  const gpu = await openGpu();
  const { maxBufferBytes } = gpu.capabilities;
  const [kind, message] = await kindOf(() =>
    gpu.allocate(() => {
      gpu.createBuffer("small", 64, STORAGE_USAGE);
      gpu.createBuffer("weights", maxBufferBytes + 1, STORAGE_USAGE);
    })
  );
  assertEquals(kind, "memory");
  assert(message.startsWith("weights takes "), message);
  assertEquals(gpu.liveBuffers, 0);
  gpu.dispose();
});

gpuTest("memory that cannot be had frees nothing that others made meanwhile", async () => {
  const gpu = await openGpu();
  const refused = gpu.allocate(() => {
    gpu.createBuffer("small", 64, STORAGE_USAGE);
    throw new RangeError("no more");
  });
  const other = gpu.createBuffer("other", 64, STORAGE_USAGE);
  await assertRejects(() => refused, RangeError, "no more");
  assertEquals(gpu.liveBuffers, 1);
  gpu.destroyBuffer(other);
  gpu.dispose();
});

gpuTest("a shader that is refused while it is handed over closes its scope of errors", async () => {
  const gpu = await openGpu(), { device } = gpu;
  const buffer = gpu.createBuffer("y", 16, STORAGE_USAGE);
  const y: GpuSlice = { buffer, offset: 0, bytes: 16, access: "read_write" };
  const { pushErrorScope, popErrorScope, createShaderModule } = device;
  let open = 0;
  device.pushErrorScope = (filter) => (open++, pushErrorScope.call(device, filter));
  device.popErrorScope = () => (open--, popErrorScope.call(device));
  device.createShaderModule = () => {
    throw new TypeError("no module");
  };
  assertEquals(await kindOf(() => gpu.pipelines.get(addOne, { y })), [
    ...["shader", "add_one: no module"],
  ]);
  assertEquals(open, 0);
  device.createShaderModule = createShaderModule;
  gpu.dispose();
});

gpuTest("a readback serves again when what comes between has failed", async () => {
  const gpu = await openGpu();
  const source = gpu.createBuffer("source", 16, STORAGE_USAGE);
  const readback = await createReadback(gpu, 4);
  const found: number[] = [];
  for (const [value, isRefused] of [[1, true], [2, false]] as const) {
    gpu.device.queue.writeBuffer(source, 0, new Uint32Array([value]));
    const encoder = gpu.device.createCommandEncoder();
    readback.copy(encoder, [{ buffer: source, offset: 0, bytes: 4 }]);
    readback.stamp();
    gpu.device.queue.submit([encoder.finish()]);
    const read = async () =>
      await readback.read(
        4,
        (bytes, start) => found.push(new Uint32Array(bytes, start, 1)[0]!),
        () => {
          if (isRefused) throw new RangeError("no more work");
        },
      );
    if (isRefused) await assertRejects(read, RangeError, "no more work");
    else await read();
  }
  assertEquals(found, [2]);
  gpu.check();
  readback.destroy();
  gpu.dispose();
});

gpuTest("an error that nobody waited for is thrown at the next check, once", async () => {
  const gpu = await openGpu();
  const a = gpu.createBuffer("a", 16, BUFFER_USAGE.COPY_SRC);
  const encoder = gpu.device.createCommandEncoder();
  encoder.copyBufferToBuffer(a, 0, a, 0, 16); // onto itself
  gpu.device.queue.submit([encoder.finish()]);
  const error = await assertRejects(async () => {
    for (let tries = 0; tries < 3000; tries++) {
      gpu.check();
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }, GpuFailure);
  assertEquals((error as GpuFailure).kind, "validation");
  gpu.check();
  gpu.dispose();
  assertEquals((await kindOf(() => gpu.check()))[0], "lost");
});

gpuTest("results are those of the last copy, hundreds of times", async () => {
  const gpu = await openGpu();
  const source = gpu.createBuffer("source", 16, STORAGE_USAGE);
  const readback = await createReadback(gpu, 16);
  for (let i = 1; i <= 300; i++) {
    gpu.device.queue.writeBuffer(source, 0, new Uint32Array([i, ~i]));
    const encoder = gpu.device.createCommandEncoder();
    readback.copy(encoder, [{ buffer: source, offset: 0, bytes: 8 }]);
    readback.stamp();
    gpu.device.queue.submit([encoder.finish()]);
    let got: number[] = [];
    await readback.read(8, (range, start) => got = [...new Uint32Array(range, start, 2)]);
    assertEquals(got, [i, ~i >>> 0]);
  }
  // A copy that was numbered and never submitted is found out.
  readback.stamp();
  await assertRejects(async () => await readback.read(8, () => {}), GpuFailure, "another step");
  readback.destroy();
  gpu.dispose();
});

gpuTest("where ranges cannot be taken at once, mappings are awaited", async () => {
  const gpu = await openGpu();
  const strict = withStrictMapping(gpu);
  const readback = await createReadback(strict, 4);
  assertEquals(readback.isImmediate, false);
  const encoder = gpu.device.createCommandEncoder();
  readback.copy(encoder, []);
  readback.stamp();
  gpu.device.queue.submit([encoder.finish()]);
  await readback.read(0, () => {});
  gpu.dispose();
});
