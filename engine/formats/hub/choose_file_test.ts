import { assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { SourceError } from "../../errors.ts";
import { chooseFile } from "./choose_file.ts";
import type { HubFile } from "./hub_files.ts";

const MB = 1e6;

function files(sizes: Readonly<Record<string, number>>): HubFile[] {
  return Object.entries(sizes).map(([path, size]) => ({ path, bytes: size * MB }));
}

// As bartowski, unsloth and Qwen lay such repositories out, with what is no model among it.
const LLAMA = files({
  "README.md": 0.1,
  "Llama-3.2-1B-Instruct-f16.gguf": 2480,
  "Llama-3.2-1B-Instruct-Q8_0.gguf": 1321,
  "Llama-3.2-1B-Instruct-Q6_K_L.gguf": 1090,
  "Llama-3.2-1B-Instruct-Q4_K_M.gguf": 808,
  "Llama-3.2-1B-Instruct-Q4_0_4_8.gguf": 771,
  "Llama-3.2-1B-Instruct-IQ3_M.gguf": 657,
  "Llama-3.2-1B-Instruct-UD-Q2_K_XL.gguf": 601,
  "Llama-3.2-1B-Instruct.imatrix": 1,
  "mmproj-model-f16.gguf": 800,
});

Deno.test("the most precise file of at most 8 bits that fits into memory is chosen, and said", () => {
  const choose = (freeMB?: number) =>
    chooseFile(LLAMA, { name: "o/r", freeBytes: freeMB === undefined ? undefined : freeMB * MB });
  const cases: [number | undefined, string, RegExp][] = [
    [64_000, "Q8_0", /^Q8_0, the best of 5 that fits 64\.0 GB of free memory$/],
    [1700, "Q6_K_L", /the best of 5/],
    [1200, "Q4_K_M", /the best of 5/],
    [1100, "IQ3_M", /the best of 5/],
    [500, "UD-Q2_K_XL", /the smallest: none fits 0\.5 GB/],
    [undefined, "Q4_K_M", /free memory is not known/],
  ];
  for (const [free, format, reason] of cases) {
    const chosen = choose(free);
    assertEquals(chosen.main, `Llama-3.2-1B-Instruct-${format}.gguf`, `${free}`);
    assertEquals(reason.test(chosen.reason), true, chosen.reason);
    assertEquals(chosen.files.map(({ path }) => path), [chosen.main]);
  }
});

Deno.test("a format is found in any case of letters, and what there is not names what there is", () => {
  const named = (format: string) => chooseFile(LLAMA, { name: "o/r", format }).main;
  assertEquals(named("q4_k_m"), "Llama-3.2-1B-Instruct-Q4_K_M.gguf");
  assertEquals(named("F16"), "Llama-3.2-1B-Instruct-f16.gguf");
  assertEquals(named("Q2_K_XL"), "Llama-3.2-1B-Instruct-UD-Q2_K_XL.gguf");
  const error = assertThrows(() => named("Q5_K_M"), SourceError, "holds nothing in Q5_K_M");
  assertStringIncludes(error.message, "It has IQ3_M, Q4_K_M, Q6_K_L, Q8_0, UD-Q2_K_XL, F16");
});

Deno.test("the parts of a split file count as one, in a folder or beside others", () => {
  const split = files({
    "Q8_0/m-Q8_0-00001-of-00002.gguf": 4000,
    "Q8_0/m-Q8_0-00002-of-00002.gguf": 4000,
    "Q4_K_M/m-Q4_K_M-00001-of-00002.gguf": 2500,
    "Q4_K_M/m-Q4_K_M-00002-of-00002.gguf": 2000,
  });
  const chosen = chooseFile(split, { name: "o/r", freeBytes: 8000 * MB });
  assertEquals(chosen.main, "Q4_K_M/m-Q4_K_M-00001-of-00002.gguf");
  assertEquals(chosen.files.length, 2);
});

Deno.test("floats are taken where there is nothing else, a checkpoint before ONNX", () => {
  const main = (sizes: Readonly<Record<string, number>>, format?: string) =>
    chooseFile(files(sizes), { name: "o/r", format, freeBytes: 1e12 }).main;
  assertEquals(main({ "m-bf16.gguf": 10, "m-f32.gguf": 20 }), "m-f32.gguf");
  const minilm = {
    "onnx/model.onnx": 90,
    "onnx/model_quantized.onnx": 23,
    "model.safetensors": 90,
    "pytorch_model.bin": 90,
  };
  assertEquals(main(minilm), "model.safetensors");
  assertEquals(main(minilm, "quantized"), "onnx/model_quantized.onnx");
  const sharded = {
    "model-00001-of-00002.safetensors": 5000,
    "model-00002-of-00002.safetensors": 4000,
    "model.safetensors.index.json": 1,
  };
  assertEquals(main(sharded), "model.safetensors.index.json");
  assertEquals(chooseFile(files(sharded), { name: "o/r" }).files.length, 3);
  const graph = { "onnx/model.onnx": 1, "onnx/model.onnx_data": 3000, "onnx/model_q4.onnx": 600 };
  assertEquals(chooseFile(files(graph), { name: "o/r" }).files.length, 2);
  assertEquals(main({ "unet.safetensors": 3 }), "unet.safetensors");
  assertThrows(() => main({ "README.md": 1, "model.mlpackage": 3 }), SourceError, "no model");
});
