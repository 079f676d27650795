// Products of rows of 8 bit, 16 bit and floats with packed weights, for tests: run, and compared with float64.

import { assert, assertEquals } from "@std/assert";
import { q16RowBytes } from "../../quant/q16_activation.ts";
import { q8RowBytes } from "../../quant/q8_activation.ts";
import { dequantizeQ8Row, quantizeQ8Row } from "./q8_row.ts";
import type { Machine } from "../../wasm/machine.ts";
import { q16ScratchBytes, q8ScratchBytes } from "../../wasm/matmul_scratch.ts";
import type { Packed } from "../../wasm/place_weight.ts";
import { floatBlock } from "../../wasm/row_blocks.ts";
import { shareTiles } from "../../wasm/weight_chunks.ts";
import { pack, place, run } from "./wasm.ts";
import { random, randomValues, randomWeight } from "./weights.ts";

/** A product to check. */
export interface ProductCase {
  readonly format: string;
  readonly rows: number;
  readonly outputs: number;
  readonly columns: number;
  readonly style?: number;
  /** Pretends that the work is shared by so many threads. */
  readonly threads?: number;
  readonly bias?: boolean;
  readonly extreme?: boolean;
  /** Rows of 8 bit have outliers, in few columns of all rows and in columns of their own. */
  readonly spiked?: boolean;
}

/** Sum and sum of magnitudes of one output in float64. */
export function output(x: Float32Array, w: Float32Array, k: number, m: number, n: number) {
  let sum = 0;
  let size = 0;
  for (let i = 0; i < k; i++) {
    const product = x[m * k + i]! * w[n * k + i]!;
    sum += product;
    size += Math.abs(product);
  }
  return { sum, size };
}

function judge(
  c: ProductCase,
  got: Float32Array,
  x: Float32Array,
  w: Float32Array,
  bias: Float32Array | undefined,
  tolerance: number,
): void {
  for (let m = 0; m < c.rows; m++) {
    for (let n = 0; n < c.outputs; n++) {
      const { sum, size } = output(x, w, c.columns, m, n);
      const expected = sum + (bias?.[n] ?? 0);
      const error = Math.abs(got[m * c.outputs + n]! - expected);
      assert(
        error <= tolerance * (size + Math.abs(bias?.[n] ?? 0)) + 1e-30,
        `${JSON.stringify(c)} row ${m} output ${n}: ${got[m * c.outputs + n]}, not ${expected}`,
      );
    }
  }
}

/** Runs matmul_q8 and compares with the integer algebra in float64; returns the outputs. */
export async function checkQ8(machine: Machine, c: ProductCase): Promise<Float32Array> {
  const { format, rows, outputs, columns } = c;
  const seed = rows * 1000003 + outputs * 1009 + columns;
  const weight = randomWeight(format, outputs, columns, seed, c.extreme);
  const packed = await pack(machine, format, outputs, columns, weight.bytes);
  const rowBytes = q8RowBytes(columns);
  const x = c.spiked
    ? spikedValues(rows, columns, seed + 1)
    : c.extreme
    ? extremeValues(rows * columns)
    : randomValues(rows * columns, seed + 1);
  const q8 = new Uint8Array(rows * rowBytes);
  const seen = new Float32Array(rows * columns);
  for (let m = 0; m < rows; m++) {
    const row = q8.subarray(m * rowBytes, (m + 1) * rowBytes);
    quantizeQ8Row(x.subarray(m * columns, (m + 1) * columns), row);
    dequantizeQ8Row(row, seen.subarray(m * columns, (m + 1) * columns));
  }
  const bias = c.bias ? randomValues(outputs, seed + 2) : undefined;
  const got = matmulQ8(machine, c, packed, place(machine, q8), bias);
  judge(c, got, seen, weight.values, bias, 1e-5);
  return got;
}

function extremeValues(count: number): Float32Array {
  return Float32Array.from({ length: count }, (_, i) => (i >> 5) % 3 === 0 ? 1 : i & 1 ? -2 : 2);
}

/** Rows of numbers below 1 with two above 100 in each run of 512: one in a column of all rows, one in a column of its own. */
export function spikedValues(rows: number, columns: number, seed: number): Float32Array {
  const next = random(seed);
  const x = Float32Array.from({ length: rows * columns }, () => 2 * next() - 1);
  for (let m = 0; m < rows; m++) {
    for (let first = 0; first < columns; first += 512) {
      const width = Math.min(512, columns - first), row = m * columns + first;
      x[row + 37 % width] = 300 * (next() + 1);
      x[row + Math.floor(next() * width)] = -100 * (next() + 1);
    }
  }
  return x;
}

