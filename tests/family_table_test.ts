// The table of specs and README's table of families say what the spec files and fixtures say.

import { assert, assertEquals } from "@std/assert";
import { specFiles } from "../engine/models/specs/mod.ts";
import { madeFiles, staleFiles } from "../tools/families.ts";
import { specFileNames } from "../tools/families/spec_table.ts";

Deno.test("both tables are what `deno run -A tools/families.ts` writes", () => {
  assertEquals(staleFiles(), []);
});

Deno.test("every spec file of the folder is in the engine's table, under its own name", () => {
  assertEquals(specFiles.map(({ name }) => `${name}.json`), specFileNames());
});

Deno.test("README has a row for every spec, with a folder of outside answers behind it", () => {
  const readme = madeFiles().find(({ path }) => path === "README.md")!.text;
  for (const { name } of specFiles) {
    const row = readme.split("\n").find((line) => line.includes(`/specs/${name}.json) `));
    assert(row !== undefined, name);
    assert(/transformers \d|independent/.test(row), row);
  }
});
