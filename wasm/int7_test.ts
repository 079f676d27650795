import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { getFormat } from "../quant/mod.ts";
import { INT7_GROUP, roundInt7Row, turnColumns, W_FACTOR, X_FACTOR } from "../quant/int7_groups.ts";
import { lowRowBytes } from "../quant/q8_activation.ts";
import { type Int7Case, lowRows, multiplyInt7 } from "../tests/support/int7_products.ts";
import { pack, place, run } from "../tests/support/wasm.ts";
import { randomValues, randomWeight } from "../tests/support/weights.ts";
import {
  INT7_CELL_BYTES,
  INT7_SCALE_BYTES,
  int7TileBytes,
  ROUNDED_FORMATS,
} from "./int7_layout.ts";
import { createMachine } from "./machine.ts";
import { floatBlock } from "./row_blocks.ts";
import { shareTiles } from "./weight_chunks.ts";

const VARIANTS = ["baseline", "relaxed"] as const;
const PAIR = 1, DOT = 2;

/** Every height of the register tiles, ragged edges, one and several blocks of rows. */
const CASES: readonly Int7Case[] = [
  { rows: 1, outputs: 40, columns: 96 },
  { rows: 2, outputs: 3, columns: 32, bias: true },
  { rows: 3, outputs: 8, columns: 64, bias: true },
  { rows: 8, outputs: 17, columns: 32 },
  { rows: 9, outputs: 16, columns: 32 },
  { rows: 70, outputs: 5, columns: 64, bias: true },
  { rows: 135, outputs: 60, columns: 128, bias: true },
];

function rounded(values: Float32Array, columns: number): Float32Array {
  const copy = values.slice();
  for (let at = 0; at < copy.length; at += columns) roundInt7Row(copy.subarray(at, at + columns));
  return copy;
}

for (const variant of VARIANTS) {
  for (const format of ROUNDED_FORMATS) {
    Deno.test(`matmul_int7 of ${format} equals float64 on rounded weights (${variant})`, async () => {
      using machine = await createMachine({ threads: 2, variant });
      for (const style of variant === "relaxed" ? [PAIR, DOT] : [0]) {
        for (const c of CASES) {
          const { rows, outputs, columns } = c;
          const weight = randomWeight(format, outputs, columns, rows + outputs);
          const w = rounded(weight.values, columns);
          const packed = await pack(machine, format, outputs, columns, weight.bytes, true);
          const { bytes, seen } = lowRows(randomValues(rows * columns, rows), rows, columns);
          const bias = c.bias ? randomValues(outputs, 3) : undefined;
          const widest = Array.from(
            { length: outputs },
            (_, n) => largest(w, n * columns, columns),
          );
          const got = multiplyInt7(machine, { ...c, style }, packed, place(machine, bytes), bias);
          got.forEach((value, i) => {
            const m = Math.floor(i / outputs), n = i % outputs;
            let sum = bias?.[n] ?? 0, size = Math.abs(sum);
            for (let k = 0; k < columns; k++) {
              sum += seen[m * columns + k]! * w[n * columns + k]!;
              // The minimum is multiplied apart from the codes.
              size += Math.abs(seen[m * columns + k]!) * widest[n]!;
            }
            assert(
              Math.abs(value - sum) <= 1e-5 * size,
              `${JSON.stringify(c)} ${i}: ${value}, ${sum}`,
            );
          });
        }
      }
    });
  }

  Deno.test(`packed codes and scales are those of the definition (${variant})`, async () => {
    using machine = await createMachine({ threads: 1, variant });
    for (const format of ROUNDED_FORMATS) {
      const rows = 11, columns = 96;
      const weight = randomWeight(format, rows, columns, 5);
      const expected = rounded(weight.values, columns);
      const packed = await pack(machine, format, rows, columns, weight.bytes, true);
      assertEquals(packed.tileBytes, int7TileBytes(columns));
      for (let row = 0; row < rows; row++) {
        for (let column = 0; column < columns; column++) {
          const cell = packed.address + (row >> 3) * packed.tileBytes +
            Math.floor(column / INT7_GROUP) * INT7_CELL_BYTES;
          const r = row % 8, c = column % INT7_GROUP;
          const floats = machine.f32(cell, 16);
          const at = 32 * (c >> 2) + 16 * (r >> 2) + 4 * (r & 3) + (c & 3);
          const code = machine.u8(cell + INT7_SCALE_BYTES, 512)[at]!;
          const value = Math.fround(code * floats[r]! + floats[8 + r]!);
          assertEquals(value, expected[row * columns + column], `${format} ${row} ${column}`);
        }
      }
    }
  });
}

