import { assert, assertEquals } from "@std/assert";
import { getFormat } from "../quant/mod.ts";
import { dequantizeQ8Row, q8RowBytes, quantizeQ8Row } from "../quant/q8_activation.ts";
import { pack, place, run } from "../tests/support/wasm.ts";
import { randomValues, randomWeight } from "../tests/support/weights.ts";
import { createMachine, type Machine } from "./machine.ts";
import { floatBlock } from "./row_blocks.ts";
import { floatScratchBytes, q8ScratchBytes } from "./matmul_scratch.ts";
import type { Packed } from "./pack.ts";
import { shareTiles } from "./weight_chunks.ts";
import { WEIGHT_LAYOUTS } from "./weight_layout.ts";

const FORMATS = WEIGHT_LAYOUTS.map(({ format }) => format);
const INTEGER = WEIGHT_LAYOUTS.filter(({ kind }) => kind === "codes").map(({ format }) => format);
const VARIANTS = ["baseline", "relaxed"] as const;
const PAIR = 1;
const DOT = 2;

interface Case {
  readonly format: string;
  readonly rows: number;
  readonly outputs: number;
  readonly columns: number;
  readonly style?: number;
  /** Pretends that the work is shared by so many threads. */
  readonly threads?: number;
  readonly bias?: boolean;
  readonly extreme?: boolean;
}

