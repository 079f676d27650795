import { assert, assertEquals } from "@std/assert";
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
  uploads.destroy();
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
  uploads.destroy();
  const all = await readOnce(scope, [slice]);
  const found = Array.from({ length: runs }, (_, i) => [all[i * run], all[(i + 1) * run - 1]]);
  assertEquals(found, Array.from({ length: runs }, (_, i) => [16 * i, 16 * i + 15]));
  scope.free();
  gpu.check();
  gpu.dispose();
});
