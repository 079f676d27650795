import { assert, assertEquals, assertRejects } from "@std/assert";
import { formatBytes, formats } from "../quant/mod.ts";
import { gpuTest } from "../tests/support/gpu.ts";
import { createBufferScope, type Gpu, openGpu, STORAGE_USAGE } from "./gpu.ts";
import { readOnce } from "./readback.ts";
import { repackOf } from "./repack.ts";
import { createUploads, UPLOAD_BYTES } from "./uploads.ts";
import { gpuLayoutOf } from "./weight_layout.ts";

/** What the host decodes, or makes by more than moving bits. */
const OF_THE_HOST = new Set(
  ["F32", "F16", "BF16", "F64", "I8", "I16", "I32", "I64", "F8_E4M3", "F8_E5M2", "Q8_LOG"]
    .concat(["IQ2_XXS", "IQ3_XXS", "Q3H_B64T1"]),
);

function randomBytes(length: number, seed = 1): Uint8Array<ArrayBuffer> {
  let state = seed;
  return Uint8Array.from({ length }, () => {
    state = Math.imul(state, 1664525) + 1013904223 >>> 0;
    return state >>> 24;
  });
}

/** Planes as the device makes them of bytes that come in two runs of rows. */
async function planesOnDevice(
  gpu: Gpu,
  { format, rows, columns, bytes }: {
    readonly format: string;
    readonly rows: number;
    readonly columns: number;
    readonly bytes: Uint8Array;
  },
): Promise<Uint8Array[]> {
  const scope = createBufferScope(gpu), layout = gpuLayoutOf(format, columns);
  const repack = repackOf(formats.get(format)!, layout)!;
  const planeBytes = layout.planeBytes(columns), groups = rows / layout.rowGroup;
  const slices = planeBytes.map((own) => ({
    buffer: scope.createBuffer("plane", groups * own, STORAGE_USAGE),
    ...{ offset: 0, bytes: groups * own, access: "read" as const },
  }));
  const uploads = createUploads(scope, bytes.length);
  const half = bytes.length / groups * Math.ceil(groups / 2);
  for (const [from, to] of [[0, half], [half, bytes.length]] as const) {
    await uploads.add({
      bytes: to - from,
      fill: (target, at) => target.set(bytes.subarray(from + at, from + at + target.length)),
      repack,
      places: slices.map((slice, i) => (
        { slice, at: from / bytes.length * groups * planeBytes[i]! }
      )),
    });
  }
  await uploads.flush();
  await uploads.destroy();
  const planes = [];
  for (const slice of slices) planes.push(await readOnce(scope, [slice]));
  scope.free();
  return planes;
}

gpuTest("a device rearranges the blocks of every format as the host packs them", async () => {
  const gpu = await openGpu();
  const done: string[] = [];
  for (const { name } of formats.values()) {
    const rows = 12, columns = 512, layout = gpuLayoutOf(name, columns);
    const repack = repackOf(formats.get(name)!, layout);
    assertEquals(repack === undefined, OF_THE_HOST.has(name), name);
    if (!repack) continue;
    const bytes = randomBytes(formatBytes(formats.get(name)!, rows * columns), done.length + 2);
    const planes = layout.planeBytes(columns)
      .map((own) => new Uint8Array(rows / layout.rowGroup * own));
    layout.pack(bytes, { format: name, rows, columns }, planes);
    assertEquals(await planesOnDevice(gpu, { format: name, rows, columns, bytes }), planes, name);
    done.push(name);
  }
  assert(done.length > 40);
  assertEquals(gpu.liveBuffers, 0);
  gpu.check();
  gpu.dispose();
});

