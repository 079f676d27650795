// Kernels on activations and state: everything but the matmul family. See opcodes.ts.
// `rows`, `count` and other extents may be symbolic; strides are in elements unless a name says bytes.

import type { OpcodeRecord } from "./opcodes.ts";

/** Table of these kernels. */
export const ACTIVATION_OPCODES = {
  /** Adds 1 to `total` cells, a chunk each; traps at chunk `trap_at` (none: -1). Tests the machine. */
  machine_check: {
    file: "machine_check",
    operands: { cells: "u32", total: "u32", trap_at: "u32" },
  },
  /** y = x · rsqrt(mean(x²) + epsilon) · (base + w); `w` 0 for none. */
  rms_norm: {
    file: "norm",
    operands: {
      x: "u32",
      w: "u32",
      y: "u32",
      rows: "u32",
      columns: "u32",
      epsilon: "f32",
      base: "f32",
    },
  },
} as const satisfies Record<string, OpcodeRecord>;