/** Sum and sum of magnitudes of one output in float64. */
function output(x: Float32Array, w: Float32Array, k: number, m: number, n: number) {
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
  c: Case,
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
async function checkQ8(machine: Machine, c: Case): Promise<Float32Array> {
  const { format, rows, outputs, columns } = c;
  const seed = rows * 1000003 + outputs * 1009 + columns;
  const weight = randomWeight(format, outputs, columns, seed, c.extreme);
  const packed = await pack(machine, format, outputs, columns, weight.bytes);
  const rowBytes = q8RowBytes(columns);
  const x = c.extreme ? extremeValues(rows * columns) : randomValues(rows * columns, seed + 1);
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

function matmulQ8(
  machine: Machine,
  c: Case,
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
    ...shareTiles(Math.ceil(c.outputs / 8), packed.tileBytes, c.threads ?? machine.threads),
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
async function checkFloat(machine: Machine, c: Case): Promise<void> {
  const { format, rows, outputs, columns } = c;
  const seed = rows * 1000003 + outputs * 1009 + columns;
  const weight = randomWeight(format, outputs, columns, seed, c.extreme);
  const packed = await pack(machine, format, outputs, columns, weight.bytes);
  const x = randomValues(rows * columns, seed + 1);
  const bias = c.bias ? randomValues(outputs, seed + 2) : undefined;
  judge(c, matmulFloat(machine, c, packed, x, bias), x, weight.values, bias, 1e-5);
}

function matmulFloat(
  machine: Machine,
  { rows, outputs, columns }: Case,
  packed: Packed,
  x: Float32Array,
  bias: Float32Array | undefined,
): Float32Array {
  const y = machine.allocate(4 * rows * outputs + 64) + 4;
  const guard = machine.f32(y, rows * outputs + 4).fill(-77);
  run(machine, "matmul", {
    ...{ x: place(machine, x, 4), w: packed.address, y, bias: bias ? place(machine, bias, 4) : 0 },
    ...{ rows, columns, outputs, layout: packed.layout, tile_bytes: packed.tileBytes },
    ...shareTiles(Math.ceil(outputs / 8), packed.tileBytes, machine.threads),
    scratch: machine.allocate(machine.threads * floatScratchBytes()),
    scratch_bytes: floatScratchBytes(),
    block: floatBlock(columns),
  });
  assertEquals([...guard.subarray(rows * outputs)], [-77, -77, -77, -77], "wrote behind the end");
  return guard.slice(0, rows * outputs);
}

function blockOf(format: string): number {
  return getFormat(format).blockSize;
}

/** Each format with every height 1..9 and width 1..17, in a zigzag, and some larger ones. */
function cases(format: string): Case[] {
  const block = blockOf(format);
  const small = Array.from({ length: 17 }, (_, i) => ({
    format,
    rows: 1 + (i * 5) % 9,
    outputs: i + 1,
    columns: block * (1 + i % 3) * (block < 32 ? 11 : 1),
    bias: i % 2 === 1,
  }));
  const columns = block === 256 ? 768 : 576 + (block < 32 ? 3 : 0);
  return [
    ...small,
    ...[1, 2, 17, 126].map((rows) => ({ format, rows, outputs: 37, columns, bias: rows === 17 })),
    { format, rows: 130, outputs: 37, columns, bias: true, threads: 64 },
  ];
}

for (const variant of VARIANTS) {
  for (const threads of [1, 2]) {
    for (const format of INTEGER) {
      Deno.test(`matmul_q8 of ${format} equals the integer algebra (${variant}, ${threads} threads)`, async () => {
        using machine = await createMachine({ threads, variant });
        const { dotI8I8Exact, dotI8U8Exact } = machine.capabilities;
        const eightBitDot = dotI8I8Exact || dotI8U8Exact;
        const styles = variant === "baseline"
          ? [0]
          : format === "Q8_0" && !eightBitDot
          ? [0, PAIR]
          : [0, PAIR, DOT];
        for (const style of styles) {
          for (const c of cases(format)) await checkQ8(machine, { ...c, style });
          for (const rows of [1, 5]) {
            const columns = Math.max(96, blockOf(format));
            await checkQ8(machine, { format, rows, outputs: 24, columns, style, extreme: true });
          }
        }
      });
    }
    for (const format of FORMATS) {
      Deno.test(`matmul of ${format} equals float64 (${variant}, ${threads} threads)`, async () => {
        using machine = await createMachine({ threads, variant });
        for (const c of cases(format)) await checkFloat(machine, c);
        const columns = 2 * Math.max(96, blockOf(format));
        await checkFloat(machine, { format, rows: 3, outputs: 24, columns, extreme: true });
      });
    }
  }
}

Deno.test("a row gives the same bits alone, in a batch, on any threads and by any way to multiply", async () => {
  for (const format of INTEGER) {
    const columns = 2 * Math.max(96, blockOf(format));
    const results: Float32Array[] = [];
    for (const threads of [1, 2]) {
      using machine = await createMachine({ threads, variant: "relaxed" });
      const styles = format === "Q8_0" ? [PAIR] : [PAIR, DOT];
      for (const style of styles) {
        const weight = randomWeight(format, 40, columns, 7);
        const packed = await pack(machine, format, 40, columns, weight.bytes);
        const x = randomValues(columns, 8);
        const rowBytes = q8RowBytes(columns);
        const batch = new Uint8Array(7 * rowBytes);
        for (let m = 0; m < 7; m++) {
          quantizeQ8Row(x, batch.subarray(m * rowBytes, (m + 1) * rowBytes));
        }
        const at = place(machine, batch);
        for (const rows of [1, 7]) {
          const c = { format, rows, outputs: 40, columns, style };
          const got = matmulQ8(machine, c, packed, at, undefined);
          for (let m = 0; m < rows; m++) results.push(got.slice(m * 40, m * 40 + 40));
        }
      }
    }
    for (const result of results) assertEquals(result, results[0], format);
  }
});

Deno.test("a float row gives the same bits alone and in a batch", async () => {
  for (const variant of VARIANTS) {
    using machine = await createMachine({ threads: 2, variant });
    for (const format of FORMATS) {
      const columns = blockOf(format) === 256 ? 768 : 96 + (blockOf(format) < 32 ? 3 : 0);
      const weight = randomWeight(format, 20, columns, 7);
      const packed = await pack(machine, format, 20, columns, weight.bytes);
      const x = randomValues(columns, 8);
      const batch = new Float32Array(7 * columns);
      for (let m = 0; m < 7; m++) batch.set(x, m * columns);
      const bias = randomValues(20, 9);
      const results = [1, 7].flatMap((rows) => {
        const c = { format, rows, outputs: 20, columns };
        const got = matmulFloat(machine, c, packed, batch.subarray(0, rows * columns), bias);
        return Array.from({ length: rows }, (_, m) => got.slice(20 * m, 20 * m + 20));
      });
      for (const result of results) assertEquals(result, results[0], `${format} ${variant}`);
    }
  }
});

Deno.test("quantize_q8 gives the bytes of the definition", async () => {
  for (const variant of VARIANTS) {
    using machine = await createMachine({ threads: 2, variant });
    for (const [rows, columns] of [[1, 32], [3, 96], [17, 576]] as const) {
      const x = randomValues(rows * columns, rows);
      x.set([0.5, 1.5, 2.5, -0.5, 127, -3e38, 1e-45], 0); // ties, then a range that flushes the rest
      if (columns > 64) x.fill(0, 32, 64);
      if (columns > 96) x.fill(3e-45, 64, 96);
      const rowBytes = q8RowBytes(columns);
      const y = machine.allocate(rows * rowBytes);
      machine.u8(y, rows * rowBytes).fill(0);
      run(machine, "quantize_q8", {
        x: place(machine, x, 4),
        y,
        rows,
        columns,
        row_bytes: rowBytes,
      });
      const expected = new Uint8Array(rows * rowBytes);
      for (let m = 0; m < rows; m++) {
        const row = expected.subarray(m * rowBytes, (m + 1) * rowBytes);
        quantizeQ8Row(x.subarray(m * columns, (m + 1) * columns), row);
      }
      assertEquals(machine.u8(y, expected.length).slice(), expected);
    }
  }
});

Deno.test("activations that are not numbers give outputs that are none", async () => {
  for (const variant of VARIANTS) {
    using machine = await createMachine({ threads: 1, variant });
    for (const bad of [NaN, Infinity, -Infinity]) {
      for (const rows of [1, 3]) {
        const columns = 64;
        const x = randomValues(rows * columns, 5);
        x[columns - 1] = bad; // in the last group of the first row
        const weight = randomWeight("Q4_0", 8, columns, 6);
        const packed = await pack(machine, "Q4_0", 8, columns, weight.bytes);
        const rowBytes = q8RowBytes(columns);
        const y = machine.allocate(rows * rowBytes);
        const operands = { x: place(machine, x), y, rows, columns, row_bytes: rowBytes };
        run(machine, "quantize_q8", operands);
        const c = { format: "Q4_0", rows, outputs: 8, columns };
        const got = matmulQ8(machine, c, packed, y, undefined);
        assert(got.subarray(0, 8).every(Number.isNaN), `${bad} ${rows} rows: ${got}`);
        assert(got.subarray(8).every(Number.isFinite), "other rows are left alone");
      }
    }
  }
});

Deno.test("tiles are shared out whole: a large chunk a thread, the rest in small ones", () => {
  for (const tiles of [0, 1, 2, 7, 24, 72, 6144]) {
    for (const threads of [1, 2, 3, 16]) {
      const { large, chunk } = shareTiles(tiles, 2880, threads);
      const rest = tiles - large * threads;
      assert(
        rest >= 0 && chunk >= 1 && chunk * 2880 <= 32768,
        `${tiles} tiles, ${threads} threads`,
      );
      assert(large <= tiles / threads);
    }
  }
  assertEquals(shareTiles(72, 2880, 2), { large: 27, threads: 2, chunk: 9 });
  assertEquals(shareTiles(72, 1 << 20, 2).chunk, 1);
});
