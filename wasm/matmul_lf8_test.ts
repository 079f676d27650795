import { assertEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import { getFormat } from "../quant/mod.ts";
import { readF32 } from "../quant/half.ts";
import { lf8RowBytes, multiplyLf8Rows, quantizeLf8Row } from "../quant/lf8_products.ts";
import { place, run } from "../tests/support/wasm.ts";
import { randomValues, randomWeight } from "../tests/support/weights.ts";
import { createMachine, type Machine } from "./machine.ts";

function multiply(
  machine: Machine,
  x: Uint8Array,
  w: Uint8Array,
  { rows, outputs, columns }: { rows: number; outputs: number; columns: number },
): Float32Array {
  const y = machine.allocate(4 * rows * outputs);
  run(machine, "matmul_lf8", {
    ...{ x: place(machine, x), w: place(machine, w), y, bias: 0, rows, columns, outputs },
  });
  return machine.f32(y, rows * outputs).slice();
}

Deno.test("products in LF8 have the bits of the definition on any threads, extreme codes too", async () => {
  for (const variant of ["baseline", "relaxed"] as const) {
    for (const threads of [1, 2]) {
      using machine = await createMachine({ threads, variant });
      for (
        const [rows, outputs, groups] of [[1, 1, 1], [1, 37, 8], [3, 16, 2], [8, 50, 3]] as const
      ) {
        for (const extreme of [false, true]) {
          const columns = 256 * groups, bytes = lf8RowBytes(columns);
          const w = randomWeight("LF8", outputs, columns, rows, extreme).bytes;
          const x = randomWeight("LF8", rows, columns, 7 * rows, extreme).bytes;
          // -128 against -128, whose products are the largest.
          if (extreme) { for (const side of [x, w]) side.fill(128, 4, 260); }
          const got = multiply(machine, x, w, { rows, outputs, columns });
          const expected = Float32Array.from(got, (_, i) => {
            const m = Math.floor(i / outputs), n = i % outputs;
            return multiplyLf8Rows(
              x.subarray(m * bytes, (m + 1) * bytes),
              w.subarray(n * bytes, (n + 1) * bytes),
            );
          });
          assertEquals(
            got,
            expected,
            `${variant} ${threads} ${rows} ${outputs} ${groups} ${extreme}`,
          );
        }
      }
    }
  }
});

Deno.test("rows become LF8 with the bytes of the definition, which are those of the format", async () => {
  using machine = await createMachine({ threads: 2 });
  for (const [rows, columns] of [[1, 256], [5, 768]] as const) {
    const x = randomValues(rows * columns, rows);
    x.set([0.5, -0.5, 1.5, 127.5, -127.5, 3e38, 1e-45], 0);
    if (rows > 1) x.fill(0, 256, 512);
    if (rows > 1) x.fill(3e-45, 512, 768);
    const bytes = rows * lf8RowBytes(columns), y = machine.allocate(bytes);
    run(machine, "quantize_lf8", { x: place(machine, x, 4), y, rows, columns });
    const expected = new Uint8Array(bytes), encoded = new Uint8Array(bytes);
    quantizeLf8Row(x, expected);
    getFormat("LF8").encode!(x, encoded);
    assertEquals(machine.u8(y, bytes).slice(), expected);
    assertEquals(encoded, expected);
  }
});

Deno.test("the definition adds whole sums times both scales, group after group, in float32", () => {
  const f = Math.fround;
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 5 }),
      fc.integer(),
      fc.boolean(),
      (groups, seed, extreme) => {
        const columns = 256 * groups;
        const x = randomWeight("LF8", 1, columns, seed, extreme).bytes;
        const w = randomWeight("LF8", 1, columns, seed ^ 0x5555, extreme).bytes;
        let total = 0;
        for (let g = 0; g < groups; g++) {
          let sum = 0n;
          for (let k = 260 * g + 4; k < 260 * (g + 1); k++) {
            sum += BigInt.asIntN(8, BigInt(x[k]!)) * BigInt.asIntN(8, BigInt(w[k]!));
          }
          const scaled = f(f(Number(sum) * readF32(w, 260 * g)) * readF32(x, 260 * g));
          total = f(total + scaled);
        }
        assertEquals(multiplyLf8Rows(x, w), total);
      },
    ),
    { seed: 4, numRuns: 60 },
  );
});

Deno.test("activations that are not numbers give outputs that are none", async () => {
  using machine = await createMachine({ threads: 1 });
  const w = randomWeight("LF8", 3, 256, 1).bytes;
  for (const bad of [NaN, Infinity, -Infinity]) {
    const x = randomValues(512, 2);
    x[255] = bad;
    const q = machine.allocate(520);
    run(machine, "quantize_lf8", { x: place(machine, x), y: q, rows: 2, columns: 256 });
    const got = multiply(machine, machine.u8(q, 520).slice(), w, {
      rows: 2,
      outputs: 3,
      columns: 256,
    });
    assertEquals([...got].map(Number.isNaN), [true, true, true, false, false, false]);
  }
});

Deno.test("rows that do not fill groups of 256 are refused", () => {
  assertThrows(() => lf8RowBytes(288), RangeError, "multiple of 256");
});
