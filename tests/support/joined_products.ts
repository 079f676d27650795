// Products by kernels that V8 joins to 256 bits beside others (wasm/assembly/machine/joining.ts). Tests run it as a process of its
// own too, with the flag that joins.

import { assertEquals } from "@std/assert";
import { getFormat, ROW_FAMILIES } from "../../quant/mod.ts";
import { formatLayout, hasIntegerKernel, laidOutFormats } from "../../wasm/format_layouts.ts";
import { createMachine, type Machine } from "../../wasm/machine.ts";
import { factorBits } from "../../wasm/weight_layout.ts";
import { checkIntegers } from "./integer_products.ts";
import { randomInt7 } from "./int7_products.ts";
import { checkFloat, checkQ8 } from "./products.ts";
import { formatOfRows } from "./weights.ts";

const PAIR = 1, DOT = 2;
/** The name of weights rounded to 7 bit among formats. */
const INT7 = "INT7";
/** That of codes of 8 bits on both sides. */
const INTEGERS = "integers";

/** Compares products of one 8-bit row, of a few and of many, with every format, of floats, and with 7 bit, bit by bit. */
export async function compareProducts(
  formats = [...laidOutFormats(), ...ROW_FAMILIES, INT7, INTEGERS],
) {
  using joined = await createMachine({ threads: 2, variant: "relaxed", joins: true });
  using other = await createMachine({ threads: 2, variant: "relaxed", joins: false });
  if (formats.includes("F32")) await compareFloats(joined, other);
  if (formats.includes(INT7)) await compareInt7(joined, other);
  if (formats.includes(INTEGERS)) compareIntegers(joined);
  for (const format of ["F16", "BF16"].filter((format) => formats.includes(format))) {
    await compareOneRow(joined, other, format, 67);
  }
  for (const family of formats.filter(isPacked)) {
    const block = ROW_FAMILIES.includes(family) ? 288 : Math.max(32, getFormat(family).blockSize);
    const columns = 3 * block;
    const format = formatOfRows(family, columns);
    await compareOneRow(joined, other, format, columns);
    for (const style of stylesOf(family, joined)) {
      // Eight rows, four, and one or two; ragged panels.
      for (
        const [rows, outputs] of [[25, 37], [42, 16], [27, 5], [1, 37], [2, 21], [7, 8]] as const
      ) {
        const c = { format, rows, outputs, columns, bias: rows === 42, style };
        const [a, b] = [await checkQ8(joined, c), await checkQ8(other, c)];
        assertEquals(new Uint8Array(a.buffer), new Uint8Array(b.buffer), `${format}, ${rows} rows`);
      }
    }
  }
}

/** Products of one row of floats: tiles by twos, one by itself, and a ragged one. */
async function compareOneRow(
  joined: Machine,
  other: Machine,
  format: string,
  columns: number,
): Promise<void> {
  for (const outputs of [16, 61]) {
    const c = { format, rows: 1, outputs, columns, bias: outputs > 16 };
    const [a, b] = [await checkFloat(joined, c), await checkFloat(other, c)];
    assertEquals(new Uint8Array(a.buffer), new Uint8Array(b.buffer), JSON.stringify(c));
  }
}

/**
 * Products of floats: blocks of three, four and five rows of floats, pairs of panels and one, and tiles of any height with
 * weights that are decoded; columns that are no four.
 */
async function compareFloats(joined: Machine, other: Machine): Promise<void> {
  for (const format of ["F32", "F16"]) {
    for (const rows of [4, 5, 6, 7, 9, 10, 11, 13, 20]) {
      for (const [outputs, columns] of [[16, 64], [37, 259], [24, 3]] as const) {
        const c = { format, rows, outputs, columns, bias: outputs > 16 };
        const [a, b] = [await checkFloat(joined, c), await checkFloat(other, c)];
        assertEquals(new Uint8Array(a.buffer), new Uint8Array(b.buffer), JSON.stringify(c));
      }
    }
  }
}

/**
 * Rows of low sums and weights of 7 bit: eights, a four, and one to three rows; half a group at the end, a tile without
 * eight outputs, several blocks.
 */
async function compareInt7(joined: Machine, other: Machine): Promise<void> {
  for (
    const [rows, outputs, columns] of [[25, 37, 160], [46, 16, 64], [31, 5, 96], [
      301,
      64,
      96,
    ]] as const
  ) {
    const c = { rows, outputs, columns, bias: rows !== 46, style: PAIR };
    const [a, b] = [await randomInt7(joined, c), await randomInt7(other, c)];
    assertEquals(new Uint8Array(a.buffer), new Uint8Array(b.buffer), JSON.stringify(c));
  }
}

/** Eights of rows and fewer, an odd number of pairs and of codes, columns that are no eight, several blocks. */
function compareIntegers(joined: Machine): void {
  for (
    const [rows, inner, columns] of [[8, 16, 8], [13, 11, 9], [55, 24, 40], [7, 3, 1]] as const
  ) {
    checkIntegers(joined, { rows, inner, columns });
  }
}

/** Whether a format's weights are packed, and multiplied by rows of 8 bit. */
function isPacked(format: string): boolean {
  return format !== INT7 && format !== INTEGERS && hasIntegerKernel(format);
}

/** Ways to multiply that this processor has; the dot of 8 bits must be exact. */
function stylesOf(family: string, { capabilities }: Machine): number[] {
  const { dotI8I8Exact, dotI8U8Exact } = capabilities;
  const wide = factorBits(formatLayout(family)!.layout) === 8;
  return wide && !dotI8I8Exact && !dotI8U8Exact ? [PAIR] : [PAIR, DOT];
}

if (import.meta.main) {
  await compareProducts(Deno.args.length ? Deno.args : undefined);
  using machine = await createMachine({ threads: 1, variant: "relaxed" });
  await checkQ8(machine, { format: "Q8_0", rows: 1, outputs: 8, columns: 32 });
  console.log(`\njoins: ${machine.joins}`);
}
