// Layout numbers and what kernels must know about each, as AssemblyScript constants and functions.

import { CODE_PACKINGS } from "../../quant/fields.ts";
import { SCALE_KINDS } from "../layout_scales.ts";
import type { BitField, PointBlock } from "../../quant/block.ts";
import { getFormat } from "../../quant/mod.ts";
import { SCALE_KIND_NAMES } from "../../quant/scale_kinds.ts";
import { POINT_GRIDS } from "../point_grids.ts";
import { factorBits, WEIGHT_LAYOUTS, type WeightLayout } from "../weight_layout.ts";
import { isCentered } from "./cells.ts";
import { PANEL_KINDS, panelKind } from "./panels.ts";
import { hasOffsets, hasSteps } from "./steps.ts";

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

/** Layouts of grid points, and the blocks that are packed into them. */
const POINTS = WEIGHT_LAYOUTS.filter(({ points }) => points).map(({ id, name }) => ({
  id,
  block: getFormat(name).block as PointBlock,
}));

/** A field of cell `c` of the block at `at`, with its bits above bit `above`. */
interface Part {
  readonly field: BitField;
  /** Which entry, a number or an expression, of so many. */
  readonly entry: number | string;
  readonly entries: number;
  readonly above: number;
}

function partText({ field, entry, entries, above }: Part): string {
  const { at, bits, step, group, pair = 2 * group } = field;
  // Two cells may share bytes, and so may entries; then they differ by a shift.
  const byCell = pair === 2 * group && group % 8 === 0, byEntry = step % 8 === 0;
  const cell = byCell ? `c * ${group / 8}` : `(c >> 1) * ${pair / 8}`;
  const address = `at + ${at >> 3} + ${cell}` + (byEntry ? ` + ${entry} * ${step / 8}` : "");
  const shift = `${at & 7}` + (byCell ? "" : ` + (c & 1) * ${group}`) +
    (byEntry ? "" : ` + ${entry} * ${step}`);
  const most = (at & 7) + (byCell ? 0 : group) + (byEntry ? 0 : (entries - 1) * step) + bits;
  const word = most <= 8 ? "u8" : most <= 16 ? "u16" : "u32";
  return `(((<u32>load<${word}>(${address}) >> (${shift})) & ${2 ** bits - 1}) << ${above})`;
}

/** Parts put together; each begins where the bits of the one before end, or at `apart` times its number. */
function partsText(parts: readonly Omit<Part, "above">[], apart?: number): string {
  let below = 0;
  return parts.map((part, i) => {
    const text = partText({ ...part, above: apart === undefined ? below : apart * i });
    below += part.field.bits;
    return text;
  }).join(" | ");
}

/** The number of point `i` of a cell. */
function pointText({ index, grid }: PointBlock): string {
  const entries = 32 / POINT_GRIDS[grid].dimensions;
  return partsText(index.map((field) => ({ field, entry: "i", entries })));
}

/** All signs of a cell, seven bits or eight for eight columns; or the shifts of its points, up. */
function signsText({ signs, shifts, scales }: PointBlock): string {
  const field = signs ?? shifts!;
  if (shifts && scales.kind === "n8") return "0";
  const parts = [0, 1, 2, 3].map((entry) => ({ field, entry, entries: 4 }));
  return `(${partsText(parts, field.bits)})${shifts ? " ^ 15" : ""}`;
}

/** The scale of a cell, 4 bit, or of its two groups; a shift of all is on top of three bits. */
function scaleText({ scales, shifts }: PointBlock): string {
  const entries = scales.kind === "n8" ? 1 : 2;
  const numbers = Array.from(
    { length: entries },
    (_, entry) => ({ field: scales, entry, entries }),
  );
  const shift = shifts && entries === 1 ? [{ field: shifts, entry: 0, entries: 1 }] : [];
  return partsText([...numbers, ...shift], entries === 2 ? 4 : undefined);
}

function pointReader(name: string, parameters: string, of: (block: PointBlock) => string) {
  return [
    `export function ${name}(layout: u32, at: usize${parameters}): u32 {`,
    "  switch (layout) {",
    ...POINTS.map(({ id, block }) => `    case ${id}: return ${of(block)};`),
    "  }",
    "  return unreachable();",
    "}",
  ];
}

/** Functions that read blocks of grid points: `c` is a cell, `i` a point of it. */
function pointReaders(): string[] {
  return [
    ...pointReader("pointOf", ", c: u32, i: u32", pointText),
    ...pointReader("signsOf", ", c: u32", signsText),
    ...pointReader("scaleOf", ", c: u32", scaleText),
    ...pointReader(
      "halfOf",
      ", c: u32 = 0",
      ({ d }) => partsText(d.map((field) => ({ field, entry: 0, entries: 1 }))),
    ),
  ];
}

/** Module `generated/layouts`. */
export function layoutsModule(): string {
  return [
    ...constants("LAYOUT", WEIGHT_LAYOUTS.map(({ name }) => name)),
    ...constants("PACKING", ["fields", ...CODE_PACKINGS]),
    ...constants("SCALES", ["none", ...SCALE_KIND_NAMES]),
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
      "panelBits",
      "Most bits of a code of that kind.",
      (layout) => PANEL_KINDS[panelKind(layout)]!.bits,
    ),
    ...table(
      "panelScales",
      "Scales that a weight row of such a panel has for 256 columns, with what stands beside them.",
      (layout) => hasSteps(layout) ? 9 : 256 / layout.groupColumns,
    ),
    ...table(
      "startBits",
      "Bits of the offset of codes whose sums start where it takes them (matmul/fours.ts); 0: they start at zero.",
      (layout) =>
        hasOffsets(layout) || (isCentered(layout) && factorBits(layout) < 8)
          ? Math.log2(layout.offset)
          : 0,
    ),
    ...table(
      "centerOf",
      "What codes are too large by that sums of 32 columns take away; 128: what made bytes unsigned; 0: nothing.",
      (layout) => layout.kind === "codes" && isCentered(layout) ? layout.offset : 0,
    ),
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
    "/** Whether a layout's signs are seven bits for eight columns in a file. */",
    "export function hasSevenSigns(layout: u32): bool {",
    `  return ${idsOf(({ id }) => POINTS.some((p) => p.id === id && p.block.signs?.bits === 7))};`,
    "}",
    ...pointReaders(),
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
