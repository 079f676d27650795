import { assertEquals, assertRejects } from "@std/assert";
import { TINY_LLAMA } from "../../tests/support/models.ts";
import { UnsupportedError } from "../errors.ts";
import { openDevice } from "../run/devices.ts";
import { load } from "../models/load.ts";
import {
  excludedKernelsPath,
  readExcludedKernels,
  writeExcludedKernels,
} from "./excluded_kernels.ts";

Deno.test("what doctor writes down is what the other commands read", async () => {
  const folder = await Deno.makeTempDir();
  try {
    assertEquals(await readExcludedKernels(folder), []);
    const path = excludedKernelsPath(folder)!;
    await writeExcludedKernels(path, ["matmul_q8"]);
    assertEquals(await readExcludedKernels(folder), ["matmul_q8"]);
    await Deno.writeTextFile(path, "{");
    await assertRejects(() => readExcludedKernels(folder), TypeError, "run troodon doctor again");
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("without the integer kernel a model runs on floats", async () => {
  const device = await openDevice("wasm", { excludeKernels: ["matmul_q8"] });
  assertEquals(device.hasIntegerKernel("Q8_0"), false);
  using model = await load(TINY_LLAMA, { excludeKernels: ["matmul_q8"], threads: 1 });
  using session = model.createSession();
  await session.sync([1, 2, 3]);
  assertEquals(session.logits().every(Number.isFinite), true);
});

Deno.test("loading fails by name where an op has no other kernel", async () => {
  const options = { excludeKernels: ["attention"], threads: 1 };
  await assertRejects(() => load(TINY_LLAMA, options), UnsupportedError, "attention");
});
