// Weights kept apart from a quantised tensor, from the policy over the file to the logits.

import {
  assert,
  assertAlmostEquals,
  assertEquals,
  assertGreater,
  assertLess,
  assertRejects,
} from "@std/assert";
import { FormatError, UnsupportedError } from "../engine/errors.ts";
import { openModel } from "../engine/models/open_model.ts";
import { load } from "../engine/models/load.ts";
import { fileError } from "../engine/quantize/quant_error.ts";
import { quantizeModel } from "../engine/quantize/quantize.ts";
import { getPolicy } from "../quant/policies.ts";
import type { QuantPolicy } from "../quant/policy.ts";
import { parsePolicy } from "../engine/quantize/policy_file.ts";
import { withFolder } from "./support/folder.ts";
import { TINY_LLAMA } from "./support/models.ts";

const POLICY: QuantPolicy = parsePolicy('{"format":"q4_0","outliers":0.02}');

async function quantizeTo(input: string, output: string, policy: QuantPolicy) {
  const file = await openModel(input);
  try {
    return await quantizeModel(file, { path: output, policy });
  } finally {
    file.close();
  }
}

async function logitsOf(path: string, device: "reference" | "wasm", precision: "exact" | "fast") {
  using model = await load(path, { device, precision, logitRows: 4, contextLength: 32 });
  using session = model.createSession();
  const all: number[] = [];
  await session.eval([1, 5, 9, 3, 7], { onLogits: (logits) => all.push(...logits) });
  return all;
}

Deno.test("outliers stand beside their tensors, count as bytes, and make the error smaller", async () => {
  await withFolder(async (folder) => {
    const plain = `${folder}/plain.gguf`, sparse = `${folder}/sparse.safetensors`;
    await quantizeTo(TINY_LLAMA, plain, getPolicy("q4_0"));
    const { tensors, container } = await quantizeTo(TINY_LLAMA, sparse, POLICY);
    assertEquals(container, "safetensors");
    const q = tensors.find(({ name }) => name === "blk.0.attn_q.weight")!;
    assertEquals([q.shape, q.outliers], [[32, 32], 20]);
    assertEquals(q.bytes, 32 * 18 + 4 * 33 + 8 * 20);
    assertEquals(tensors.find(({ name }) => name === "token_embd.weight")!.outliers, 0);
    const [before, first, second] = await Promise.all([TINY_LLAMA, plain, sparse].map(openModel));
    assert(!second!.tensors.has("blk.0.attn_q.weight.outlier_values"));
    const worse = (await fileError(before!, first!)).tensors.find(({ name }) => name === q.name)!;
    const better = (await fileError(before!, second!)).tensors.find(({ name }) => name === q.name)!;
    assertEquals(better.mean, q.error!.mean);
    assertLess(better.mean, 0.95 * worse.mean);
    for (const file of [before, first, second]) file!.close();
  });
});

Deno.test("a model with outliers computes what its whole weights say, on every precision", async () => {
  await withFolder(async (folder) => {
    const sparse = `${folder}/sparse.safetensors`, whole = `${folder}/whole.gguf`;
    await quantizeTo(TINY_LLAMA, sparse, POLICY);
    await quantizeTo(sparse, whole, getPolicy("f32"));
    const expected = await logitsOf(whole, "reference", "exact");
    const largest = Math.max(...expected.map(Math.abs));
    for (
      const [device, precision, tolerance] of [
        ["reference", "exact", 1e-5],
        ["wasm", "exact", 1e-5],
        ["wasm", "fast", 0.05],
      ] as const
    ) {
      const logits = await logitsOf(sparse, device, precision);
      assertEquals(logits.length, expected.length);
      logits.forEach((value, i) => assertAlmostEquals(value, expected[i]!, tolerance * largest));
    }
    const plain = await logitsOf(TINY_LLAMA, "reference", "exact");
    assertGreater(
      Math.max(...plain.map((value, i) => Math.abs(value - expected[i]!))),
      1e-4 * largest,
    );
  });
});

Deno.test("GGUF has no place for outliers, and broken ones are refused by name", async () => {
  await withFolder(async (folder) => {
    await assertRejects(
      () => quantizeTo(TINY_LLAMA, `${folder}/a.gguf`, POLICY),
      RangeError,
      ".safetensors",
    );
    const path = `${folder}/a.safetensors`;
    await quantizeTo(TINY_LLAMA, path, POLICY);
    const file = await openModel(path);
    const { outliers } = file.tensors.get("blk.0.ffn_up.weight")!;
    const at = outliers!.columns.offset;
    file.close();
    const bytes = await Deno.readFile(path);
    const damage = async (offset: number, value: number, message: string) => {
      const copy = bytes.slice();
      new DataView(copy.buffer).setInt32(offset, value, true);
      await Deno.writeFile(`${folder}/bad.safetensors`, copy);
      await assertRejects(() => load(`${folder}/bad.safetensors`), FormatError, message);
    };
    await damage(at, 32, "its outlier 0 is in column 32 of 32");
    await damage(at, -1, "its outlier 0 is in column -1 of 32");
    await damage(outliers!.starts.offset, 1, "do not follow each other");
    await damage(outliers!.starts.offset + 8, 5000, "do not follow each other");
    // What an older reader would silently leave out is a version that it does not know.
    const text = new TextDecoder("latin1").decode(bytes);
    assert(text.includes('\\"version\\":2'));
    const version = text.indexOf('\\"version\\":2') + '\\"version\\":'.length;
    const other = bytes.slice();
    other[version] = "3".charCodeAt(0);
    await Deno.writeFile(`${folder}/new.safetensors`, other);
    await assertRejects(() => load(`${folder}/new.safetensors`), UnsupportedError, "version");
  });
});

Deno.test("outliers of a tensor that is no plain matrix of a product are refused", async () => {
  await withFolder(async (folder) => {
    const path = `${folder}/a.safetensors`;
    await quantizeTo(TINY_LLAMA, path, POLICY);
    // Two heads of keys made one read the stored matrix in parts.
    await assertRejects(
      () => load(path, { kvHeads: 1 }),
      UnsupportedError,
      "its outliers cannot be added: it is not read whole by any product",
    );
  });
});
