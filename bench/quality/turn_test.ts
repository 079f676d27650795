// A turned model is the same function in another basis: tiny checkpoints before and after, one of them with
// the norms behind its blocks that make gains into matrices.

import { assert, assertAlmostEquals, assertEquals, assertRejects } from "@std/assert";
import { UnsupportedError } from "../../engine/errors.ts";
import { openModel } from "../../engine/models/open_model.ts";
import type { MetadataValue } from "../../engine/formats/source.ts";
import { load } from "../../engine/models/load.ts";
import { perplexity } from "../../engine/pipelines/perplexity.ts";
import { readFixture } from "../../tests/support/fixtures.ts";
import { GGUF_RULES } from "../../tests/support/gguf_rules.ts";
import { checkpointPath } from "../../tests/support/seeded_weights.ts";
import { toGguf } from "../../tests/support/to_gguf.ts";
import { createTurn } from "./orthogonal.ts";
import { turnModel } from "./turn.ts";

const IDS = Array.from({ length: 96 }, (_, i) => 3 + (i * i * 7 + i * 5) % 120);

Deno.test("a turn keeps lengths and angles, also into more dimensions, and depends on its seed", () => {
  const identity = (size: number) =>
    Float32Array.from({ length: size * size }, (_, i) => i % (size + 1) === 0 ? 1 : 0);
  for (const [size, width] of [[36, 36], [7, 7], [5, 24], [64, 64]] as const) {
    const columns = createTurn(size, width, 3).rows(identity(size));
    for (let i = 0; i < size; i++) {
      for (let j = 0; j <= i; j++) {
        let product = 0;
        for (let k = 0; k < width; k++) {
          product += columns[i * width + k]! * columns[j * width + k]!;
        }
        assertAlmostEquals(product, i === j ? 1 : 0, 1e-6);
      }
    }
    const other = createTurn(size, width, 4).rows(identity(size));
    assert(other.some((value, i) => Math.abs(value - columns[i]!) > 0.1), `${size} to ${width}`);
  }
});

async function withGguf(folder: string, use: (path: string, folder: string) => Promise<void>) {
  const config: Record<string, MetadataValue> = JSON.parse(
    readFixture(`models/${folder}/config.v4.json`),
  );
  const temporary = await Deno.makeTempDir();
  try {
    const path = `${temporary}/model.gguf`;
    const [rule] = GGUF_RULES[folder]!;
    await Deno.writeFile(path, await toGguf(checkpointPath(folder), config, rule!));
    await use(path, temporary);
  } finally {
    await Deno.remove(temporary, { recursive: true });
  }
}

async function lossOf(path: string): Promise<number> {
  using model = await load(path, { device: "wasm", precision: "exact", logitRows: 16 });
  assertEquals(model.info.warnings, []);
  return (await perplexity(model, IDS, { window: 24, bos: [] })).perplexity;
}

for (
  const [folder, norms] of [["llama", "norms before"], ["gemma3_text", "norms around"]] as const
) {
  Deno.test(`perplexity stays within 0.001 % when a model with ${norms} its blocks is turned`, () =>
    withGguf(folder, async (path, temporary) => {
      const expected = await lossOf(path);
      const file = await openModel(path);
      try {
        const own = file.tensors.get("token_embd.weight")!.shape[1]!;
        for (
          const [width, gains] of [[own, "folded"], [80, "folded"], [own, "kept"], [
            80,
            "kept",
          ]] as const
        ) {
          const turned = `${temporary}/turned-${width}-${gains}.gguf`;
          await turnModel(file, turned, { width, gains });
          const value = await lossOf(turned);
          assert(Math.abs(value / expected - 1) < 1e-5, `${value} is not ${expected}`);
          const other = await openModel(turned);
          other.close();
          assertEquals(other.tensors.get("token_embd.weight")!.shape[1], width);
        }
      } finally {
        file.close();
      }
    }));
}

Deno.test("a model whose norms subtract the mean is not turned", () =>
  withGguf("gpt2", async (path, temporary) => {
    const file = await openModel(path);
    try {
      await assertRejects(() => turnModel(file, `${temporary}/turned.gguf`), UnsupportedError);
    } finally {
      file.close();
    }
  }));
