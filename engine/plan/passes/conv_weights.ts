// How weights of convolutions are laid out, for passes that compute new ones.
//   conv           [F, C / groups, …]
//   conv_transpose [C, F / groups, …]

import type { Node } from "../../graph/graph.ts";

/** The filter that an element of the weight belongs to, by the element's index. */
export function filtersOf({ op, inputs: [, kernel], attributes }: Node): (at: number) => number {
  const [outer, inner, ...window] = kernel!.shape as number[];
  const places = window.reduce((product, size) => product * size, 1);
  if (op === "conv") return (at) => Math.floor(at / (inner! * places));
  const channels = outer! / (attributes.groups as number);
  return (at) => {
    const group = Math.floor(at / (channels * inner! * places));
    return group * inner! + Math.floor(at / places) % inner!;
  };
}
