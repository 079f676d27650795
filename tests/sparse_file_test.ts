// A safetensors file of a gigabyte that takes no room on the disk: opening reads its header only, and a tensor
// is read where it lies, without a copy of the rest.

import { assert, assertEquals, assertLess } from "@std/assert";
import { openModel } from "../engine/models/open_model.ts";
import { threadMs } from "./support/thread_time.ts";
import { random } from "./support/weights.ts";

const TENSORS = 4096;
const TENSOR_BYTES = 1 << 18;
const OPEN_MS = 200;

/** Where each tensor begins is written into it; the rest is a hole. */
function writeSparse(path: string): void {
  const header = Object.fromEntries(Array.from({ length: TENSORS }, (_, i) => [
    `model.layers.${i}.weight`,
    {
      dtype: "F32",
      shape: [256, 256],
      data_offsets: [i * TENSOR_BYTES, (i + 1) * TENSOR_BYTES],
    },
  ]));
  const json = new TextEncoder().encode(JSON.stringify(header));
  using file = Deno.openSync(path, { write: true, create: true });
  file.writeSync(new Uint8Array(new BigUint64Array([BigInt(json.length)]).buffer));
  file.writeSync(json);
  for (let i = 0; i < TENSORS; i++) {
    file.seekSync(8 + json.length + i * TENSOR_BYTES, Deno.SeekMode.Start);
    file.writeSync(new Uint8Array(Float32Array.of(i).buffer));
  }
  file.truncateSync(8 + json.length + TENSORS * TENSOR_BYTES);
}

Deno.test("a gigabyte opens in 200 ms and gives any tensor without a copy of the file", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const path = `${folder}/model.safetensors`;
    writeSparse(path);
    assert(Deno.statSync(path).size > 2 ** 30);
    // The best of three: a busy machine only adds.
    let least = Infinity;
    for (let tries = 0; tries < 3 && least >= OPEN_MS; tries++) {
      const start = threadMs();
      (await openModel(path)).close();
      least = Math.min(least, threadMs() - start);
    }
    assertLess(least, OPEN_MS);

    const file = await openModel(path);
    try {
      assertEquals(file.tensors.size, TENSORS);
      const bytes = new Uint8Array(TENSOR_BYTES);
      const next = random(5);
      const before = Deno.memoryUsage();
      for (let i = 0; i < 500; i++) {
        const index = Math.floor(next() * TENSORS);
        const { source, offset, byteLength } = file.tensors.get(`model.layers.${index}.weight`)!;
        assertEquals(byteLength, TENSOR_BYTES);
        await source.readInto(offset, bytes);
        assertEquals(new Float32Array(bytes.buffer, 0, 2), Float32Array.of(index, 0));
      }
      // 125 MB were read, into one buffer.
      const after = Deno.memoryUsage();
      assertLess(after.external - before.external, 4 << 20);
      assertLess(after.rss - before.rss, 64 << 20);
    } finally {
      file.close();
    }
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
