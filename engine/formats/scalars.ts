// Plain element types that files contain but matrix products never use: integers, booleans, float64, complex numbers
// and exponents. Nothing multiplies by them, yet a file that holds, say, a table of int64 positions must open. Here
// stands only what a reader needs: name and width.

import type { NumberFormat } from "../../quant/format.ts";

/** The part of a number format that a reader needs to measure tensors. */
export type BlockLayout = Pick<NumberFormat, "name" | "blockSize" | "blockBytes">;

const all: readonly BlockLayout[] = [
  scalar("BOOL", 1),
  scalar("U8", 1),
  scalar("I8", 1),
  scalar("F8_E8M0", 1),
  scalar("U16", 2),
  scalar("I16", 2),
  scalar("U32", 4),
  scalar("I32", 4),
  scalar("U64", 8),
  scalar("I64", 8),
  scalar("F64", 8),
  scalar("C64", 8),
];

/** Element types by name. */
export const scalars: ReadonlyMap<string, BlockLayout> = new Map(all.map((s) => [s.name, s]));

const ggmlTypes: ReadonlyMap<number, string> = new Map([
  [24, "I8"],
  [25, "I16"],
  [26, "I32"],
  [27, "I64"],
  [28, "F64"],
]);

/** The element type of a ggml type id, or undefined if the id names no plain type. */
export function scalarOfGgmlType(type: number): BlockLayout | undefined {
  return scalars.get(ggmlTypes.get(type) ?? "");
}

function scalar(name: string, blockBytes: number): BlockLayout {
  return { name, blockSize: 1, blockBytes };
}
