// Outliers of 8-bit rows in products (assembly/matmul/outliers.ts): right, and the same bits alone and among others.

import { assert, assertEquals } from "@std/assert";
import { UNARY_NUMBERS } from "../functions/unary.ts";
import { getFormat, ROW_FAMILIES } from "../quant/mod.ts";
import { outlierRuns, OUTLIERS, outliersAt, q8RowBytes } from "../quant/q8_activation.ts";
import { checkQ8, matmulQ8, spikedValues } from "../tests/support/products.ts";
import { quantizeQ8Row } from "../tests/support/q8_row.ts";
import { pack, place, run } from "../tests/support/wasm.ts";
import { formatOfRows, randomWeight } from "../tests/support/weights.ts";
import { formatLayout, hasIntegerKernel, laidOutFormats } from "./format_layouts.ts";
import { createMachine } from "./machine.ts";
import { expertScratchBytes } from "./matmul_scratch.ts";
import { factorBits } from "./weight_layout.ts";

const INTEGER = [...laidOutFormats(), ...ROW_FAMILIES].filter((name) => hasIntegerKernel(name));
const VARIANTS = ["baseline", "relaxed"] as const;
const PAIR = 1;
const DOT = 2;

/** Columns with more than one run, where blocks allow it. */
function columnsOf(family: string): number {
  return ROW_FAMILIES.includes(family) || getFormat(family).blockSize <= 64 ? 1088 : 1280;
}

/** Outliers that a row of 8 bit holds. */
function outliersOf(row: Uint8Array, columns: number): number {
  const slots = outlierRuns(columns) * OUTLIERS;
  const words = new Float32Array(row.slice(outliersAt(columns)).buffer, 0, 2 * slots);
  return words.filter((value, i) => i % 2 === 0 && value !== 0).length;
}

for (const variant of VARIANTS) {
  Deno.test(`outliers times every format equal the integer algebra (${variant})`, async () => {
    using machine = await createMachine({ threads: 2, variant });
    for (const family of INTEGER) {
      const columns = columnsOf(family), format = formatOfRows(family, columns);
      for (const [i, rows] of [1, 3, 8, 33].entries()) {
        const bias = i % 2 === 1;
        await checkQ8(machine, { format, rows, outputs: 37, columns, bias, spiked: true });
      }
    }
  });
}

Deno.test("a row with outliers gives the same bits for every format alone and among others", async () => {
  const rows = 40, outputs = 43;
  const machines = await Promise.all([
    ...VARIANTS.map((variant) => createMachine({ threads: 2, variant })),
    createMachine({ threads: 2, variant: "relaxed", joins: true }),
  ]);
  for (const family of INTEGER) {
    const columns = columnsOf(family), format = formatOfRows(family, columns);
    const weight = randomWeight(format, outputs, columns, 7), bytes = q8RowBytes(columns);
    const x = spikedValues(rows, columns, 8), batch = new Uint8Array(rows * bytes);
    for (let m = 0; m < rows; m++) {
      const row = batch.subarray(m * bytes, (m + 1) * bytes);
      quantizeQ8Row(x.subarray(m * columns, (m + 1) * columns), row);
      // Now and then both are in one group, whose second is no outlier beside the first.
      assert(outliersOf(row, columns) > outlierRuns(columns) * OUTLIERS / 2, `row ${m}`);
    }
    for (const machine of machines) {
      const packed = await pack(machine, format, outputs, columns, weight.bytes);
      const is8 = factorBits(formatLayout(family)!.layout) === 8, { capabilities } = machine;
      const hasDot = !is8 || capabilities.dotI8I8Exact || capabilities.dotI8U8Exact;
      const styles = capabilities.simd === "baseline" ? [0] : hasDot ? [PAIR, DOT] : [PAIR];
      for (const style of styles) {
        const product = (first: number, count: number) => {
          const at = place(machine, batch.subarray(first * bytes, (first + count) * bytes));
          return matmulQ8(
            machine,
            { format, rows: count, outputs, columns, style },
            packed,
            at,
            undefined,
          );
        };
        const all = product(0, rows);
        for (const [first, count] of [[0, 1], [5, 2], [7, 3], [10, 9], [33, 7]] as const) {
          const expected = all.slice(first * outputs, (first + count) * outputs);
          assertEquals(product(first, count), expected, `${format}, style ${style}, ${count} rows`);
        }
      }
    }
  }
  for (const machine of machines) machine[Symbol.dispose]();
});

