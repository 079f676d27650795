// Memory and time of plans of full-size graphs without weights: the nets of Stable Diffusion 1.4 and a decoder of the
// shape of Llama 3.2 1B. Bounds stand in tools/fixtures/onnx_plans.ts.

import { assert, assertEquals } from "@std/assert";
import { planCases } from "../tools/fixtures/onnx_plans.ts";
import { fixturePath } from "./support/fixtures.ts";

const CASES = [...planCases(fixturePath("onnx"))];

Deno.test("the plans that have bounds are here", () => {
  assertEquals(
    CASES.map(({ name }) => name.slice("onnx/plan/".length)),
    [
      "llama32_1b",
      "sd14_text_encoder",
      "sd14_unet",
      "sd14_vae_decoder",
      "time by node",
      "stable diffusion together",
    ],
  );
});

for (const { name, run } of CASES) {
  Deno.test(`${name} keeps to its bounds of memory and time`, () => {
    assert(run);
    return run();
  });
}