export function matmulQ8(
  machine: Machine,
  c: ProductCase,
  packed: Packed,
  x: number,
  bias: Float32Array | undefined,
): Float32Array {
  const scratchBytes = q8ScratchBytes(c.columns);
  const y = machine.allocate(4 * c.rows * c.outputs + 64) + 4;
  const guard = machine.f32(y, c.rows * c.outputs + 4).fill(-77);
  run(machine, "matmul_q8", {
    ...{ x, w: packed.address, y, bias: bias ? place(machine, bias, 4) : 0 },
    ...{ rows: c.rows, columns: c.columns, outputs: c.outputs, layout: packed.layout },
    ...{ row_bytes: q8RowBytes(c.columns), tile_bytes: packed.tileBytes },
    ...shareTiles(Math.ceil(c.outputs / 8), {
      tileBytes: packed.tileBytes,
      threads: c.threads ?? machine.threads,
    }),
    ...{ scratch: machine.allocate(machine.threads * scratchBytes), scratch_bytes: scratchBytes },
    style: c.style ?? 0,
  });
  assertEquals(
    [...guard.subarray(c.rows * c.outputs)],
    [-77, -77, -77, -77],
    "wrote behind the end",
  );
  return guard.slice(0, c.rows * c.outputs);
}

/** Runs matmul and compares with float64. */
export async function checkFloat(machine: Machine, c: ProductCase): Promise<Float32Array> {
  const { format, rows, outputs, columns } = c;
  const seed = rows * 1000003 + outputs * 1009 + columns;
  const weight = randomWeight(format, outputs, columns, seed, c.extreme);
  const packed = await pack(machine, format, outputs, columns, weight.bytes);
  const x = randomValues(rows * columns, seed + 1);
  const bias = c.bias ? randomValues(outputs, seed + 2) : undefined;
  const got = matmulFloat(machine, c, packed, x, bias);
  judge(c, got, x, weight.values, bias, 1e-5);
  return got;
}

/** Runs matmul_q16, whose rows of floats are rounded to 16 bit, and compares with float64; returns the outputs. */
export async function checkQ16(machine: Machine, c: ProductCase): Promise<Float32Array> {
  const { format, rows, outputs, columns } = c, seed = outputs * 1009 + columns;
  const weight = randomWeight(format, outputs, columns, seed);
  const packed = await pack(machine, format, outputs, columns, weight.bytes);
  const x = randomValues(rows * columns, seed + 1);
  const bias = c.bias ? randomValues(outputs, seed + 2) : undefined;
  const got = multiply(machine, c, { packed, x, bias }, {
    kernel: "matmul_q16",
    scratch_bytes: q16ScratchBytes(columns),
    own: { row_bytes: q16RowBytes(columns) },
  });
  judge(c, got, x, weight.values, bias, 1e-4);
  return got;
}

export function matmulFloat(
  machine: Machine,
  c: ProductCase,
  packed: Packed,
  x: Float32Array,
  bias: Float32Array | undefined,
): Float32Array {
  const { scratch_bytes, block } = floatBlock(c.columns, packed.layout);
  return multiply(machine, c, { packed, x, bias }, {
    ...{ kernel: "matmul", scratch_bytes, own: { block } },
  });
}

/** Runs a product of rows of floats, and looks whether it wrote behind its outputs. */
function multiply(
  machine: Machine,
  { rows, outputs, columns }: ProductCase,
  { packed, x, bias }: {
    readonly packed: Packed;
    readonly x: Float32Array;
    readonly bias: Float32Array | undefined;
  },
  { kernel, scratch_bytes, own }: {
    readonly kernel: "matmul" | "matmul_q16";
    /** Of a thread. */
    readonly scratch_bytes: number;
    /** Parameters that only this kernel has. */
    readonly own: Readonly<Record<string, number>>;
  },
): Float32Array {
  const y = machine.allocate(4 * rows * outputs + 64) + 4;
  const guard = machine.f32(y, rows * outputs + 4).fill(-77);
  run(machine, kernel, {
    ...{ x: place(machine, x, 4), w: packed.address, y, bias: bias ? place(machine, bias, 4) : 0 },
    ...{ rows, columns, outputs, layout: packed.layout, tile_bytes: packed.tileBytes },
    ...shareTiles(Math.ceil(outputs / 8), {
      tileBytes: packed.tileBytes,
      threads: machine.threads,
    }),
    scratch: machine.allocate(machine.threads * scratch_bytes),
    ...{ scratch_bytes, ...own },
  });
  assertEquals([...guard.subarray(rows * outputs)], [-77, -77, -77, -77], "wrote behind the end");
  return guard.slice(0, rows * outputs);
}
