// examples/edge as a platform runs it: one file, in a process that may use the network and nothing else, without workers.

import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { cacheFolder, entryFolder } from "../engine/formats/hub/cache.ts";
import { embed, load } from "../mod.ts";
import { type Edge, type EdgeFiles, prepareEdge } from "../tools/support/edge.ts";
import { fixturePath } from "./support/fixtures.ts";
import { withFolder } from "./support/folder.ts";
import { modelNeed } from "./support/models.ts";
import { testWith } from "./support/skip.ts";
import { writeWordTokenizer } from "./support/toy_encoders.ts";

const MOST_CODE = 5_000_000;
const MOST_MEMORY = 512 << 20;

const TEXTS = ["w7 w8", "w9 w10 w11", "w12"];

/** An encoder with a tokenizer of words, in a folder of its own. */
async function withToy(body: (folder: string, files: EdgeFiles) => Promise<void>): Promise<void> {
  await withFolder(async (folder) => {
    for (const name of ["config.json", "model.safetensors"]) {
      await Deno.copyFile(fixturePath(`models/bert/${name}`), `${folder}/${name}`);
    }
    writeWordTokenizer(folder);
    await body(folder, await checkpointFiles(folder));
  });
}

/** What the example asks a checkpoint for. */
async function checkpointFiles(folder: string): Promise<EdgeFiles> {
  const names = [...Deno.readDirSync(folder)].map(({ name }) => name);
  return Object.fromEntries(
    await Promise.all(
      names.map(async (name) => [name, await Deno.readFile(`${folder}/${name}`)] as const),
    ),
  );
}

/** Runs the example on a model of these files, as a platform would. */
async function onEdge(files: EdgeFiles, body: (edge: Edge) => Promise<void>): Promise<void> {
  await using build = await prepareEdge(files);
  assert(build.bytes < MOST_CODE, `${build.bytes} bytes of code`);
  await using edge = await build.start();
  await body(edge);
}

/** The vectors that the engine gives here. */
async function expectedVectors(path: string): Promise<number[][]> {
  using model = await load(path, { device: "wasm", threads: 1 });
  return (await embed(model, TEXTS)).map((vector) => [...vector]);
}

Deno.test("one file answers without workers and without permission to read", async () => {
  await withToy((folder, files) =>
    onEdge(files, async ({ ask }) => {
      const { value, timings } = await ask("/embed", { texts: TEXTS });
      assertEquals(value, await expectedVectors(folder));
      assertEquals(Object.keys(timings), ["fetch", "load"], "of the first answer");
      const { value: found } = await ask("/search", { query: TEXTS[1], texts: TEXTS });
      assertEquals((found as { text: string }[])[0]!.text, TEXTS[1]);
      const wrong = await ask("/embed", { texts: [""] });
      assertEquals(wrong.status, 400);
      assertStringIncludes((wrong.value as { error: string }).error, "1 to 64 texts");
      assertEquals((await ask("/nothing", {})).status, 404);
    })
  );
});

Deno.test("a model that is not to be had is named, and asked for again", async () => {
  await withToy(async (_, { "model.safetensors": model, ...rest }) => {
    const files: Record<string, Uint8Array<ArrayBuffer>> = rest;
    await onEdge(files, async ({ ask }) => {
      const { status, value } = await ask("/embed", { texts: TEXTS });
      assertEquals([status, value], [503, { error: "model.safetensors: the server answers 404" }]);
      files["model.safetensors"] = model!;
      assertEquals((await ask("/embed", { texts: TEXTS })).status, 200);
    });
  });
});

testWith(
  [modelNeed("minilm")],
  "MiniLM stays below the memory of a platform, in floats too",
  async () => {
    const path = entryFolder(cacheFolder(), "minilm");
    await onEdge(await checkpointFiles(path), async ({ ask, peakBytes }) => {
      const { value } = await ask("/embed", { texts: TEXTS });
      assertEquals(value, await expectedVectors(path));
      assert((peakBytes() ?? 0) < MOST_MEMORY, `${peakBytes()} bytes`);
    });
  },
);
