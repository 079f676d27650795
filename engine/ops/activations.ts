// Functions of one number by name, for ops that apply one to their results.

import { UNARY, UNARY_NAMES, type UnaryName } from "../../functions/unary.ts";

export { ACTIVATION_NAMES, type UnaryName as ActivationName } from "../../functions/unary.ts";

/** Every function of floats, at the defaults of `unary`; `none` leaves a number as it is. */
export const activations: Readonly<Record<UnaryName | "none", (x: number) => number>> = {
  none: (x) => x,
  ...Object.fromEntries(
    UNARY_NAMES.map((name) => [name, (x: number) => UNARY[name].float!(x, 1, 0)]),
  ) as Record<UnaryName, (x: number) => number>,
};
