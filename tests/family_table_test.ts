// The table of specs and README's table of families say what the spec files and fixtures say.

import { assert, assertEquals } from "@std/assert";
import { specFiles } from "../engine/models/specs/mod.ts";
import { readReadme } from "../tools/build/readme_table.ts";
import { specFileNames } from "../tools/build/spec_table.ts";

Deno.test("every spec file of the folder is in the engine's table, under its own name", () => {
  assertEquals(specFiles.map(({ name }) => `${name}.json`), specFileNames());
});

Deno.test("README has a row for every spec, with a folder of outside answers behind it", () => {
  const readme = readReadme();
  for (const { name } of specFiles) {
    const row = readme.split("\n").find((line) => line.includes(`/specs/${name}.json) `));
    assert(row !== undefined, name);
    assert(/transformers \d|independent/.test(row), row);
  }
});
