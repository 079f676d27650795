// Writes what can be told from the spec files and the fixtures, so that a new family needs no line of code and
// no line of prose: the table of specs (engine/models/specs/table.gen.json) and README's table of families.
//
//   deno run -A tools/families.ts            writes both
//   deno run -A tools/families.ts --check    says which is stale, and fails
//
// tests/family_table_test.ts keeps them current.

import { familiesTable } from "./families/readme_table.ts";
import { specTable } from "./families/spec_table.ts";
import { readReadme, withTable } from "./support/made_table.ts";
import { ROOT } from "./support/task.ts";

/** A file with a part that is made from others. */
export interface MadeFile {
  readonly path: string;
  readonly text: string;
}

/** Both files as they should be. */
export function madeFiles(): MadeFile[] {
  const part = { name: "families", tool: "tools/families.ts", table: familiesTable() };
  return [
    { path: "engine/models/specs/table.gen.json", text: specTable() },
    { path: "README.md", text: withTable(readReadme(), part) },
  ];
}

/** Paths of those that are not. */
export function staleFiles(): string[] {
  return madeFiles()
    .filter(({ path, text }) => readOrNothing(`${ROOT}/${path}`) !== text)
    .map(({ path }) => path);
}

function readOrNothing(path: string): string | undefined {
  try {
    return Deno.readTextFileSync(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}

if (import.meta.main) {
  const stale = staleFiles();
  if (Deno.args.includes("--check")) {
    for (const path of stale) console.error(`${path} is stale: deno run -A tools/families.ts`);
    Deno.exit(stale.length > 0 ? 1 : 0);
  }
  for (const { path, text } of madeFiles()) Deno.writeTextFileSync(`${ROOT}/${path}`, text);
  console.log(stale.length > 0 ? `wrote ${stale.join(", ")}` : "nothing was stale");
}
