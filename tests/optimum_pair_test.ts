// A decoder in the two files that Optimum writes, against onnxruntime, which reads the prompt by the first file and
// goes on with the second (tools/fixtures/make_optimum_pair.py).

import { assert, assertEquals } from "@std/assert";
import { inspectModel, load, type LoadOptions } from "../mod.ts";
import { fixturePath } from "./support/fixtures.ts";

const FOLDER = fixturePath("optimum_pair");
const { prompt, greedy, logits } = JSON.parse(
  await Deno.readTextFile(`${FOLDER}/expected.json`),
) as { prompt: number[]; greedy: number[]; logits: number[][] };

async function assertAnswer(path: string, options: LoadOptions): Promise<void> {
  using model = await load(path, options);
  using session = model.createSession();
  await session.sync(prompt);
  for (const [step, wanted] of logits.entries()) {
    const actual = [...session.logits()];
    const worst = Math.max(...wanted.map((value, i) => Math.abs(value - actual[i]!)));
    assert(worst < 2e-4, `step ${step}: logits differ by ${worst}`);
    const best = actual.indexOf(Math.max(...actual));
    assertEquals(best, greedy[step], `step ${step}`);
    await session.eval([best]);
  }
}

Deno.test("a folder of Optimum's two files answers as onnxruntime does with both", async () => {
  for (const device of ["reference", "wasm"] as const) {
    for (const padTo of [1, 64] as const) {
      await assertAnswer(FOLDER, { device, threads: 1, precision: "exact", padTo });
    }
  }
});

Deno.test("either file brings the one for later steps, which is read a token at a time", async () => {
  for (const name of ["decoder_model.onnx", "decoder_with_past_model.onnx"]) {
    const path = `${FOLDER}/${name}`;
    await assertAnswer(path, { device: "wasm", threads: 1, precision: "exact" });
    const { info } = await inspectModel(path);
    assertEquals([info.layers, info.kvHeads, info.headDim], [2, 2, 8]);
    assertEquals(info.warnings, [
      "the graph was exported for steps of one token: prompts are read token by token",
    ]);
  }
});
