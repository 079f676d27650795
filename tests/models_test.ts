// The tiny checkpoints of tests/fixtures/models against the logits and tokens of outside implementations,
// on every device. The cases are those of `deno task fixtures`; here they are tests.

import { assert, assertEquals } from "@std/assert";
import { openModel } from "../engine/models/open_model.ts";
import type { MetadataValue, WeightFile } from "../engine/formats/source.ts";
import { buildModel, readModelParts } from "../engine/models/build.ts";
import { chooseSpec } from "../engine/models/specs/mod.ts";
import { models } from "../tools/fixtures/models.ts";
import { fixturePath, readFixture } from "./support/fixtures.ts";
import { contents } from "./support/graph_contents.ts";
import { loadTiny } from "./support/models.ts";
import { checkpointPath } from "./support/seeded_weights.ts";

const DEVICES = ["reference", "wasm"] as const;
const ARCHITECTURES = ["llama", "qwen2", "qwen3", "gemma3_text"];

for (const device of DEVICES) {
  for await (const { name, run } of models.cases(fixturePath("models"), { device, full: false })) {
    if (run) Deno.test(`${device}: ${name} gives the reference's logits and tokens`, () => run());
  }
}

Deno.test("all four architectures are among the cases", async () => {
  const names: string[] = [];
  for await (
    const { name, run } of models.cases(fixturePath("models"), { device: "wasm", full: false })
  ) {
    if (run) names.push(name);
  }
  assertEquals(
    ARCHITECTURES.filter((architecture) => !names.includes(`models/${architecture}/1`)),
    [],
  );
});

interface GgufCase {
  readonly input_ids: readonly number[];
  readonly last_logits_first64: readonly number[];
  readonly greedy_ids: readonly number[];
}

// GGUF stores the query and key rows of this architecture in another order than the checkpoint.
for (const device of DEVICES) {
  Deno.test(`${device}: a quantised GGUF gives the reference's logits and tokens`, async () => {
    const expected = JSON.parse(readFixture("models/llama_formats/expected.json"));
    using model = await loadTiny({ device, precision: "exact" });
    using session = model.createSession();
    for (const one of expected.variants.gguf_Q8_0.cases as GgufCase[]) {
      await session.sync(one.input_ids);
      const worst = Math.max(
        ...one.last_logits_first64.map((value, i) => Math.abs(value - session.logits()[i]!)),
      );
      assert(worst <= 1e-4, `a logit is off by ${worst}`);
      const greedy: number[] = [];
      while (greedy.length < one.greedy_ids.length) {
        const best = session.logits().indexOf(Math.max(...session.logits()));
        greedy.push(best);
        await session.eval([best]);
      }
      assertEquals(greedy, one.greedy_ids);
    }
  });
}

Deno.test("the fast path stays close to the exact one and is the same on both devices", async () => {
  const logits: Record<string, number[]> = {};
  for (const device of DEVICES) {
    for (const precision of ["exact", "fast"] as const) {
      using model = await loadTiny({ device, precision });
      using session = model.createSession();
      await session.sync([13, 45, 91, 151, 225, 7, 8, 9]);
      logits[`${device} ${precision}`] = [...session.logits()];
    }
  }
  const distance = (a: string, b: string) =>
    Math.max(...logits[a]!.map((value, i) => Math.abs(value - logits[b]![i]!)));
  const rounding = distance("wasm fast", "wasm exact");
  assert(rounding > 1e-4 && rounding < 0.5, `8-bit activations move logits by ${rounding}`);
  assert(distance("wasm exact", "reference exact") < 1e-4);
  assert(distance("wasm fast", "reference fast") < 0.02);
});

Deno.test("older config names build the same graph as today's", async () => {
  for (const name of ARCHITECTURES) {
    const file = await openModel(checkpointPath(name));
    try {
      const older = JSON.parse(readFixture(`models/${name}/config.v4.json`));
      const build = async (variant: WeightFile) => {
        const { resolved, architecture } = chooseSpec(variant);
        const parts = readModelParts(resolved, { stored: variant, architecture });
        const options = { capacity: 32, cacheType: "f32", embeddings: false } as const;
        return contents((await buildModel(parts, options)).graph);
      };
      const metadata = new Map(Object.entries(older as Record<string, MetadataValue>));
      assertEquals(await build({ ...file, metadata }), await build(file), name);
    } finally {
      file.close();
    }
  }
});
