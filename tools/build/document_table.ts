// Markdown tables that `deno task build` writes into documents, between two comments.

import { ROOT } from "../support/task.ts";

/** A document with a table in its place. @throws {Error} If the place is not marked. */
export function documentWith(
  path: string,
  { name, table }: { readonly name: string; readonly table: string },
): string {
  const text = Deno.readTextFileSync(`${ROOT}/${path}`);
  const [first, last] = [`<!-- ${name}: written by deno task build -->`, `<!-- end of ${name} -->`];
  const [begin, end] = [text.indexOf(first), text.indexOf(last)];
  if (begin < 0 || end < begin) throw new Error(`${path}: no "${first}" before "${last}"`);
  return `${text.slice(0, begin + first.length)}\n\n${table}\n${text.slice(end)}`;
}

/** A table, aligned as `deno fmt` aligns it; `right` names columns of numbers. */
export function alignedTable(
  headings: readonly string[],
  rows: readonly (readonly string[])[],
  right: readonly number[] = [],
): string {
  const widths = headings.map((heading, i) =>
    Math.max(heading.length, ...rows.map((row) => row[i]!.length))
  );
  const line = (cells: readonly string[]) =>
    `| ${
      cells.map((cell, i) =>
        right.includes(i) ? cell.padStart(widths[i]!) : cell.padEnd(widths[i]!)
      )
        .join(" | ")
    } |`;
  const rules = widths.map((width, i) =>
    right.includes(i) ? `${"-".repeat(width - 1)}:` : "-".repeat(width)
  );
  return [line(headings), `| ${rules.join(" | ")} |`, ...rows.map(line), ""].join("\n");
}
