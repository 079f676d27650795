// The table of layouts of codes by number format. A format is one entry of one of the tables below: which kind of
// codes and of scales it is, and how its blocks are read (code_layout.ts).

import type { CodeLayout } from "./code_layout.ts";
import { GGML_LAYOUTS } from "./ggml_formats.ts";
import { INFERFLOW_LAYOUTS } from "./inferflow_formats.ts";
import { K_LAYOUTS } from "./k_formats.ts";
import { PAPER_LAYOUTS, ROW_LAYOUTS } from "./paper_formats.ts";
import { TERNARY_LAYOUTS } from "./ternary_formats.ts";
import { VECTOR_LAYOUTS } from "./vector_formats.ts";

/** Layouts of codes by number format, but for those whose block is a row. */
export const CODE_LAYOUTS: Readonly<Record<string, CodeLayout>> = {
  ...GGML_LAYOUTS,
  ...K_LAYOUTS,
  ...INFERFLOW_LAYOUTS,
  ...PAPER_LAYOUTS,
  ...TERNARY_LAYOUTS,
  ...VECTOR_LAYOUTS,
};

const BY_ID: ReadonlyMap<string, CodeLayout> = new Map(
  [...Object.values(CODE_LAYOUTS), ...Object.values(ROW_LAYOUTS)].map((layout) => [
    layout.id,
    layout,
  ]),
);

/** The layout of codes of a number format whose rows are whole groups of 32 columns; undefined if there is none. */
export function codeLayoutOf(format: string): CodeLayout | undefined {
  if (Object.hasOwn(CODE_LAYOUTS, format)) return CODE_LAYOUTS[format];
  const [, family, columns] = /^(\w+)_(\d+)$/.exec(format) ?? [];
  if (family === undefined || !Object.hasOwn(ROW_LAYOUTS, family)) return undefined;
  return Number(columns) % 32 === 0 ? ROW_LAYOUTS[family] : undefined;
}

/** The layout of an id if it holds codes with scales, which integer kernels read; else undefined. */
export function codeLayout(id: string): CodeLayout | undefined {
  return BY_ID.get(id);
}
