// The import line of generated modules: everything that matmul_simd.ts has; what a module does not use costs
// nothing in the compiled result.

const NAMES: readonly string[] = [
  "LOW4_AT",
  "BIT4_AT",
  "BITS45_AT",
  "ONES_AT",
  "LOW_BYTES_AT",
  "LOW_BYTE_AT",
  "HALF_BITS_AT",
  "HALF_SCALE_AT",
];

/** Imports of the shared constants and functions. */
export function simdImports(): string {
  return [
    `import { ${NAMES.join(", ")} } from "../matmul_simd";`,
    'import { madd } from "../simd";',
  ].join("\n");
}
