// Functions that a product applies to its result before it is stored. A pass moves them there.

import { activations } from "./activations.ts";

/** Names, in the order of their numbers in kernels. */
export const EPILOGUE_NAMES = ["none", "relu", "relu6", "hard_swish", "silu", "sigmoid"] as const;

/** One of `EPILOGUE_NAMES`. */
export type EpilogueName = typeof EPILOGUE_NAMES[number];

/** The definitions; `relu6` is clipped at 6, `hard_swish` is x · relu6(x + 3) / 6. */
export const epilogues: Readonly<Record<EpilogueName, (x: number) => number>> = {
  none: (x) => x,
  relu: (x) => Math.max(0, x),
  relu6: (x) => Math.min(6, Math.max(0, x)),
  hard_swish: (x) => x * Math.min(6, Math.max(0, x + 3)) / 6,
  silu: activations.silu,
  sigmoid: activations.sigmoid,
};
