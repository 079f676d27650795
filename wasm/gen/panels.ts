// Kinds of unpacked panels (unpack.ts), as far as register tiles (tiles.ts) differ by them.

import { factorBits, type WeightLayout } from "../weight_layout.ts";
import { addsMinima, isCentered } from "./cells.ts";
import { hasSigns } from "./scales.ts";
import { hasSteps } from "./steps.ts";

/** A kind of panel. */
export interface PanelKind {
  /** Part of a kernel's name. */
  readonly name: string;
  /** Most bits of a code. */
  readonly bits: 4 | 5 | 6 | 7 | 8;
  readonly groupColumns: 16 | 32;
  /** Whether sums start where an offset takes them (cells.ts), so that there are no minima. */
  readonly centered?: boolean;
  /** Whether minima (or offsets) are added where the style reads codes as signed. */
  readonly minima: boolean;
  /** Whether codes are signed, with another scale below zero; minima are those scales then. */
  readonly signs?: boolean;
  /** Whether scales are steps (steps.ts). */
  readonly steps?: boolean;
  /** What is subtracted from a code, where scales are steps without minima; a power of two. */
  readonly offset?: number;
}

/** The kind of layouts with two scales by sign. */
export const SIGNS: PanelKind = {
  ...{ name: "signs", bits: 7, groupColumns: 32, minima: false, signs: true },
};

/** Kinds of scales that are steps. */
export const STEPS: readonly PanelKind[] = [
  { name: "steps32_4bit", bits: 4, groupColumns: 32, minima: true, steps: true },
  { name: "steps32_5bit", bits: 5, groupColumns: 32, minima: true, steps: true },
  { name: "steps16_3bit", bits: 4, groupColumns: 16, minima: false, steps: true, offset: 4 },
  { name: "steps16_6bit", bits: 6, groupColumns: 16, minima: false, steps: true, offset: 32 },
];

/** Kinds of panels, in the order of their numbers. */
export const PANEL_KINDS: readonly PanelKind[] = [
  { name: "g16", bits: 6, groupColumns: 16, minima: true },
  { name: "g16_7bit", bits: 7, groupColumns: 16, minima: true },
  { name: "c32_4bit", bits: 4, groupColumns: 32, minima: false, centered: true },
  { name: "c32_5bit", bits: 5, groupColumns: 32, minima: false, centered: true },
  { name: "g32_4bit", bits: 4, groupColumns: 32, minima: true },
  { name: "g32_5bit", bits: 5, groupColumns: 32, minima: true },
  { name: "g32_6bit", bits: 6, groupColumns: 32, minima: true },
  { name: "g32_8bit", bits: 8, groupColumns: 32, minima: false, centered: true },
  { name: "g32_8bit_min", bits: 8, groupColumns: 32, minima: true },
  SIGNS,
  ...STEPS,
];

/** The number of a layout's kind; 0 for layouts without codes. */
export function panelKind(layout: WeightLayout): number {
  if (layout.kind !== "codes") return 0;
  const bits = factorBits(layout);
  return PANEL_KINDS.findIndex((kind) =>
    (kind.signs ?? false) === hasSigns(layout) &&
    (kind.centered ?? false) === (layout.points === undefined && isCentered(layout)) &&
    (kind.steps ?? false) === hasSteps(layout) &&
    kind.groupColumns === layout.groupColumns &&
    kind.bits >= bits && (!kind.steps || (kind.offset ?? 0) === layout.offset) &&
    (kind.bits < 8 || kind.minima === addsMinima(layout, true))
  );
}

/** Kinds for styles to which the width of a code is all one, so that the widest serves. */
export const WIDEST_KINDS: readonly PanelKind[] = [
  { name: "g32", bits: 5, groupColumns: 32, minima: true },
  { name: "g16", bits: 6, groupColumns: 16, minima: true },
  { name: "c32", bits: 5, groupColumns: 32, minima: false, centered: true },
  SIGNS,
  ...STEPS.filter(({ name }) => name !== "steps32_4bit"),
];

/** The kind among those that serves another one. */
export function widestKind(kind: PanelKind): PanelKind {
  return WIDEST_KINDS.find((wide) =>
    wide.groupColumns === kind.groupColumns && (wide.signs ?? false) === (kind.signs ?? false) &&
    (wide.centered ?? false) === (kind.centered ?? false) &&
    (wide.steps ?? false) === (kind.steps ?? false) && (wide.offset ?? 0) === (kind.offset ?? 0)
  )!;
}
