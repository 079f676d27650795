import { assertEquals, assertRejects } from "@std/assert";
import { gpuTest } from "../../../tests/support/gpu.ts";
import type { KernelCheck } from "../../run/kernel_checks.ts";
import { checkInProcesses, processesFor } from "./kernel_processes.ts";

const ASKED = { device: "gpu", gpu: undefined, threads: undefined, seed: 1 } as const;

async function checks(count: number): Promise<string[]> {
  const all: KernelCheck[] = [];
  const asked = { ...ASKED, ops: ["expand", "gather_elements", "where_elements"] };
  for await (const check of checkInProcesses(asked, { count })) all.push(check);
  return all.map(({ op, kernel, case: name, outcome }) => [op, kernel, name, outcome].join())
    .sort();
}

gpuTest("processes check what one thread checks, each case once", async () => {
  const alone = await checks(0);
  assertEquals(await checks(2), alone);
  assertEquals(alone.some((check) => check.endsWith("passed")), true);
});

Deno.test("what ends a process ends the check", async () => {
  const asked = { ...ASKED, gpu: "/nowhere/dawn.node" };
  const checks = () => Array.fromAsync(checkInProcesses(asked, { count: 2 }));
  await assertRejects(checks, Error, "/nowhere/dawn.node");
});

Deno.test("a kernel at which a driver brings its process down has failed", async () => {
  const code = `console.log('{"begins":"gpu_rope_f32"}'); Deno.kill(Deno.pid, "SIGSEGV");`;
  const url = new URL(`data:text/javascript,${encodeURIComponent(code)}`);
  const checks = await Array.fromAsync(checkInProcesses(ASKED, { count: 2, url }));
  assertEquals(checks.map(({ kernel, outcome }) => `${kernel} ${outcome}`), [
    "gpu_rope_f32 failed",
    "gpu_rope_f32 failed",
  ]);
});

Deno.test("a process that ends before its first kernel ends the check", async () => {
  const url = new URL(`data:text/javascript,${encodeURIComponent("Deno.exit(3)")}`);
  const checks = () => Array.fromAsync(checkInProcesses(ASKED, { count: 1, url }));
  await assertRejects(checks, Error, "ended before its first kernel");
});

Deno.test("kernels of WASM, which has all threads by itself, take no processes", () => {
  assertEquals([processesFor("wasm", 16), processesFor("gpu", 1), processesFor("gpu", 4)], [
    0,
    1,
    2,
  ]);
  assertEquals(processesFor("gpu", 64), 8);
});
