import { assertEquals, assertRejects } from "@std/assert";
import { TINY_LLAMA } from "../../tests/support/models.ts";
import { UnsupportedError } from "../errors.ts";
import { draftOf, draftValue } from "../plan/passes/pass.ts";
import { tensorInMemory } from "../run/case_graph.ts";
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
  const rows = draftValue({ dtype: "q8", shape: [1, 32] });
  const tensor = tensorInMemory("w", { format: "Q8_0", shape: [8, 32], bytes: new Uint8Array(0) });
  const weight = draftValue({ dtype: "f32", shape: [8, 32] }, { role: "weight", tensor });
  const product = draftOf("matmul", { inputs: [rows, weight] });
  assertEquals([(await openDevice("wasm", {})).takes(product), device.takes(product)], [
    true,
    false,
  ]);
  using model = await load(TINY_LLAMA, {
    device: "wasm",
    excludeKernels: ["matmul_q8"],
    threads: 1,
  });
  using session = model.createSession();
  await session.sync([1, 2, 3]);
  assertEquals(session.logits().every(Number.isFinite), true);
});

Deno.test("loading fails by name where an op has no other kernel", async () => {
  const options = {
    device: "wasm",
    excludeKernels: ["attention", "span_attention"],
    threads: 1,
  } as const;
  await assertRejects(() => load(TINY_LLAMA, options), UnsupportedError, "attention");
});
