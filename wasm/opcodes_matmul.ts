// Kernels of the matmul family: quantisation of activations, matrix products, embedding rows.
// See opcodes.ts.

import type { OpcodeRecord } from "./opcodes.ts";

/** Table of these kernels. */
export const MATMUL_OPCODES = {} as const satisfies Record<string, OpcodeRecord>;
