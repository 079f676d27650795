import { assert, assertEquals } from "@std/assert";
import { formatBytes, formats, getFormat, ROW_FAMILIES } from "../quant/mod.ts";
import { q8RowBytes } from "../quant/q8_activation.ts";
import { quantizeQ8Row } from "../tests/support/q8_row.ts";
import { checkFloat, checkQ8, matmulQ8, output } from "../tests/support/products.ts";
import { pack, place, run } from "../tests/support/wasm.ts";
import {
  COMMON_FORMATS,
  formatOfRows,
  randomValues,
  randomWeight,
} from "../tests/support/weights.ts";
import { formatLayout, hasIntegerKernel, laidOutFormats } from "./format_layouts.ts";
import { createMachine, type Machine } from "./machine.ts";
import { floatScratchBytes } from "./matmul_scratch.ts";
import { packedBytes } from "./place_weight.ts";
import { factorBits } from "./weight_layout.ts";

/** The common formats are in matmul_test.ts. */
const FAMILIES = [
  ...laidOutFormats().filter((name) => !COMMON_FORMATS.includes(name)),
  ...ROW_FAMILIES,
];
const INTEGER = FAMILIES.filter((family) => hasIntegerKernel(family));
const VARIANTS = ["baseline", "relaxed"] as const;
const PAIR = 1;
const DOT = 2;
const ROWS = [1, 3, 8, 33];

/** Some blocks of a format, at least a group of 8-bit activations. */
function columnsOf(family: string, blocks: number): number {
  if (ROW_FAMILIES.includes(family)) return blocks * 288;
  return blocks * Math.max(32, getFormat(family).blockSize);
}

/** Ways to multiply that this processor has; the dot of 8 bits must be exact. */
function stylesOf(family: string, machine: Machine): number[] {
  const { simd, dotI8I8Exact, dotI8U8Exact } = machine.capabilities;
  if (simd === "baseline") return [0];
  const wide = factorBits(formatLayout(family)!.layout) === 8;
  return wide && !dotI8I8Exact && !dotI8U8Exact ? [PAIR] : [PAIR, DOT];
}

for (const variant of VARIANTS) {
  Deno.test(`products of 8-bit rows with every format equal the integer algebra (${variant})`, async () => {
    using machine = await createMachine({ threads: 2, variant });
    for (const family of INTEGER) {
      for (const style of stylesOf(family, machine)) {
        for (const [i, rows] of ROWS.entries()) {
          const columns = columnsOf(family, 1 + i % 2);
          const format = formatOfRows(family, columns);
          const c = { format, rows, outputs: 5 + 14 * (i % 3), columns, bias: i % 2 === 1, style };
          await checkQ8(machine, c);
          await checkQ8(machine, { ...c, outputs: 24, extreme: true });
        }
      }
    }
  });

  Deno.test(`products of float rows with every format equal float64 (${variant})`, async () => {
    using machine = await createMachine({ threads: 2, variant });
    for (const family of FAMILIES) {
      for (const [i, rows] of ROWS.entries()) {
        const columns = columnsOf(family, 1 + i % 2);
        const format = formatOfRows(family, columns);
        const c = { format, rows, outputs: 5 + 14 * (i % 3), columns, bias: i % 2 === 1 };
        await checkFloat(machine, c);
        await checkFloat(machine, { ...c, outputs: 24, extreme: true });
      }
    }
  });
}

// Codes of 8 bits are taken with an offset by one way to multiply and as they are by the other (gen/dots.ts): the same
// integers, but minima join the float sums, so such formats are the same within a way.
Deno.test("a row gives the same bits for every format alone, in a batch, on any threads, multiplied in any way", async () => {
  const machines = await Promise.all(
    [1, 2].map((threads) => createMachine({ threads, variant: "relaxed" })),
  );
  for (const family of INTEGER) {
    const columns = columnsOf(family, 2);
    const format = formatOfRows(family, columns);
    const weight = randomWeight(format, 40, columns, 7);
    const row = new Uint8Array(q8RowBytes(columns));
    quantizeQ8Row(randomValues(columns, 8), row);
    const batch = new Uint8Array(11 * row.length);
    for (let m = 0; m < 11; m++) batch.set(row, m * row.length);
    const wide = factorBits(formatLayout(family)!.layout) === 8;
    const firsts = new Map<number, Float32Array>();
    for (const machine of machines) {
      const packed = await pack(machine, format, 40, columns, weight.bytes);
      for (const style of stylesOf(family, machine)) {
        for (const rows of [1, 2, 5, 7, 11]) {
          const c = { format, rows, outputs: 40, columns, style };
          const got = matmulQ8(machine, c, packed, place(machine, batch), undefined);
          for (let m = 0; m < rows; m++) {
            const result = got.slice(m * 40, m * 40 + 40), key = wide ? style : 0;
            const first = firsts.get(key) ?? result;
            firsts.set(key, first);
            assertEquals(result, first, `${format}, style ${style}, ${rows} rows`);
          }
        }
      }
    }
  }
  for (const machine of machines) machine[Symbol.dispose]();
});

