// Writes what can be told from the spec files and the fixtures, so that a new family needs no line of code and
// no line of prose: the table of specs (engine/models/specs/table.gen.ts) and README's table of families.
//
//   deno run -A tools/families.ts            writes both
//   deno run -A tools/families.ts --check    says which is stale, and fails
//
// tests/family_table_test.ts keeps them current.

import { familiesTable } from "./families/readme_table.ts";
import { specTable } from "./families/spec_table.ts";
import { ROOT } from "./support/task.ts";

const BEGIN = "<!-- families: written by tools/families.ts -->";
const END = "<!-- end of families -->";

/** A file with a part that is made from others. */
export interface MadeFile {
  readonly path: string;
  readonly text: string;
}

/** README with a table in its place. @throws {Error} If the place is not marked. */
function withTable(text: string, table: string): string {
  const [begin, end] = [text.indexOf(BEGIN), text.indexOf(END)];
  if (begin < 0 || end < begin) throw new Error(`README.md: no "${BEGIN}" before "${END}"`);
  return `${text.slice(0, begin + BEGIN.length)}\n\n${table}\n${text.slice(end)}`;
}

/** Both files as they should be. */
export function madeFiles(): MadeFile[] {
  const readme = Deno.readTextFileSync(`${ROOT}/README.md`);
  return [
    { path: "engine/models/specs/table.gen.ts", text: specTable() },
    { path: "README.md", text: withTable(readme, familiesTable()) },
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
