// The error bounds that assembly/exp.ts states, against float64.

import { assert, assertEquals, assertLess } from "@std/assert";
import { erf } from "../functions/special.ts";
import { createMachine, type Machine } from "./machine.ts";

function apply(machine: Machine, f: number, values: Float32Array): Float32Array {
  const x = machine.allocate(values.byteLength);
  const y = machine.allocate(values.byteLength);
  machine.f32(x, values.length).set(values);
  machine.exports.elementary!(f, x, y, values.length);
  return machine.f32(y, values.length).slice();
}

function sweep(from: number, to: number, count = 200_000): Float32Array {
  return Float32Array.from({ length: count }, (_, i) => from + (to - from) * i / (count - 1));
}

function worst(
  values: Float32Array,
  got: Float32Array,
  exact: (x: number) => number,
): number {
  let most = 0;
  values.forEach((x, i) => {
    const expected = exact(x);
    most = Math.max(most, Math.abs(got[i]! - expected) / Math.abs(expected || 1));
  });
  return most;
}

for (const variant of ["baseline", "relaxed"] as const) {
  Deno.test(`exp, sigmoid, tanh, erfc and gelu keep their bounds (${variant})`, async () => {
    using machine = await createMachine({ threads: 1, variant });
    const wide = sweep(-87.33, 88.37);
    assertLess(worst(wide, apply(machine, 0, wide), Math.exp), 2.5e-7);
    const whole = sweep(-87.33, 88.72);
    assertLess(worst(whole, apply(machine, 5, whole), Math.exp), 2.5e-7);
    const middle = sweep(-80, 80);
    assertLess(worst(middle, apply(machine, 1, middle), (x) => 1 / (1 + Math.exp(-x))), 5e-7);
    for (const edge of [1e-3, 1, 20]) {
      const values = sweep(-edge, edge);
      assertLess(worst(values, apply(machine, 2, values), Math.tanh), 5e-7);
    }
    const near = sweep(-2, 2);
    const erfc = (x: number) => 1 - erf(Math.abs(x));
    assertLess(worst(near, apply(machine, 3, near), erfc), 1e-6);
    const gelu = apply(machine, 4, near);
    near.forEach((x, i) =>
      assertLess(Math.abs(gelu[i]! - x * (1 + erf(x / Math.SQRT2)) / 2), 2e-6)
    );
    const far = Float32Array.of(-1e30, -40, 40, 1e30);
    assertEquals([...apply(machine, 4, far)], [-0, -0, 40, Math.fround(1e30)]);
  });

  Deno.test(`exp of special values (${variant})`, async () => {
    using machine = await createMachine({ threads: 1, variant });
    const values = Float32Array.of(-Infinity, -88, -1e30, 0, -0, NaN, 1, 89);
    const got = apply(machine, 0, values);
    assertEquals([...got.slice(0, 6)], [0, 0, 0, 1, 1, NaN]);
    assertEquals(got[6], Math.fround(Math.E));
    assertEquals(got[7], Infinity);
    const ends = Float32Array.of(-Infinity, NaN, 88.73, 88.7, -103.9, -104, -88, 0);
    const exact = Array.from(ends, (x) => Math.fround(Math.exp(x)));
    apply(machine, 5, ends).forEach((y, i) =>
      assert(
        Object.is(y, exact[i]) || Math.abs(y / exact[i]! - 1) < 2.5e-7,
        `exp(${ends[i]}): ${y}`,
      )
    );
  });
}