function largest(values: Float32Array, start: number, count: number): number {
  return values.subarray(start, start + count).reduce((a, b) => Math.max(a, Math.abs(b)), 0);
}

Deno.test("a row gives the same bits alone, in a batch, on any threads and by any way to multiply", async () => {
  const columns = 160, outputs = 50;
  const weight = randomWeight("F32", outputs, columns, 7);
  const row = randomValues(columns, 8);
  const results: Float32Array[] = [];
  for (const threads of [1, 2]) {
    using machine = await createMachine({ threads, variant: "relaxed" });
    const packed = await pack(machine, "F32", outputs, columns, weight.bytes, true);
    for (const style of [PAIR, DOT]) {
      for (const rows of [1, 7, 131]) {
        const x = new Float32Array(rows * columns);
        for (let m = 0; m < rows; m++) x.set(row, m * columns);
        const at = place(machine, lowRows(x, rows, columns).bytes);
        const got = multiplyInt7(machine, { rows, outputs, columns, style }, packed, at);
        for (let m = 0; m < rows; m += 13) results.push(got.slice(m * outputs, (m + 1) * outputs));
      }
    }
  }
  for (const result of results) assertEquals(result, results[0]);
});

Deno.test("float rows give the same bits in blocks as alone", async () => {
  const columns = 515, outputs = 21;
  const weight = randomWeight("F32", outputs, columns, 7);
  const rows = 200; // more than a block
  const x = randomValues(rows * columns, 9);
  using machine = await createMachine({ threads: 2 });
  const packed = await pack(machine, "F32", outputs, columns, weight.bytes);
  const { block: most, scratch_bytes } = floatBlock(columns, packed.layout);
  const product = (count: number, at: number, block: number) => {
    const y = machine.allocate(4 * count * outputs);
    run(machine, "matmul", {
      ...{ x: at, w: packed.address, y, bias: 0, rows: count, columns, outputs, block },
      ...{ layout: packed.layout, tile_bytes: packed.tileBytes },
      ...shareTiles(Math.ceil(outputs / 8), {
        tileBytes: packed.tileBytes,
        threads: machine.threads,
      }),
      ...{ scratch: machine.allocate(2 * scratch_bytes), scratch_bytes },
    });
    return machine.f32(y, count * outputs).slice();
  };
  const at = place(machine, x);
  const blocks = product(rows, at, most);
  assert(most < rows);
  assertEquals(product(rows, at, 12), blocks);
  // A few rows, which are not interleaved, and some that are, in blocks of four and five.
  for (const count of [1, 3, 4, 9]) {
    const alone = product(count, at + 4 * 130 * columns, most);
    assertEquals(alone, blocks.slice(130 * outputs, (130 + count) * outputs));
  }
});

Deno.test("groups of equal values, of zeros and of one huge value are rounded as the definition says", () => {
  const row = new Float32Array(96);
  row.fill(0.3, 0, 32);
  row.set([3e35, -1], 64);
  roundInt7Row(row);
  const before = row.map((value) => value / W_FACTOR);
  // Of 32 equal values their sum is left, and zeros; of one that is alone 32 of it.
  assert(Math.abs(before[0]! - 32 * 0.3) < 1e-5);
  assertEquals([...new Set(before.subarray(1, 64))], [0]);
  assert(before.subarray(64).every((value) => Math.abs(value / 3e35 - 1) < 1e-6));
  assertThrows(() => roundInt7Row(new Float32Array(32).fill(3e38)), RangeError, "overflows");
  assertThrows(() => roundInt7Row(new Float32Array(32).fill(NaN)), RangeError, "Cannot round NaN");
});

