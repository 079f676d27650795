// Operands of the kernel that reads and packs weights (assembly/pack/weight.ts), as whoever lets it read files writes them.

import type { Machine } from "./machine.ts";
import { instruction, OPCODES } from "./opcodes.ts";
import { NO_BLOCKS, NO_FILE, type PackOperands } from "./place_weight.ts";

/** An operand list that does nothing. */
export const NOTHING: PackOperands = {
  ...NO_FILE,
  ...NO_BLOCKS,
  ...{ kind: 0, layout: 0, source: 0, rows: 0, row_bytes: 0, columns: 0, target: 0, tile_bytes: 0 },
  ...{ chunk: 0, bad: 0, scratch: 0, scratch_bytes: 0 },
};

/** Number of the kernel. */
export const [PACK_OPCODE] = instruction("pack_weight", NOTHING);

/** Their names, in order. */
export const PACK_NAMES = Object.keys(OPCODES.pack_weight.operands) as (keyof PackOperands)[];

/**
 * The operands in their order. Not by `instruction`, which looks for mistakes in the names: there are hundreds, of one
 * form, in the way of all else.
 */
export function packWords(operands: PackOperands): number[] {
  return PACK_NAMES.map((name) => operands[name]);
}

const double = new Float64Array(1);
const wordsOfDouble = new Uint32Array(double.buffer);

/** A double as two operands. */
export function halves(value: number): Pick<PackOperands, "file_offset" | "file_offset_high"> {
  double[0] = value;
  return { file_offset: wordsOfDouble[0]!, file_offset_high: wordsOfDouble[1]! };
}

/** Length and UTF-8 of a text in memory. */
export function writeText(
  machine: Machine,
  { text, allocate }: {
    readonly text: string;
    readonly allocate: (bytes: number) => number;
  },
): number {
  const utf8 = new TextEncoder().encode(text);
  const address = allocate(4 + utf8.length);
  machine.u32(address, 1)[0] = utf8.length;
  machine.u8(address + 4, utf8.length).set(utf8);
  return address;
}
