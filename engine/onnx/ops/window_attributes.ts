// Attributes of sliding windows, as convolutions and pools share them, and what engine ops call them.

import { int, ints, required, text } from "../derivation/attributes.ts";

const places = { pads: ints([]), strides: ints([]) } as const;
const auto_pad = text("NOTSET", { choices: ["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"] });

/** Attributes of convolutions whose pads are given. */
export const plainConvAttributes = {
  ...places,
  ...{ dilations: ints([]), group: int(1), kernel_shape: ints() },
} as const;

/** Attributes of convolutions. */
export const convAttributes = { ...plainConvAttributes, auto_pad } as const;

/** Attributes of pools. */
export const poolAttributes = { ...places, auto_pad, kernel_shape: required(ints()) } as const;

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
) {
  if (pads.some((pad) => pad < 0)) throw new RangeError(`pads are ${pads}: must not be negative`);
  const same = auto_pad.startsWith("SAME");
  return {
    ...{ strides, dilations },
    pads: auto_pad === "NOTSET" ? pads : [],
    padding: same ? auto_pad.toLowerCase() : "explicit",
  };
}

/** The attributes of a convolution for an engine op. */
export function convOf({ group: groups, ...window }: WindowGiven & { readonly group: number }) {
  return { ...windowOf(window), groups };
}

/** The attributes of a pool for an engine op. */
export function poolOf(
  { kernel_shape: kernel, ceil_mode: ceil = false, ...window }: WindowGiven & {
    readonly kernel_shape: readonly number[];
    readonly ceil_mode?: boolean;
  },
) {
  return { ...windowOf(window), kernel, ceil };
}
