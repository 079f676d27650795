// Writes README's table of number formats: bits and errors follow from the formats themselves, perplexity and
// speed from what benches left in bench/results, so that the table cannot drift from either.
//
//   deno run -A tools/formats.ts            writes it
//   deno run -A tools/formats.ts --check    says whether it is stale, and fails
//
// tests/format_table_test.ts keeps it current.

import { formatRows, HEADINGS, NUMBERS } from "./formats/rows.ts";
import { alignedTable, readReadme, withTable } from "./support/made_table.ts";
import { ROOT } from "./support/task.ts";

/** README as it should be. */
export function readmeWithFormats(): string {
  const rows = formatRows();
  // Columns that nobody has measured are left out.
  const filled = HEADINGS.map((_, i) => i).filter((i) => rows.some((row) => row[i] !== ""));
  const pick = <T>(cells: readonly T[]) => filled.map((i) => cells[i]!);
  const right = filled.flatMap((column, i) => NUMBERS.includes(column) ? [i] : []);
  const table = alignedTable(pick(HEADINGS), rows.map(pick), right);
  return withTable(readReadme(), { name: "formats", tool: "tools/formats.ts", table });
}

if (import.meta.main) {
  const [wanted, found] = [readmeWithFormats(), readReadme()];
  const isStale = wanted !== found;
  if (Deno.args.includes("--check")) {
    if (isStale) console.error("README.md is stale: deno run -A tools/formats.ts");
    Deno.exit(isStale ? 1 : 0);
  }
  if (isStale) Deno.writeTextFileSync(`${ROOT}/README.md`, wanted);
  console.log(isStale ? "wrote README.md" : "nothing was stale");
}
