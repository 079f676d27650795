import { assert, assertEquals } from "@std/assert";
import { mayHaveGpu } from "../io.ts";
import { loadDriver } from "./driver.ts";

Deno.test("a driver is loaded beside where Deno's WebGPU computes or may compute, and let go of", () => {
  const gpu = { requestAdapter: () => Promise.resolve(null) };
  assertEquals(loadDriver({ device: "wasm" }), undefined);
  assertEquals(loadDriver({ device: "reference" }), undefined);
  assertEquals(loadDriver({ device: "gpu", gpu }), undefined);
  using any = loadDriver({});
  assertEquals(any !== undefined, mayHaveGpu());
  // What is left running fails the test.
  using meant = loadDriver({ device: "gpu" });
  assert(meant);
});

Deno.test("where no thread can be made for the driver nothing is lost", () => {
  const { Worker: real } = globalThis;
  globalThis.Worker = class {
    constructor() {
      throw new Error("no thread is left");
    }
  } as unknown as typeof Worker;
  try {
    assertEquals(loadDriver({ device: "gpu" }), undefined);
  } finally {
    globalThis.Worker = real;
  }
});
