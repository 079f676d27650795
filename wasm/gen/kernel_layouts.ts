// Which layouts get generated kernels, and what a kernel that several of them share is told by its caller.

import { SCALE_KINDS, type ScaleKind } from "../layout_scales.ts";
import { WEIGHT_LAYOUTS, type WeightLayout } from "../weight_layout.ts";

/** Layouts of codes with scales. */
export const CODE_LAYOUTS: readonly WeightLayout[] = WEIGHT_LAYOUTS.filter(
  ({ kind }) => kind === "codes",
);

/** One layout for each kernel. */
export const KERNEL_LAYOUTS: readonly WeightLayout[] = CODE_LAYOUTS.filter(
  ({ kernel }, i) => CODE_LAYOUTS.findIndex((other) => other.kernel === kernel) === i,
);

/** Kernel whose bytes hold digits of several cells; it is unpacked by ternary.ts, multiplied by gemv_ternary.ts. */
export const TERNARY = "tq1_0";

function isTold({ scales }: WeightLayout, what: ScaleKind["told"]): boolean {
  return (SCALE_KINDS[scales] as ScaleKind).told === what;
}

/** Whether a kernel is told how many columns a block has; it is not written into its text. */
export function takesBlock(layout: WeightLayout): boolean {
  return isTold(layout, "blockColumns");
}

/** Further parameters of a kernel. */
export function moreParameters(layout: WeightLayout): string {
  return (takesBlock(layout) ? ", block: usize" : "") +
    (isTold(layout, "factor") ? ", factor: f32" : "");
}

/** What they are for a layout. */
export function moreArguments(layout: WeightLayout): string {
  return (takesBlock(layout) ? `, ${layout.blockColumns || "columns"}` : "") +
    (isTold(layout, "factor") ? `, ${layout.factor}` : "");
}

/** A loop over cells under one header: text at its start and at its end; `cells` counts down. */
export function cellLoop(layout: WeightLayout, left: string): [string, string] {
  const cells = takesBlock(layout)
    ? "(block + 31) >> 5"
    : `${layout.blockColumns / layout.cellColumns}`;
  return [`for (let cells: usize = min(${cells}, ${left}); cells; cells--) {`, "}"];
}