gpuTest("more bytes than are handed over at once arrive in order", async () => {
  const gpu = await openGpu(), scope = createBufferScope(gpu);
  const run = UPLOAD_BYTES - 4096, runs = 3, bytes = run * runs;
  const buffer = scope.createBuffer("all", bytes, STORAGE_USAGE);
  const slice = { buffer, offset: 0, bytes, access: "read" as const };
  const uploads = createUploads(scope, bytes);
  for (let i = 0; i < runs; i++) {
    await uploads.add({
      bytes: run,
      fill: (target, at) => void target.fill(16 * i + (at >> 20)),
      places: [{ slice, at: i * run }],
    });
  }
  await uploads.flush();
  await uploads.destroy();
  const all = await readOnce(scope, [slice]);
  const found = Array.from({ length: runs }, (_, i) => [all[i * run], all[(i + 1) * run - 1]]);
  assertEquals(found, Array.from({ length: runs }, (_, i) => [16 * i, 16 * i + 15]));
  scope.free();
  gpu.check();
  gpu.dispose();
});

gpuTest("a piece is handed over while the next is read, in order", async () => {
  const gpu = await openGpu(), scope = createBufferScope(gpu);
  const bytes = 3 << 20, [a, b, c] = [0, 1 << 20, 2 << 20];
  const buffer = scope.createBuffer("all", bytes, STORAGE_USAGE);
  const slice = { buffer, offset: 0, bytes, access: "read" as const };
  const log: string[] = [];
  const { queue } = gpu.device, writeBuffer = queue.writeBuffer.bind(queue);
  queue.writeBuffer = (...args) => {
    log.push(`write ${args[1]}`);
    writeBuffer(...args as Parameters<typeof writeBuffer>);
  };
  const uploads = createUploads(scope, bytes);
  await uploads.add({
    ...{ bytes, places: [{ slice, at: 0 }] },
    async fill(target, at) {
      log.push(`read ${at}`);
      await Promise.resolve();
      target.fill(log.length);
      log.push(`has ${at}`);
    },
  });
  await uploads.flush();
  // What is read at once need not wait for that.
  await uploads.add({
    ...{ bytes: 4, places: [{ slice, at: 8 }] },
    fill: (target, at) => void target.fill(log.push(`reads ${at}`)),
  });
  await uploads.destroy();
  assertEquals(log, [
    ...[`read ${a}`, `has ${a}`, `read ${b}`, `write ${a}`, `has ${b}`],
    ...[`read ${c}`, `write ${b}`, `has ${c}`, `write ${c}`],
    ...["reads 0", "write 8"],
  ]);
  const all = await readOnce(scope, [slice]);
  assertEquals([a, 8, b, c].map((at) => all[at]), [1, 10, 4, 7]);
  scope.free();
  gpu.check();
  gpu.dispose();
});

gpuTest(
  "bytes that cannot be read are an error of whoever waits, and what was made is freed",
  async () => {
    const gpu = await openGpu(), scope = createBufferScope(gpu), bytes = 2 << 20;
    const buffer = scope.createBuffer("all", bytes, STORAGE_USAGE), before = gpu.liveBuffers;
    const places = [{ slice: { buffer, offset: 0, bytes, access: "read" as const }, at: 0 }];
    for (const bad of [0, 1 << 20]) {
      let ends = 0;
      const uploads = createUploads(scope, bytes);
      const bring = async () => {
        await uploads.add({
          ...{ bytes, places },
          async fill(_, at) {
            await Promise.resolve();
            ends++;
            if (at === bad) throw new Error(`no byte ${at}`);
          },
        });
        await uploads.flush();
      };
      await assertRejects(bring, Error, `no byte ${bad}`);
      await uploads.destroy();
      assertEquals([ends, gpu.liveBuffers], [bad ? 2 : 1, before]);
    }
    // What is being read while another thing goes wrong is waited for.
    const uploads = createUploads(scope, bytes), late = Promise.withResolvers<void>();
    await uploads.add({ bytes: 4, places, fill: () => late.promise });
    let isFreed = false;
    const freed = uploads.destroy().then(() => isFreed = true);
    await Promise.resolve();
    assert(!isFreed);
    late.reject(new Error("too late"));
    await freed;
    assertEquals(gpu.liveBuffers, before);
    scope.free();
    gpu.dispose();
  },
);
