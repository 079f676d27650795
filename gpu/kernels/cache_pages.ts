// Where rows of caches lie: in pages of so many rows, whose numbers stand in a table. The tables of all slots lie behind
// the slots of the step's rows, in the same binding, of which devices have few. Kernels look a page up once for keys that
// they take together, and find those by their places in it.

import { wgsl } from "../wgsl.ts";

/** The table of some caches. */
export interface PageTable {
  /** Word of the binding \`slots\` at which it begins. */
  readonly first: number;
  /** Pages of a slot, one behind the other. */
  readonly perSlot: number;
  /** Rows of a page: a power of 2, which blocks of keys divide. */
  readonly rows: number;
}

/** Entry of the first page of a slot, an expression. */
export function tableOf({ first, perSlot }: PageTable, slot: string): string {
  return `${first}u + ${slot} * ${perSlot}u`;
}

/** `page_row(table, key)`: row of the caches at which the page of a key begins, of the slot with that first entry. */
export function pageRow({ rows }: PageTable): string {
  return wgsl`
    fn page_row(table: u32, key: u32) -> u32 {
      return slots[table + (key >> ${Math.log2(rows)}u)] * ${rows}u;
    }
  `;
}

/** Place of a key in its page, an expression. */
export function inPage({ rows }: PageTable, key: string): string {
  return `(${key} & ${rows - 1}u)`;
}
