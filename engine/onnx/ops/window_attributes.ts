// Attributes of sliding windows, as convolutions and pools share them, and what engine ops call them.

import { int, ints, text } from "../derivation/attributes.ts";

/** Attributes of convolutions. */
export const convAttributes = {
  auto_pad: text("NOTSET", ["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"]),
  dilations: ints([]),
  group: int(1),
  kernel_shape: ints(undefined),
  pads: ints([]),
  strides: ints([]),
} as const;

/** What `windowOf` reads. */
export interface WindowGiven {
  readonly auto_pad?: string;
  readonly dilations?: readonly number[];
  readonly pads?: readonly number[];
  readonly strides?: readonly number[];
}

/** A window's attributes for an engine op. */
export function windowOf(
  { auto_pad = "NOTSET", dilations = [], pads = [], strides = [] }: WindowGiven,
): {
  readonly strides: readonly number[];
  readonly dilations: readonly number[];
  readonly pads: readonly number[];
  readonly padding: string;
} {
  if (pads.some((pad) => pad < 0)) throw new RangeError(`pads are ${pads}: must not be negative`);
  const same = auto_pad.startsWith("SAME");
  return {
    ...{ strides, dilations },
    pads: auto_pad === "NOTSET" ? pads : [],
    padding: same ? auto_pad.toLowerCase() : "explicit",
  };
}
