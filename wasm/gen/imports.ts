// The import line of generated modules: everything that matmul/shared.ts has; what a module does not use costs
// nothing in the compiled result.

const NAMES: readonly string[] = [
  ...["BIT0_AT", "BIT1_AT", "LOW2_AT", "LOW4_AT", "BIT2_AT", "BIT3_AT", "BIT4_AT", "SIX_BITS_AT"],
  ...["ONES_AT", "FOURFOLD_AT", "LOW_BYTES_AT", "LOW_BYTE_AT", "HALF_BITS_AT", "HALF_SCALE_AT"],
  ...["BLOCK_HALF_AT"],
  ...["E4M3_FACTOR", "SUM_START_AT", "SPREAD_AT", "EVEN_LANES_AT"],
];

/** Imports of the shared constants and functions. */
export function simdImports(): string {
  return [
    `import { ${NAMES.join(", ")} } from "../matmul/shared";`,
    'import { E2M1_AT, IQ2_AT, IQ3_AT, IQ3_S_AT, IQ4_AT } from "./code_tables";',
    'import { hasDot, lookUp, madd } from "../simd";',
  ].join("\n");
}
