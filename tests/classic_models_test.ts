// Models of scikit-learn, XGBoost and LightGBM, as their converters write them, and the ops of ai.onnx.ml one by one,
// against onnxruntime (tools/fixtures/make_classic_models.py, make_classic_ops.py).

import { assertAlmostEquals, assertEquals } from "@std/assert";
import { type GraphMap, type GraphTensor, type GraphValue, loadGraph } from "../mod.ts";
import { fixturePath } from "./support/fixtures.ts";
import { differingElement, type StoredTensor, tensorOf } from "./support/stored_tensors.ts";

/** A value of a fixture. */
type Stored =
  | StoredTensor
  | { readonly type: "list"; readonly items: readonly Stored[] }
  | { readonly type: "map"; readonly keys: StoredTensor; readonly values: readonly number[] };

interface Case {
  readonly name: string;
  /** The file, in base64. */
  readonly model: string;
  readonly inputs: Readonly<Record<string, Stored>>;
  readonly outputs: Readonly<Record<string, Stored>>;
  readonly tolerance: number;
}

async function casesOf(name: string): Promise<readonly Case[]> {
  const file = await Deno.open(fixturePath(name));
  const text = file.readable.pipeThrough(new DecompressionStream("gzip"));
  return (await new Response(text).json()).cases;
}

const cases = [
  ...await casesOf("onnx_classic.json.gz"),
  ...await casesOf("onnx_classic_ops.json.gz"),
];

function valueOf(stored: Stored): GraphValue {
  if (stored.type === "list") return stored.items.map(valueOf);
  if (stored.type !== "map") return tensorOf(stored);
  return new Map(keysOf(stored.keys).map((key, i) => [key, stored.values[i]!]));
}

function keysOf(keys: StoredTensor): readonly (string | bigint)[] {
  return Array.from(tensorOf(keys).data as ArrayLike<string | bigint>);
}

function assertStored(actual: GraphValue, stored: Stored, tolerance: number): void {
  if (stored.type === "list") {
    const items = actual as readonly GraphValue[];
    assertEquals(items.length, stored.items.length);
    stored.items.forEach((item, i) => assertStored(items[i]!, item, tolerance));
  } else if (stored.type === "map") {
    const map = actual as GraphMap;
    const keys = keysOf(stored.keys);
    assertEquals([...map.keys()].sort(), keys.toSorted());
    keys.forEach((key, i) =>
      assertAlmostEquals(map.get(key) as number, stored.values[i]!, tolerance)
    );
  } else assertEquals(differingElement(actual as GraphTensor, stored, tolerance), undefined);
}

for (const { name, model, inputs, outputs, tolerance } of cases) {
  Deno.test(`${name}: as onnxruntime computes it`, async () => {
    const path = await Deno.makeTempFile({ suffix: ".onnx" });
    try {
      await Deno.writeFile(path, Uint8Array.fromBase64(model));
      const given = Object.entries(inputs).map(([key, value]) => [key, valueOf(value)] as const);
      for (const device of ["reference", "wasm"] as const) {
        using graph = await loadGraph(path, { device });
        const results = await graph.run(Object.fromEntries(given));
        for (const [key, stored] of Object.entries(outputs)) {
          assertStored(results[key]!, stored, tolerance);
        }
      }
    } finally {
      await Deno.remove(path);
    }
  });
}
