// What the last published version wrote is read, or refused by name (docs/stability.md). The files were written by the
// version that their folder names.

import { assertEquals, assertRejects } from "@std/assert";
import { FormatError } from "../engine/errors.ts";
import { readRecord } from "../engine/formats/hub/cache.ts";
import { generate } from "../mod.ts";
import { fixturePath } from "./support/fixtures.ts";
import { withFolder } from "./support/folder.ts";
import { loadTiny } from "./support/models.ts";

const SAVED = fixturePath("published/0.1.0/session.saved");
/** Caches are laid out by these, and a session is of one layout. */
const OPTIONS = { contextLength: 64, precision: "exact" } as const;
/** Tokens of the session, and what the model went on with when it was saved. */
const NEXT = { from: "abc", ids: [122, 244, 125, 21] };

Deno.test("a session of the last version goes on as it did then", async () => {
  using model = await loadTiny(OPTIONS);
  if (Deno.args.includes("--update")) {
    using session = model.createSession();
    await session.sync(model.tokenizer.encode(NEXT.from));
    await Deno.writeFile(SAVED, await session.save());
  }
  using session = model.createSession();
  await session.load(await Deno.readFile(SAVED));
  assertEquals([...session.tokens], model.tokenizer.encode(NEXT.from));
  const { ids } = await generate(session, session.tokens, { maxTokens: 4, temperature: 0 }).result;
  assertEquals(ids, NEXT.ids);
});

Deno.test("a session of another version is refused by the name of both", async () => {
  using model = await loadTiny(OPTIONS);
  const bytes = await Deno.readFile(SAVED);
  new DataView(bytes.buffer).setUint32(40, 99, true);
  using session = model.createSession();
  await assertRejects(() => session.load(bytes), FormatError, "has version 99, and only");
});

Deno.test("a record of the last version's model cache is read", async () => {
  await withFolder(async (folder) => {
    const record = JSON.parse(await Deno.readTextFile(fixturePath("published/0.1.0/model.json")));
    for (const { name, bytes } of record.files) {
      await Deno.writeFile(`${folder}/${name}`, new Uint8Array(bytes));
    }
    await Deno.writeTextFile(`${folder}/model.json`, JSON.stringify(record));
    assertEquals(readRecord(folder), record);
  });
});
