// Layout numbers and what kernels must know about each, as AssemblyScript constants and functions.

import { CODE_ORDERS, SCALE_SOURCES } from "../format_layouts.ts";
import { SCALE_KINDS } from "../layout_scales.ts";
import { getFormat } from "../../quant/mod.ts";
import { POINT_GRIDS } from "../point_grids.ts";
import { WEIGHT_LAYOUTS, type WeightLayout } from "../weight_layout.ts";
import { PANEL_KINDS, panelKind } from "./panels.ts";

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

function constants(prefix: string, names: readonly string[]): string[] {
  return names.map((name, id) => `export const ${prefix}_${name.toUpperCase()}: u32 = ${id};`);
}

function idsOf(has: (layout: WeightLayout) => boolean): string {
  return WEIGHT_LAYOUTS.filter(has).map(({ id }) => `layout == ${id}`).join(" || ");
}

const FORMS: readonly string[] = ["minimum", "zero", "thousandths", "signs"];

/** Module `generated/layouts`. */
export function layoutsModule(): string {
  return [
    ...constants("LAYOUT", WEIGHT_LAYOUTS.map(({ name }) => name)),
    ...constants("ORDER", CODE_ORDERS),
    ...constants("SOURCE", SCALE_SOURCES),
    ...constants("FORM", FORMS),
    ...constants("PANEL", PANEL_KINDS.map(({ name }) => name)),
    ...table("blockColumns", "Columns of a block; 0: a row.", (layout) => layout.blockColumns),
    ...table("headerBytes", "Bytes of a header.", (layout) => layout.headerBytes),
    ...table("cellBytes", "Bytes of a cell.", (layout) => layout.cellBytes),
    ...table("scaleBytes", "Bytes of scales in a cell.", (layout) => layout.scaleBytes),
    ...table("codeBits", "Bits of a code.", (layout) => layout.bits),
    ...table("cellColumns", "Columns of a cell.", (layout) => layout.cellColumns),
    ...table("groupColumns", "Columns that a scale covers.", (layout) => layout.groupColumns),
    ...table(
      "formOf",
      "How a number comes from a code.",
      ({ scales }) => FORMS.indexOf(SCALE_KINDS[scales].form),
    ),
    ...table("panelOf", "Kind of panel that register tiles get.", panelKind),
    ...table(
      "indexBits",
      "Bits of the number of a grid point; 0: no points.",
      ({ points }) => points ? POINT_GRIDS[points.grid].indexBits : 0,
    ),
    ...table(
      "pointsOfRow",
      "Grid points of a row in a cell.",
      ({ points }) => points ? 32 / POINT_GRIDS[points.grid].dimensions : 0,
    ),
    ...table(
      "fileBlockBytes",
      "Bytes of a file's block of grid points.",
      ({ name, points }) => points ? getFormat(name).blockBytes : 0,
    ),
    "/** Whether a layout holds points of a grid. */",
    "export function hasPoints(layout: u32): bool {",
    `  return ${idsOf(({ points }) => points !== undefined)};`,
    "}",
    "/** Whether a layout's cells have bytes that mean nothing. */",
    "export function hasSpareBytes(layout: u32): bool {",
    `  return ${idsOf(({ spareBytes }) => spareBytes > 0)};`,
    "}",
    "/** Whether a layout holds codes with scales. */",
    "export function hasCodes(layout: u32): bool {",
    `  return ${idsOf(({ kind }) => kind === "codes")};`,
    "}",
    "",
  ].join("\n");
}
