// The table of spec files: one JSON file of all those in engine/models/specs, a line each. An import a spec would
// cost every load a tenth of a millisecond; one that is put together at run time needs a permission to read, and
// is not there in a bundle.

import { ROOT } from "../support/task.ts";

const FOLDER = `${ROOT}/engine/models/specs`;
/** Names that all specs share, and the table; no architectures. */
const OTHERS: readonly string[] = ["names.json", "table.gen.json"];

/** Spec files in order. */
export function specFileNames(): string[] {
  return [...Deno.readDirSync(FOLDER)]
    .map(({ name }) => name)
    .filter((name) => name.endsWith(".json") && !OTHERS.includes(name))
    .sort();
}

/** Text of specs/table.gen.json. */
export function specTable(): string {
  const specs = specFileNames().map((file) =>
    JSON.stringify(JSON.parse(Deno.readTextFileSync(`${FOLDER}/${file}`)))
  );
  return `[\n${specs.join(",\n")}\n]\n`;
}
