import { assert, assertEquals } from "@std/assert";
import { getFormat } from "../quant/mod.ts";
import { lowRowBytes, q8RowBytes } from "../quant/q8_activation.ts";
import { quantizeLowRow, quantizeQ8Row } from "../tests/support/q8_row.ts";
import {
  checkFloat,
  checkQ16,
  checkQ8,
  matmulFloat,
  matmulQ8,
  type ProductCase,
} from "../tests/support/products.ts";
import { pack, place, run } from "../tests/support/wasm.ts";
import { COMMON_FORMATS, randomValues, randomWeight } from "../tests/support/weights.ts";
import { hasIntegerKernel } from "./format_layouts.ts";
import { createMachine } from "./machine.ts";
import { shareTiles } from "./weight_chunks.ts";

const INTEGER = COMMON_FORMATS.filter(hasIntegerKernel);
const VARIANTS = ["baseline", "relaxed"] as const;
const PAIR = 1;
const DOT = 2;

function blockOf(format: string): number {
  return getFormat(format).blockSize;
}

/** Each format with every height 1..9 and width 1..17, in a zigzag, and some larger ones. */
function cases(format: string): ProductCase[] {
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
          for (const rows of [1, 5, 12]) {
            const columns = Math.max(96, blockOf(format));
            await checkQ8(machine, { format, rows, outputs: 24, columns, style, extreme: true });
          }
        }
      });
    }
    for (const format of COMMON_FORMATS) {
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
    for (const [threads, joins] of [[1, false], [2, false], [2, true]] as const) {
      using machine = await createMachine({ threads, variant: "relaxed", joins });
      const styles = format === "Q8_0" ? [PAIR] : [PAIR, DOT];
      for (const style of styles) {
        const weight = randomWeight(format, 40, columns, 7);
        const packed = await pack(machine, format, 40, columns, weight.bytes);
        const x = randomValues(columns, 8);
        const rowBytes = q8RowBytes(columns);
        const batch = new Uint8Array(26 * rowBytes);
        for (let m = 0; m < 26; m++) {
          quantizeQ8Row(x, batch.subarray(m * rowBytes, (m + 1) * rowBytes));
        }
        const at = place(machine, batch);
        // One row, a few, and as many as are unpacked for: fours and eights that are whole and that are not.
        for (const rows of [1, 2, 3, 4, 7, 8, 11, 14, 23, 26]) {
          const c = { format, rows, outputs: 40, columns, style };
          const got = matmulQ8(machine, c, packed, at, undefined);
          for (let m = 0; m < rows; m++) results.push(got.slice(m * 40, m * 40 + 40));
        }
      }
    }
    for (const result of results) assertEquals(result, results[0], format);
  }
});

Deno.test("rows that do not fit a thread's scratch memory at once are taken in blocks", async () => {
  for (const joins of [false, true]) {
    using machine = await createMachine({ threads: 2, variant: "relaxed", joins });
    for (const format of ["Q8_0", "Q4_K"]) {
      await checkQ8(machine, { format, rows: 30, outputs: 19, columns: 20480, style: PAIR });
    }
  }
});

