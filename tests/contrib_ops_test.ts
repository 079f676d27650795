// Ops of com.microsoft that language models and quantised encoders carry, against onnxruntime
// (tools/fixtures/make_contrib_ops.py, make_quantized_ops.py).

import { assertEquals } from "@std/assert";
import { type GraphTensor, loadGraph } from "../mod.ts";
import { fixturePath } from "./support/fixtures.ts";
import { differingElement, type StoredTensor, tensorOf } from "./support/stored_tensors.ts";

interface Case {
  readonly name: string;
  /** The file, in base64. */
  readonly model: string;
  readonly inputs: Readonly<Record<string, StoredTensor>>;
  readonly outputs: Readonly<Record<string, StoredTensor>>;
  /** Most of the largest value that an element may differ by. */
  readonly tolerance: number;
}

const FILES = ["onnx_contrib.json", "onnx_quantized.json"];
const cases = FILES.flatMap((file) =>
  (JSON.parse(Deno.readTextFileSync(fixturePath(file))) as { cases: readonly Case[] }).cases
);

for (const { name, model, inputs, outputs, tolerance } of cases) {
  Deno.test(`${name}: as onnxruntime computes it`, async () => {
    const path = await Deno.makeTempFile({ suffix: ".onnx" });
    try {
      await Deno.writeFile(path, Uint8Array.fromBase64(model));
      const given = Object.entries(inputs).map(([key, value]) => [key, tensorOf(value)] as const);
      for (const device of ["reference", "wasm"] as const) {
        using graph = await loadGraph(path, { device });
        const results = await graph.run(Object.fromEntries(given));
        for (const [key, stored] of Object.entries(outputs)) {
          const reason = differingElement(results[key] as GraphTensor, stored, tolerance);
          assertEquals(reason, undefined, `${key} on ${device}`);
        }
      }
    } finally {
      await Deno.remove(path);
    }
  });
}
