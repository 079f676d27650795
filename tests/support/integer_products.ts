// Products of 8-bit codes less their zero points, for tests.

import { assertEquals } from "@std/assert";
import type { Machine } from "../../wasm/machine.ts";
import { place, run } from "./wasm.ts";
import { random } from "./weights.ts";

/** A product of random codes: unsigned ones with a zero point, times signed ones with one for each column. */
export interface IntegerCase {
  readonly rows: number;
  readonly inner: number;
  readonly columns: number;
}

/** Multiplies, and compares with the definition. */
export function checkIntegers(machine: Machine, { rows, inner, columns }: IntegerCase): void {
  const next = random(rows + columns), code = () => Math.floor(256 * next());
  const a = Uint8Array.from({ length: rows * inner }, code);
  const b = Int8Array.from({ length: inner * columns }, code);
  const aZero = Uint8Array.of(code()), bZero = Int8Array.from({ length: columns }, code);
  const expected = Int32Array.from({ length: rows * columns }, (_, i) => {
    const row = Math.floor(i / columns), column = i % columns;
    let sum = 0;
    for (let k = 0; k < inner; k++) {
      sum += (a[row * inner + k]! - aZero[0]!) * (b[k * columns + column]! - bZero[column]!);
    }
    return sum;
  });
  const y = machine.allocate(4 * rows * columns);
  const bytes = (48 * 4 + 32) * Math.ceil(inner / 2) + 48 * 32, scratch_bytes = bytes + 63 & ~63;
  run(machine, "matmul_integer", {
    ...{ a: place(machine, a), b: place(machine, b), y, rows, inner, columns },
    ...{ a_zero: place(machine, aZero), b_zero: place(machine, bZero), b_zeros: columns },
    ...{ a_signed: 0, b_signed: 1, batch: 1, b_batch: 0, scratch_bytes },
    scratch: machine.allocate(machine.threads * scratch_bytes),
  });
  assertEquals(new Int32Array(machine.f32(y, rows * columns).slice().buffer), expected);
}
