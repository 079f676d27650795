import { assertEquals, assertMatch, assertThrows } from "@std/assert";
import { ResourceError } from "../errors.ts";
import type { Hyperparameters } from "../models/hparams.ts";
import { checkLoadOptions, resolveLimits } from "./load_options.ts";
import { checkMemory, totalMemory } from "./memory.ts";
import type { LoadOptions } from "./model.ts";

const params = { context: 8192 } as Hyperparameters;

Deno.test("defaults: 4096 of the trained context, half floats unless exact", () => {
  assertEquals(resolveLimits({}, params), {
    precision: "fast",
    contextLength: 4096,
    sessions: 1,
    batch: 256,
    cacheTokens: 4096,
    logitRows: 16,
    kvFormat: "F16",
    embeddings: false,
  });
  assertEquals(resolveLimits({ precision: "exact" }, params).kvFormat, "F32");
  assertEquals(resolveLimits({ precision: "exact", kvFormat: "F16" }, params).kvFormat, "F16");
});

Deno.test("a step is never larger than the context", () => {
  const { batch, logitRows } = resolveLimits({ contextLength: 16, logitRows: 64 }, params);
  assertEquals([batch, logitRows], [16, 16]);
});

Deno.test("a context beyond the trained one is refused with both numbers", () => {
  const error = assertThrows(() => resolveLimits({ contextLength: 9000 }, params), RangeError);
  assertMatch(error.message, /contextLength 9000: the model was trained for 8192/);
});

Deno.test("a bad option is refused with its name and value", () => {
  const cases: [LoadOptions, RegExp][] = [
    [{ device: "cuda" as "gpu" }, /device "cuda": it is one of auto, wasm, gpu, reference/],
    [{ precision: "f16" as "fast" }, /precision "f16"/],
    [{ kvFormat: "Q8" as "F16" }, /kvFormat "Q8"/],
    [{ threads: 0 }, /threads 0: it is an integer from 1 to 256/],
    [{ contextLength: 1.5 }, /contextLength 1.5/],
    [{ sessions: -1 }, /sessions -1/],
    [{ cacheTokens: 63 }, /cacheTokens 63: it is an integer from 64 to/],
    [{ batch: NaN }, /batch NaN/],
    [{ logitRows: Infinity }, /logitRows Infinity/],
    [{ debug: true }, /debug without device "gpu"/],
    [{ placement: "wasm;cuda" }, /device "cuda"/],
    [{ placement: "0&1;2" }, /placement "0&1;2": .*as many devices each/],
  ];
  for (const [options, message] of cases) {
    assertMatch(assertThrows(() => checkLoadOptions(options), RangeError).message, message);
  }
  for (const gpu of ["dawn", {}, null]) {
    assertThrows(() => checkLoadOptions({ gpu: gpu as never }), TypeError, "requestAdapter()");
  }
});

Deno.test("a model larger than memory is refused with numbers, by use", () => {
  const MiB = 2 ** 20;
  const memory = totalMemory({
    weights: 700 * MiB,
    activations: 20 * MiB,
    sessionCache: 100 * MiB,
    cache: 300 * MiB,
    cacheTokens: 3072,
    sessions: 3,
    other: 0,
  });
  assertEquals(memory.total, 1020 * MiB);
  checkMemory(memory, { file: "big.gguf", free: 1020 * MiB });
  checkMemory(memory, { file: "big.gguf", free: undefined });
  const error = assertThrows(
    () => checkMemory(memory, { file: "big.gguf", free: 1000 * MiB }),
    ResourceError,
  );
  assertMatch(
    error.message,
    /big\.gguf: needs 1020 MiB of memory \(weights 700 MiB, activations 20 MiB, caches of 3072 tokens 300 MiB\), and 1000 MiB are free\. Take a smaller/,
  );
});
