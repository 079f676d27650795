// The table of specs and the table of families say what the spec files and fixtures say.

import { assert, assertEquals } from "@std/assert";
import { specFiles } from "../engine/models/specs/mod.ts";
import { ROOT } from "../tools/support/task.ts";
import { specFileNames } from "../tools/build/spec_table.ts";

Deno.test("every spec file of the folder is in the engine's table, under its own name", () => {
  assertEquals(specFiles.map(({ name }) => `${name}.json`), specFileNames());
});

Deno.test("docs/models.md has a row for every spec, with a folder of outside answers behind it", () => {
  const lines = Deno.readTextFileSync(`${ROOT}/docs/models.md`).split("\n");
  for (const { name } of specFiles) {
    const row = lines.find((line) => line.includes(`/specs/${name}.json) `));
    assert(row !== undefined, name);
    assert(/transformers \d|independent/.test(row), row);
  }
});
