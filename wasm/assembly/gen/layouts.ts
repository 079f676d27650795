// Layout numbers and the extents of their blocks and cells, as AssemblyScript constants and functions.

import { WEIGHT_LAYOUTS, type WeightLayout } from "../../weight_layout.ts";

function table(name: string, summary: string, of: (layout: WeightLayout) => number): string[] {
  return [
    `/** ${summary} */`,
    `export function ${name}(layout: u32): u32 {`,
    "  switch (layout) {",
    ...WEIGHT_LAYOUTS.map((layout) => `    case ${layout.id}: return ${of(layout)};`),
    "  }",
    "  return unreachable();",
    "}",
  ];
}

/** Module `generated/layouts`. */
export function layoutsModule(): string {
  return [
    ...WEIGHT_LAYOUTS.map(({ id, format }) => `export const LAYOUT_${format}: u32 = ${id};`),
    ...table("blockColumns", "Columns of a block.", (layout) => layout.blockColumns),
    ...table(
      "blockBytes",
      "Bytes of a block of eight rows.",
      ({ headerBytes, blockColumns, cellColumns, cellBytes }) =>
        headerBytes + blockColumns / cellColumns * cellBytes,
    ),
    ...table("groupColumns", "Columns that a scale covers.", (layout) => layout.groupColumns),
    "/** Whether a layout holds codes with scales. */",
    "export function hasCodes(layout: u32): bool {",
    `  return ${
      WEIGHT_LAYOUTS.filter(({ kind }) => kind === "codes").map(({ id }) => `layout == ${id}`)
        .join(" || ")
    };`,
    "}",
    "",
  ].join("\n");
}