Deno.test("numbers that are not finite are refused while rounding, whatever the format", async () => {
  using machine = await createMachine({ threads: 1 });
  for (const format of ROUNDED_FORMATS) {
    const record = getFormat(format);
    for (const bad of [NaN, Infinity, -Infinity]) {
      const values = new Float32Array(9 * 64).fill(1);
      values[8 * 64 + 63] = bad;
      const bytes = new Uint8Array(values.length * record.blockBytes);
      record.encode!(values, bytes);
      const used = machine.usedBytes;
      await assertRejects(
        () => pack(machine, format, 9, 64, bytes, true),
        RangeError,
        `1 of its ${format} rows from 0 on hold numbers that are not finite`,
      );
      assertEquals(machine.usedBytes, used, "gives its memory back");
    }
  }
});

Deno.test("weights of 3e35 are rounded; those that overflow when they are turned are refused for what they are", async () => {
  using machine = await createMachine({ threads: 1 });
  const packed = (value: number) => {
    const values = Float32Array.from({ length: 64 }, (_, i) => i % 3 ? value : -value);
    return pack(machine, "F32", 1, 64, new Uint8Array(values.buffer), true);
  };
  const { address } = await packed(3e35);
  const scales = machine.f32(address, 16);
  assert(scales.every(Number.isFinite) && scales[0]! > 0);
  await assertRejects(() => packed(3e38), RangeError, "too large to be rounded to 7 bit");
});

Deno.test("sums of four steps that just fit in 16 bits are not cut", async () => {
  const columns = 128, rows = 15, outputs = 33, groups = columns / INT7_GROUP;
  // Codes are written where packing puts them: all 127, with scales 1 and minima 0.
  const w = new Float32Array(outputs * columns);
  const x = new Float32Array(rows * columns);
  // 258 of columns 0, 1, 4, 5, 8, 9, 12 and 13 and of the others, of one sign, and half of them of the other.
  for (let i = 0; i < x.length; i++) {
    const m = Math.floor(i / columns), sign = m === 0 ? 1 : m === 1 ? -1 : (i >> m) & 1 ? -1 : 1;
    x[i] = sign * (i % 16 < 2 || i % 16 === 2 || i % 16 === 3 ? 33 : 32);
  }
  const rowBytes = lowRowBytes(columns), bytes = new Uint8Array(rows * rowBytes);
  for (let m = 0; m < rows; m++) {
    const row = x.subarray(m * columns, (m + 1) * columns), at = m * rowBytes;
    new Int8Array(bytes.buffer, at, columns).set(row);
    // Scales 1; sums meet minima of 0.
    new Float32Array(bytes.buffer, at + columns, groups).fill(1);
  }
  for (
    const [variant, joins] of [["baseline", false], ["relaxed", false], ["relaxed", true]] as const
  ) {
    using machine = await createMachine({ threads: 1, variant, joins });
    const packed = await pack(machine, "F32", outputs, columns, new Uint8Array(w.buffer), true);
    for (let cell = packed.address; cell < packed.address + packed.bytes; cell += INT7_CELL_BYTES) {
      machine.f32(cell, 8).fill(1);
      machine.u8(cell + INT7_SCALE_BYTES, INT7_CELL_BYTES - INT7_SCALE_BYTES).fill(127);
    }
    for (const style of variant === "relaxed" ? [PAIR, DOT] : [0]) {
      const got = multiplyInt7(
        machine,
        { rows, outputs, columns, style },
        packed,
        place(machine, bytes),
      );
      got.forEach((value, i) => {
        const m = Math.floor(i / outputs), row = x.subarray(m * columns, (m + 1) * columns);
        const sum = row.reduce((sum, value) => sum + 127 * value, 0);
        assertEquals(value, sum, `${variant} ${joins} ${style} ${m} ${i}`);
      });
    }
  }
});

Deno.test("turned rows have the products that they had", () => {
  const columns = 96, a = randomValues(columns, 1), b = randomValues(columns, 2);
  const dot = () => a.reduce((sum, value, i) => sum + value * b[i]!, 0);
  const before = dot();
  turnColumns(a, X_FACTOR);
  turnColumns(b, W_FACTOR);
  assert(Math.abs(dot() - before) < 1e-5);
});