Deno.test("a float row gives the same bits alone and in a batch", async () => {
  for (const variant of VARIANTS) {
    using machine = await createMachine({ threads: 2, variant });
    for (const format of COMMON_FORMATS) {
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
  for (const [variant, low] of VARIANTS.flatMap((one) => [[one, 0], [one, 1]] as const)) {
    using machine = await createMachine({ threads: 2, variant });
    for (const [rows, columns] of [[1, 32], [3, 96], [17, 576], [2, 1504]] as const) {
      const x = randomValues(rows * columns, rows);
      x.set([0.5, 1.5, 2.5, -0.5, 127, -3e38, 1e-45], 0); // ties, then a range that flushes the rest
      if (columns > 64) x.fill(0, 32, 64);
      if (columns > 96) x.fill(3e-45, 64, 96);
      if (columns > 128) x.fill(3e38, 96, 128);
      if (columns > 160) x.fill(-2e-37, 128, 160); // a scale that is subnormal
      const rowBytes = (low ? lowRowBytes : q8RowBytes)(columns);
      const y = machine.allocate(rows * rowBytes);
      machine.u8(y, rows * rowBytes).fill(0);
      run(machine, "quantize_q8", {
        ...{ x: place(machine, x, 4), y, rows, columns, group: 2, row_bytes: rowBytes, low },
        ...{ scratch: machine.allocate(2 * 4096), scratch_bytes: 4096 },
      });
      const expected = new Uint8Array(rows * rowBytes);
      for (let m = 0; m < rows; m++) {
        const row = expected.subarray(m * rowBytes, (m + 1) * rowBytes);
        const quantize = low ? quantizeLowRow : quantizeQ8Row;
        quantize(x.subarray(m * columns, (m + 1) * columns), row);
      }
      assertEquals(machine.u8(y, expected.length).slice(), expected);
    }
  }
});

Deno.test("activations that are not numbers give outputs that are none", async () => {
  const both = VARIANTS.flatMap((variant) => INTEGER.map((format) => ({ variant, format })));
  for (const { variant, format } of both) {
    using machine = await createMachine({ threads: 1, variant });
    for (const bad of [NaN, Infinity, -Infinity]) {
      for (const rows of [1, 3]) {
        const columns = Math.max(64, blockOf(format));
        const x = randomValues(rows * columns, 5);
        x[columns - 1] = bad; // in the last group of the first row
        const weight = randomWeight(format, 8, columns, 6);
        const packed = await pack(machine, format, 8, columns, weight.bytes);
        const rowBytes = q8RowBytes(columns);
        const y = machine.allocate(rows * rowBytes);
        const size = { rows, columns, group: 2, row_bytes: rowBytes };
        run(machine, "quantize_q8", {
          x: place(machine, x),
          y,
          ...size,
          low: 0,
          scratch: machine.allocate(4096),
          scratch_bytes: 4096,
        });
        const c = { format, rows, outputs: 8, columns };
        const got = matmulQ8(machine, c, packed, y, undefined);
        assert(got.subarray(0, 8).every(Number.isNaN), `${format}, ${bad}, ${rows} rows: ${got}`);
        assert(got.subarray(8).every(Number.isFinite), "other rows are left alone");
      }
    }
  }
});

Deno.test("a row of 16 bit gives the same bits alone, by two tiles in turns, and among others", async () => {
  for (const [threads, joins] of [[1, false], [2, false], [1, true], [2, true]] as const) {
    using machine = await createMachine({ threads, joins });
    for (const format of ["Q8_0", "LF8"]) {
      // One tile, pairs of tiles, one that is left over, a ragged one; turns that end within 256 columns.
      for (const outputs of [8, 32, 45, 397]) {
        for (const columns of format === "LF8" ? [768] : [32, 288, 512]) {
          const c = { format, outputs, columns, bias: outputs === 45 };
          const alone = await checkQ16(machine, { ...c, rows: 1 });
          const among = await checkQ16(machine, { ...c, rows: 5 });
          assertEquals(among.slice(0, outputs), alone, JSON.stringify(c));
        }
      }
    }
  }
});

Deno.test("tiles are shared out whole: a large chunk a thread, the rest in small ones", () => {
  for (const tiles of [0, 1, 2, 7, 24, 72, 6144]) {
    for (const threads of [1, 2, 3, 16]) {
      const { large, chunk } = shareTiles(tiles, { tileBytes: 2880, threads });
      const rest = tiles - large * threads;
      assert(
        rest >= 0 && chunk >= 1 && chunk * 2880 <= 32768,
        `${tiles} tiles, ${threads} threads`,
      );
      assert(large <= tiles / threads);
    }
  }
  assertEquals(shareTiles(72, { tileBytes: 2880, threads: 2 }), {
    large: 27,
    threads: 2,
    chunk: 9,
  });
  assertEquals(shareTiles(72, { tileBytes: 1 << 20, threads: 2 }).chunk, 2);
});

Deno.test("sums of 16 bits hold the lowest codes times the largest activations, of either sign", async () => {
  const columns = 256, outputs = 16, most = 12, rowBytes = q8RowBytes(columns);
  using machine = await createMachine({ threads: 1 });
  const x = new Uint8Array(most * rowBytes);
  for (let row = 0; row < most; row++) {
    quantizeQ8Row(new Float32Array(columns).fill(row & 1 ? -1 : 1), x.subarray(row * rowBytes));
  }
  // Bytes of codes, which stand before the scales in a block.
  for (const [format, codeBytes] of [["Q6_K", 192], ["Q3_K", 96]] as const) {
    const { bytes } = randomWeight(format, outputs, columns, 3),
      weights = new Float32Array(outputs * columns);
    for (let at = 0; at < bytes.length; at += bytes.length / outputs) {
      bytes.fill(0, at, at + codeBytes);
    }
    getFormat(format).decode(bytes, weights);
    const packed = await pack(machine, format, outputs, columns, bytes);
    for (const rows of [1, 2, 4, most]) {
      const c = { format, rows, outputs, columns };
      for (
        const [i, value] of matmulQ8(machine, c, packed, place(machine, x), undefined).entries()
      ) {
        const n = i % outputs, row = weights.subarray(n * columns, (n + 1) * columns);
        const sign = Math.floor(i / outputs) & 1 ? -1 : 1,
          size = row.reduce((sum, w) => sum + Math.abs(w), 0);
        const error = Math.abs(value - sign * row.reduce((sum, w) => sum + w, 0));
        assert(error <= 1e-6 * size, `${format}, ${rows} rows: off by ${error} of ${size}`);
      }
    }
  }
});
