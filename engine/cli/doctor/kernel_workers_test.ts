import { assertEquals, assertRejects } from "@std/assert";
import { gpuTest } from "../../../tests/support/gpu.ts";
import type { KernelCheck } from "../../run/kernel_checks.ts";
import { checkInWorkers, workersFor } from "./kernel_workers.ts";

const ASKED = { device: "gpu", gpu: undefined, threads: undefined, seed: 1 } as const;

async function checks(count: number): Promise<string[]> {
  const all: KernelCheck[] = [];
  const asked = { ...ASKED, ops: ["expand", "gather_elements", "where_elements"] };
  for await (const check of checkInWorkers(asked, { count })) all.push(check);
  return all.map(({ op, kernel, case: name, outcome }) => [op, kernel, name, outcome].join())
    .sort();
}

gpuTest("workers check what one thread checks, each case once", async () => {
  const alone = await checks(1);
  assertEquals(await checks(3), alone);
  assertEquals(alone.some((check) => check.endsWith("passed")), true);
});

gpuTest("workers that are told to stop end what they are at, and themselves", async () => {
  const time = new AbortController(), all: KernelCheck[] = [];
  const options = { count: 2, stop: time.signal, graceMs: 3_600_000 };
  for await (
    const check of checkInWorkers({ ...ASKED, ops: ["expand", "gather_elements"] }, options)
  ) {
    all.push(check);
    time.abort();
  }
  assertEquals(all.length, 1);
});

Deno.test("what ends a worker ends the check", async () => {
  const asked = { ...ASKED, gpu: "/nowhere/dawn.node" };
  const checks = () => Array.fromAsync(checkInWorkers(asked, { count: 2 }));
  await assertRejects(checks, Error, "/nowhere/dawn.node");
});

Deno.test("kernels of WASM, which has all threads by itself, take no workers", () => {
  assertEquals([workersFor("wasm", 16), workersFor("gpu", 1), workersFor("gpu", 4)], [1, 1, 2]);
  assertEquals(workersFor("gpu", 64), 8);
});
