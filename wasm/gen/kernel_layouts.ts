// Which layouts get generated kernels, and what a kernel that several of them share is told by its caller.

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

/** Kernels whose layouts differ in the length of a block; it is not written into their text. */
const ANY_BLOCK: ReadonlySet<string> = new Set(["z4", "s8", "s8_signs"]);
/** Kernels whose layouts differ in the factor of their scales. */
const ANY_FACTOR: ReadonlySet<string> = new Set(["z4_32"]);

/** Whether a kernel is told how many columns a block has. */
export function takesBlock({ kernel }: WeightLayout): boolean {
  return ANY_BLOCK.has(kernel);
}

/** Further parameters of a kernel. */
export function moreParameters(layout: WeightLayout): string {
  return (takesBlock(layout) ? ", block: usize" : "") +
    (ANY_FACTOR.has(layout.kernel) ? ", factor: f32" : "");
}

/** What they are for a layout. */
export function moreArguments(layout: WeightLayout): string {
  return (takesBlock(layout) ? `, ${layout.blockColumns || "columns"}` : "") +
    (ANY_FACTOR.has(layout.kernel) ? `, ${layout.factor}` : "");
}

/** A loop over cells under one header: text at its start and at its end; `cells` counts down. */
export function cellLoop(layout: WeightLayout, left: string): [string, string] {
  const cells = takesBlock(layout)
    ? "(block + 31) >> 5"
    : `${layout.blockColumns / layout.cellColumns}`;
  return [`for (let cells: usize = min(${cells}, ${left}); cells; cells--) {`, "}"];
}