Deno.test("more columns of outliers than are decoded once for a panel are decoded row by row", async () => {
  using machine = await createMachine({ threads: 1 });
  await checkQ8(machine, { format: "Q4_0", rows: 128, outputs: 16, columns: 5632, spiked: true });
});

Deno.test("an expert's product adds outliers as others do", async () => {
  const columns = 1088, outputs = 24, experts = 2, rows = 3, bytes = q8RowBytes(columns);
  using machine = await createMachine({ threads: 2 });
  for (const format of ["Q4_0", "Q8_0", "Q5_1"]) {
    const weight = randomWeight(format, experts * outputs, columns, 11);
    const packed = await pack(machine, format, experts * outputs, columns, weight.bytes);
    const x = spikedValues(rows, columns, 12), q8 = new Uint8Array(rows * bytes);
    for (let m = 0; m < rows; m++) {
      quantizeQ8Row(x.subarray(m * columns, (m + 1) * columns), q8.subarray(m * bytes));
    }
    const at = place(machine, q8), scratch_bytes = expertScratchBytes(columns);
    const c = { format, rows, outputs: experts * outputs, columns };
    const all = matmulQ8(machine, c, packed, at, undefined), chosen = [1, 0, 1];
    const y = machine.allocate(4 * rows * outputs);
    run(machine, "expert_matmul_q8", {
      ...{
        x: at,
        w: packed.address,
        y,
        bias: 0,
        rows,
        count: 1,
        shared: 1,
        experts,
        columns,
        outputs,
      },
      ...{ chosen: place(machine, Uint32Array.from(chosen), 4), layout: packed.layout, chunk: 2 },
      ...{ row_bytes: bytes, tile_bytes: packed.tileBytes, style: 0, scratch_bytes },
      scratch: machine.allocate(machine.threads * scratch_bytes),
    });
    const got = machine.f32(y, rows * outputs).slice();
    chosen.forEach((expert, m) => {
      const from = m * experts * outputs + expert * outputs;
      const own = got.slice(m * outputs, (m + 1) * outputs);
      assertEquals(own, all.slice(from, from + outputs), `${format}, row ${m}`);
    });
  }
});

Deno.test("what norms, gates and functions write in 8 bit has the outliers of their floats", async () => {
  const rows = 3, columns = 1504, count = rows * columns, bytes = q8RowBytes(columns);
  const scratchBytes = 4 * columns;
  for (const variant of VARIANTS) {
    using machine = await createMachine({ threads: 2, variant });
    const x = place(machine, spikedValues(rows, columns, 3)),
      ones = place(machine, new Float32Array(count).fill(1));
    const scratch = { scratch: machine.allocate(2 * scratchBytes), scratch_bytes: scratchBytes };
    const size = { rows, columns, row_bytes: bytes }, kind = UNARY_NUMBERS.relu;
    const norm = { x, w: ones, rows, columns, group: 1, epsilon: 1e-5, base: 0 };
    const y = machine.allocate(4 * count), q8 = machine.allocate(rows * bytes);
    const check = (name: string) => {
      const floats = machine.f32(y, count).slice(), expected = new Uint8Array(rows * bytes);
      for (let m = 0; m < rows; m++) {
        const row = expected.subarray(m * bytes, (m + 1) * bytes);
        quantizeQ8Row(floats.subarray(m * columns, (m + 1) * columns), row);
        assert(outliersOf(row, columns) > 0, name);
      }
      assertEquals(machine.u8(q8, rows * bytes).slice(), expected, `${name}, ${variant}`);
      machine.u8(q8, rows * bytes).fill(0);
    };
    machine.u8(q8, rows * bytes).fill(0);
    run(machine, "rms_norm", { ...norm, y });
    run(machine, "rms_norm_q8", { ...norm, ...scratch, row_bytes: bytes, y: q8 });
    check("norm");
    run(machine, "glu", { gate: x, up: ones, y, count, kind });
    run(machine, "glu_q8", { gate: x, up: ones, y: q8, ...size, kind, ...scratch });
    check("gate");
    run(machine, "activation_q8", { x, y: q8, ...size, low: 0, kind, ...scratch });
    check("function");
  }
});
