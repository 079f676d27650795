// Ops of com.microsoft that language models and quantised encoders carry, against onnxruntime
// (tools/fixtures/make_contrib_ops.py).

import { assert, assertEquals } from "@std/assert";
import { type GraphTensor, loadGraph } from "../mod.ts";
import { fixturePath } from "./support/fixtures.ts";

interface Stored {
  readonly type: "float32" | "uint8" | "int8" | "int32" | "int64";
  readonly dims: readonly number[];
  readonly data: string;
}

interface Case {
  readonly name: string;
  /** The file, in base64. */
  readonly model: string;
  readonly inputs: Readonly<Record<string, Stored>>;
  readonly outputs: Readonly<Record<string, Stored>>;
  /** Most of the largest value that an element may differ by. */
  readonly tolerance: number;
}

const ARRAYS = {
  float32: Float32Array,
  uint8: Uint8Array,
  int8: Int8Array,
  int32: Int32Array,
  int64: BigInt64Array,
};

function tensorOf({ type, dims, data }: Stored): GraphTensor {
  return { data: new ARRAYS[type](Uint8Array.fromBase64(data).buffer), dims };
}

const { cases } = JSON.parse(await Deno.readTextFile(fixturePath("onnx_contrib.json"))) as {
  cases: readonly Case[];
};

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
          const result = results[key] as GraphTensor;
          assertEquals([result.type, result.dims], [stored.type, stored.dims], key);
          const wanted = Array.from(tensorOf(stored).data as Float32Array, Number);
          const actual = Array.from(result.data as Float32Array, Number);
          const bound = tolerance * Math.max(...wanted.map(Math.abs));
          const at = wanted.findIndex((value, i) => !(Math.abs(value - actual[i]!) <= bound));
          assert(at < 0, `${key}[${at}] on ${device}: ${actual[at]}, ${wanted[at]} wanted`);
        }
      }
    } finally {
      await Deno.remove(path);
    }
  });
}
