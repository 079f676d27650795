import { assertEquals } from "@std/assert";
import type { MetadataValue, WeightFile } from "../formats/source.ts";
import { chooseSpec, specFiles } from "./specs/mod.ts";
import { unknownKeysWarning } from "./unknown_keys.ts";
import { fixturePath, readFixture } from "../../tests/support/fixtures.ts";

function warningOf(kind: string, metadata: Record<string, MetadataValue>): string[] {
  const file: WeightFile = {
    kind,
    name: "toy",
    metadata: new Map(Object.entries(metadata)),
    tensors: new Map(),
    close: () => {},
  };
  const { resolved, architecture } = chooseSpec(file);
  return unknownKeysWarning(file, { resolved, architecture });
}

Deno.test("keys that nothing reads are named once", () => {
  const config = { model_type: "llama", rope_theta: 10000, use_cache: true, dropout: 0.1 };
  assertEquals(warningOf("safetensors", config), []);
  assertEquals(warningOf("safetensors", { ...config, sliding_window: 4096 }), [
    "the file's key sliding_window is not understood and has no effect",
  ]);
  assertEquals(warningOf("safetensors", { ...config, a: 1, b: [2] }), [
    "2 keys of the file are not understood and have no effect: a, b",
  ]);
});

Deno.test("keys that ask for nothing are no news", () => {
  const nothing = { a: null, b: false, c: 0, d: "", e: [], f: {} };
  assertEquals(warningOf("safetensors", { model_type: "llama", ...nothing }), []);
});

Deno.test("all keys of a GGUF file are looked at but those of its text, which have a table of their own", () => {
  const keys = {
    "general.architecture": "llama",
    "general.quantized_by": "someone",
    "tokenizer.ggml.model": "llama",
    "llama.rope.scaling.type": "none",
    "llama.block_count": 2,
  };
  assertEquals(warningOf("gguf", keys), []);
  assertEquals(warningOf("gguf", { ...keys, "llama.attention.clamp_kqv": 8 }), [
    "the file's key llama.attention.clamp_kqv is not understood and has no effect",
  ]);
  assertEquals(warningOf("gguf", { ...keys, "general.brand_new": 8, "qwen2.block_count": 2 }), [
    "2 keys of the file are not understood and have no effect: general.brand_new, qwen2.block_count",
  ]);
});

Deno.test("every config among the fixtures is understood whole", () => {
  const known = specFiles.flatMap(({ matches }) => matches.huggingface);
  for (const { name } of Deno.readDirSync(fixturePath("models"))) {
    for (const file of ["config.json", "config.v4.json"]) {
      let config;
      try {
        config = JSON.parse(readFixture(`models/${name}/${file}`));
      } catch {
        continue;
      }
      if (known.includes(config.model_type)) {
        assertEquals(warningOf("safetensors", config), [], name);
      }
    }
  }
});
