// What `peak` measures, by number (wasm/gen/peak.ts), and the operations of one step of it: twelve
// vectors, multiplications and additions counted apart. Sums of 16 bits are widened once in several steps
// in real products; `pair` leaves that out, so it is the limit of the best of them.

import type { WasmCapabilities } from "../../wasm/probe.ts";

/** Kind of arithmetic. */
export interface PeakKind {
  readonly name: "dot" | "pair" | "wide" | "float";
  readonly kind: number;
  /** Of one of the `times` steps of a chunk. */
  readonly operations: number;
  readonly isRelaxed: boolean;
}

const VECTORS = 12;

const KINDS: readonly PeakKind[] = [
  { name: "dot", kind: 0, operations: VECTORS * 2 * 16, isRelaxed: true },
  { name: "pair", kind: 1, operations: VECTORS * 2 * 16, isRelaxed: true },
  { name: "wide", kind: 2, operations: VECTORS * 2 * 8, isRelaxed: false },
  { name: "float", kind: 3, operations: VECTORS * 2 * 4, isRelaxed: false },
];

/** Kinds that a machine has. */
export function peakKinds({ simd }: Pick<WasmCapabilities, "simd">): readonly PeakKind[] {
  return KINDS.filter(({ isRelaxed }) => simd === "relaxed" || !isRelaxed);
}
