import { assertEquals, assertRejects } from "@std/assert";
import { writeTorchLegacy, writeTorchZip } from "../../tests/support/write_pickle.ts";
import { UnsupportedError } from "../errors.ts";
import { memorySource } from "../io.ts";
import { sniffModel } from "./sniff.ts";

function sniff(name: string, bytes: Uint8Array | string): Promise<string> {
  const data = typeof bytes === "string" ? new TextEncoder().encode(bytes) : bytes;
  return sniffModel(memorySource(name, data));
}

Deno.test("checkpoints of PyTorch are told by their bytes, old ones of any protocol", async () => {
  assertEquals(await sniff("a.bin", writeTorchZip("}", {})), "torch-zip");
  const legacy = writeTorchLegacy("}", []);
  assertEquals(await sniff("a.bin", legacy), "torch-legacy");
  const framed = Uint8Array.of(0x80, 4, 0x95, 13, 0, 0, 0, 0, 0, 0, 0, ...legacy.subarray(2, 15));
  assertEquals(await sniff("a.bin", framed), "torch-legacy");
  await assertRejects(
    () => sniff("a.pkl", Uint8Array.of(0x80, 4, 0x4b, 1, 0x2e)),
    UnsupportedError,
    "is a Python pickle, and no checkpoint of torch.save",
  );
});

Deno.test("an index is of the kind that its name says", async () => {
  assertEquals(await sniff("d/pytorch_model.bin.index.json", "{}"), "torch-index");
  assertEquals(await sniff("https://x/pytorch_model.bin.index.json?a=1", "{}"), "torch-index");
  assertEquals(await sniff("model.safetensors.index.json", "{}"), "safetensors-index");
});

for (const [name, magic] of Object.entries({ ggml: "lmgg", ggmf: "fmgg", ggjt: "tjgg" })) {
  Deno.test(`a ${name} file is refused by name, with what to do`, async () => {
    const bytes = new TextEncoder().encode(magic + "\x01\0\0\0".repeat(8));
    await assertRejects(() => sniff("old.bin", bytes), UnsupportedError, "before GGUF");
    await assertRejects(() => sniff("old.bin", bytes), UnsupportedError, "Convert it with");
  });
}

Deno.test("a model of 640 channels is no pickle although it begins with the same bytes", async () => {
  const [dim, hidden, layers, heads, vocabulary, context] = [640, 8, 1, 8, 2, 4];
  const elements = 2 * vocabulary * dim + 2 * dim + 4 * dim * dim + 3 * hidden * dim + dim;
  const file = new Uint8Array(28 + 4 * elements + context * (dim / heads) * 4);
  file.set(
    new Uint8Array(
      Int32Array.of(dim, hidden, layers, heads, heads, -vocabulary, context).buffer,
    ),
  );
  assertEquals([file[0], file[1]], [0x80, 2]);
  assertEquals(await sniff("model.bin", file), "llama2c");
});
