// MiniLM as ONNX: the published file with 8-bit weights, and one in float32 made of the checkpoint.

import { assert, assertAlmostEquals, assertEquals, assertRejects } from "@std/assert";
import { openModel } from "../engine/models/open_model.ts";
import { loadGraph } from "../engine/onnx/running/load_graph.ts";
import { sentenceVectors } from "../engine/pipelines/sentence_vectors.ts";
import { readFixture } from "./support/fixtures.ts";
import { miniLmOnnx } from "./support/minilm_onnx.ts";
import { modelNeed, modelPath } from "./support/models.ts";
import { testWith } from "./support/skip.ts";

interface Golden {
  readonly ids: readonly (readonly number[])[];
  readonly vectors_f32: readonly (readonly number[])[];
  readonly vectors_int8_first16: readonly (readonly number[])[];
  readonly cosine_f32_int8_same_sentence: readonly number[];
}

const golden: Golden = JSON.parse(readFixture("golden/embedding-minilm.json"));

function cosine(a: ArrayLike<number>, b: ArrayLike<number>): number {
  return Array.from(a).reduce((sum, value, i) => sum + value * b[i]!, 0);
}

testWith([modelNeed("minilm-int8")], "MiniLM with 8-bit weights gives its vectors", async () => {
  using graph = await loadGraph(modelPath("minilm-int8")!, { device: "wasm" });
  const vectors = await sentenceVectors(graph, golden.ids);
  vectors.forEach((vector, i) => {
    golden.vectors_int8_first16[i]!.forEach((value, k) => {
      assertAlmostEquals(vector[k]!, value, 2e-5, `sentence ${i}, value ${k}`);
    });
    const expected = golden.cosine_f32_int8_same_sentence[i]!;
    assertAlmostEquals(cosine(vector, golden.vectors_f32[i]!), expected, 2e-5);
  });
  const [alone] = await sentenceVectors(graph, [golden.ids[1]!], { normalize: false });
  const norm = Math.hypot(...alone!);
  assert(norm > 1.5 || norm < 0.9, `not normalized: ${norm}`);
  assertAlmostEquals(cosine(alone!, vectors[1]!) / norm, 1, 1e-5);
  await assertRejects(() => sentenceVectors(graph, [[]]), RangeError, "sequence 0");
  assertEquals(await sentenceVectors(graph, []), []);
});

testWith(
  [modelNeed("minilm")],
  "MiniLM in float32, layers written out, gives its vectors",
  async () => {
    const file = await Deno.makeTempFile({ suffix: ".onnx" });
    try {
      const checkpoint = await openModel(modelPath("minilm")!);
      await Deno.writeFile(file, await miniLmOnnx(checkpoint));
      checkpoint.close();
      // The worst of the rounded ones is that of the empty text.
      for (const [precision, least] of [["exact", 0.99999], ["fast", 0.997]] as const) {
        using graph = await loadGraph(file, { device: "wasm", precision });
        const vectors = await sentenceVectors(graph, golden.ids);
        const cosines = vectors.map((vector, i) => cosine(vector, golden.vectors_f32[i]!));
        assert(cosines.every((found) => found >= least), `${precision}: ${cosines}`);
        assert(cosines.filter((found) => found >= 0.999).length >= 3, `${precision}: ${cosines}`);
        assertEquals(cosines.every((found) => found >= 0.99999), precision === "exact");
      }
      await assertRejects(
        () => loadGraph(file, { precision: "exakt" as "exact" }),
        RangeError,
        'precision "exakt"',
      );
    } finally {
      await Deno.remove(file);
    }
  },
);