Deno.test("sums are those of products in 16 bit: what differs is less than one code, by float rounding alone", async () => {
  using plain = await createMachine({ threads: 1, variant: "baseline" });
  using relaxed = await createMachine({ threads: 1, variant: "relaxed" });
  for (const family of INTEGER) {
    const columns = ROW_FAMILIES.includes(family) ? 96 : columnsOf(family, 1);
    const format = formatOfRows(family, columns), outputs = 16, rows = 3;
    const weight = randomWeight(format, outputs, columns, 11);
    // The largest codes of activations, scale 1, in one group: little else is rounded.
    const x = randomValues(rows * columns, 12)
      .map((value, i) => i % columns >= 32 ? 0 : value < 0 ? -127 : 127);
    const bytes = q8RowBytes(columns), q8 = new Uint8Array(rows * bytes);
    for (let m = 0; m < rows; m++) {
      quantizeQ8Row(x.subarray(m * columns, (m + 1) * columns), q8.subarray(m * bytes));
    }
    const results: Float32Array[] = [];
    for (const machine of [plain, relaxed]) {
      const packed = await pack(machine, format, outputs, columns, weight.bytes);
      for (const count of [1, rows]) {
        const c = { format, rows: count, outputs, columns, style: machine === plain ? 0 : PAIR };
        results.push(matmulQ8(machine, c, packed, place(machine, q8), undefined));
      }
    }
    for (const [one, other] of [[results[0]!, results[2]!], [results[1]!, results[3]!]] as const) {
      one.forEach((value, i) => {
        const m = Math.floor(i / outputs), n = i % outputs;
        const { size } = output(x, weight.values, columns, m, n);
        // A sum that is off by one is off by 1 / (127 · 128) of a column's share, where codes have 8 bits.
        const bound = size / 32 / (127 * 256);
        assert(Math.abs(value - other[i]!) <= bound, `${format} ${m} ${n}: ${value} ${other[i]}`);
      });
    }
  }
});

Deno.test("rows of every format come out of their layout exactly, in any number of columns", async () => {
  for (const variant of VARIANTS) {
    using machine = await createMachine({ threads: 1, variant });
    for (const family of FAMILIES) {
      const block = ROW_FAMILIES.includes(family) ? 1 : getFormat(family).blockSize;
      const widths = block === 1 ? [2, 40, 256, 600] : [block, 3 * block, 10 * block];
      for (const columns of widths.filter((width) => width % block === 0)) {
        for (const extreme of [false, true]) {
          const format = formatOfRows(family, columns);
          const table = randomWeight(format, 11, columns, columns, extreme);
          const got = await embedAll(machine, format, 11, columns, table.bytes);
          assertEquals(
            got.map((v) => v + 0),
            table.values.map((v) => v + 0),
            `${format} ${columns}`,
          );
        }
      }
    }
  }
});

async function embedAll(
  machine: Machine,
  format: string,
  rows: number,
  columns: number,
  bytes: Uint8Array,
): Promise<Float32Array> {
  const packed = await pack(machine, format, rows, columns, bytes);
  assertEquals(packed.format, format);
  assertEquals(packed.bytes, packedBytes(format, { rows, columns }));
  const y = machine.allocate(4 * rows * columns);
  const tokens = place(machine, Int32Array.from({ length: rows }, (_, i) => i));
  run(machine, "embed", {
    ...{ tokens, w: packed.address, y, rows, columns, vocabulary: rows },
    ...{ layout: packed.layout, tile_bytes: packed.tileBytes, scale: 1 },
    scratch: machine.allocate(machine.threads * floatScratchBytes()),
    scratch_bytes: floatScratchBytes(),
  });
  return machine.f32(y, rows * columns).slice();
}

Deno.test("every format that weights often come in has a layout, and all but Q8_LOG integer kernels", () => {
  const numbers = ["F64", "I8", "I16", "I32", "I64", "F8_E4M3", "F8_E5M2"];
  const floats = ["F32", "F16", "BF16", "Q8_LOG"];
  for (const name of formats.keys()) {
    assertEquals(formatLayout(name) === undefined, numbers.includes(name), name);
    assertEquals(hasIntegerKernel(name), !numbers.includes(name) && !floats.includes(name), name);
  }
});

Deno.test("E0M4 is as fast as INT4, because its affine grid is read by the very same kernel", () => {
  for (const group of [32, 64, 128, 256]) {
    const int4 = formatLayout(`INT4_G${group}`)!.layout;
    for (const name of [`E0M4_G${group}`, `E0M4_G${group}_N2`]) {
      const { layout } = formatLayout(name)!;
      assertEquals([layout.kernel, layout.cellBytes], [int4.kernel, int4.cellBytes], name);
    }
  }
});

Deno.test("a large matrix takes at most 12.5 % more than in the file, in every format", () => {
  const [rows, columns] = [5632, 2048];
  for (const family of [...laidOutFormats(), ...ROW_FAMILIES]) {
    const format = formatOfRows(family, columns);
    const file = rows * formatBytes(getFormat(format), columns);
    const ratio = packedBytes(format, { rows, columns }) / file;
    assert(ratio <= 1.125, `${format}: ${ratio}`);
  }
});
