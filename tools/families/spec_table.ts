// The table of spec files as code: an import and an element for each JSON file in engine/models/specs. Imports
// have to stand in the text of a module: one that is put together at run time needs a permission to read, and
// is not there in a bundle.

import { ROOT } from "../support/task.ts";

const FOLDER = `${ROOT}/engine/models/specs`;
/** Names that all specs share; no architecture. */
const SHARED = "names.json";

/** Spec files in order. */
export function specFileNames(): string[] {
  return [...Deno.readDirSync(FOLDER)]
    .map(({ name }) => name)
    .filter((name) => name.endsWith(".json") && name !== SHARED)
    .sort();
}

/** `gpt_neox.json` is gptNeox. */
function identifier(file: string): string {
  return file.replace(/\.json$/, "").replace(/_(\w)/g, (_, letter) => letter.toUpperCase());
}

/** Text of specs/table.gen.ts. */
export function specTable(): string {
  const files = specFileNames();
  return [
    "// Every spec file of this folder. Written by tools/families.ts; do not edit.",
    "",
    'import type { Convention } from "../spec.ts";',
    ...files.map((file) => `import ${identifier(file)} from "./${file}" with { type: "json" };`),
    "",
    "/** The spec files, as far as choosing one needs to know them. */",
    "export const specs: readonly {",
    "  readonly name: string;",
    "  readonly matches: Readonly<Record<Convention, readonly string[]>>;",
    "}[] = [",
    ...files.map((file) => `  ${identifier(file)},`),
    "];",
    "",
  ].join("\n");
}
