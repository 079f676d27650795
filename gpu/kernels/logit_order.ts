// Logits as integers that are in the same order, so that the best of them are found without floating-point comparisons,
// which compilers may take apart as if there were no NaN. A NaN of either sign is above all numbers: it comes out as the
// best, and whoever reads it there can say so. Both zeros are equal, as for a sampler on the host.

import { wgsl } from "../wgsl.ts";

/** `order_of(bits of a float)`: greater for greater floats; 0 for none of them. */
export const LOGIT_ORDER: string = wgsl`
  fn order_of(bits: u32) -> u32 {
    if ((bits & 0x7fffffffu) > 0x7f800000u) { return 0xffffffffu; }
    if (bits == 0x80000000u) { return bits; }
    return select(bits | 0x80000000u, ~bits, bits >= 0x80000000u);
  }

  // Of equal logits the lower id is better, as a sampler on the host decides.
  fn is_better(order: u32, id: u32, other: u32, other_id: u32) -> bool {
    return order > other || (order == other && id < other_id);
  }
`;

/** Bits of the float that has this order. */
export function bitsOfOrder(order: number): number {
  return (order >= 0x80000000 ? order ^ 0x80000000 : ~order) >>> 0;
}
