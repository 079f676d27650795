// Products of rows of low sums with weights rounded to 7 bit, for tests.

import { assertEquals } from "@std/assert";
import { lowColumns, lowRowBytes } from "../../quant/q8_activation.ts";
import type { Machine } from "../../wasm/machine.ts";
import type { Packed } from "../../wasm/place_weight.ts";
import { int7Block } from "../../wasm/row_blocks.ts";
import { shareTiles } from "../../wasm/weight_chunks.ts";
import { dequantizeLowRow, quantizeLowRow } from "./q8_row.ts";
import { pack, place, run } from "./wasm.ts";
import { randomValues, randomWeight } from "./weights.ts";

/** A product. */
export interface Int7Case {
  readonly rows: number;
  readonly outputs: number;
  readonly columns: number;
  /** Way to multiply (wasm/opcodes_matmul.ts). */
  readonly style?: number;
  readonly bias?: boolean;
}

/** Rows in 8 bit, and the numbers that they stand for. */
export function lowRows(x: Float32Array, rows: number, columns: number) {
  const rowBytes = lowRowBytes(columns);
  const bytes = new Uint8Array(rows * rowBytes);
  const seen = new Float32Array(rows * columns);
  for (let m = 0; m < rows; m++) {
    const row = bytes.subarray(m * rowBytes, (m + 1) * rowBytes);
    quantizeLowRow(x.subarray(m * columns, (m + 1) * columns), row);
    dequantizeLowRow(row, seen.subarray(m * columns, (m + 1) * columns));
  }
  return { bytes, seen };
}

/** A product, behind which nothing is written. */
export function multiplyInt7(
  machine: Machine,
  { rows, outputs, columns, style = 0 }: Int7Case,
  packed: Packed,
  x: number,
  bias?: Float32Array,
): Float32Array {
  const { block, scratch_bytes } = int7Block(columns);
  const y = machine.allocate(4 * rows * outputs + 64) + 4;
  const guarded = machine.f32(y, rows * outputs + 4).fill(-77);
  run(machine, "matmul_int7", {
    ...{
      x,
      w: packed.address,
      y,
      bias: bias ? place(machine, bias, 4) : 0,
      rows,
      columns: lowColumns(columns),
      outputs,
    },
    ...{ row_bytes: lowRowBytes(columns), tile_bytes: packed.tileBytes, block },
    ...shareTiles(Math.ceil(outputs / 8), {
      tileBytes: packed.tileBytes,
      threads: machine.threads,
    }),
    ...{ scratch: machine.allocate(machine.threads * scratch_bytes), scratch_bytes },
    style,
  });
  assertEquals([...guarded.subarray(rows * outputs)], [-77, -77, -77, -77], "wrote behind the end");
  return guarded.slice(0, rows * outputs);
}

/** A product of random numbers. */
export async function randomInt7(machine: Machine, c: Int7Case): Promise<Float32Array> {
  const { rows, outputs, columns } = c;
  const { bytes } = randomWeight("F32", outputs, columns, rows + outputs);
  const packed = await pack(machine, "F32", outputs, columns, bytes, true);
  const x = place(machine, lowRows(randomValues(rows * columns, rows), rows, columns).bytes);
  return multiplyInt7(machine, c, packed, x, c.bias ? randomValues(outputs, 3) : undefined);
}
