import { assert, assertAlmostEquals, assertEquals } from "@std/assert";
import { resizeGrid } from "./picture_rows.ts";

const grid = (rows: number, columns: number) => ({ rows, columns });
const VALUES = Float32Array.of(0, 1, 4, 9, 2, 7);

// onnxruntime 1.32.0 (Resize, cubic, half_pixel, cubic_coeff_a -0.75) and Pillow (BICUBIC of floats), which are what
// torch computes without and with antialias.
const CASES = [
  ["bicubic", [0.12109, 2.82812, 7.76562, 5.62109]],
  ["bicubic", [-0.08681, 0.21875, 1.43056, 3.15278, 7.4375, 8.34259, 2.65741, 3.84375, 7.43403]],
  ["bicubic_antialias", [0.15858, 3.5559, 6.366, 4.97735]],
  [
    "bicubic_antialias",
    [-0.06579, 0.29412, 1.36111, 3.36111, 7.125, 8.38889, 2.61111, 4.23529, 7.32895],
  ],
] as const;

Deno.test("places of another grid are what torch makes of the table", () => {
  for (const [resized, wanted] of CASES) {
    const down = { grid: grid(6, 1), to: grid(wanted.length, 1), hidden: 1, resized };
    const actual = resizeGrid(VALUES, down);
    wanted.forEach((value, i) => assertAlmostEquals(actual[i]!, value, 2e-5, resized));
    const across = { ...down, grid: grid(1, 6), to: grid(1, wanted.length) };
    assertEquals(resizeGrid(VALUES, across), actual);
  }
});

Deno.test("a table keeps its own grid, and what is the same everywhere", () => {
  const ones = new Float32Array(3 * 5 * 2).fill(0.5);
  for (const resized of ["bicubic", "bicubic_antialias"] as const) {
    const larger = resizeGrid(ones, { grid: grid(3, 5), to: grid(4, 2), hidden: 2, resized });
    assertEquals(larger.length, 4 * 2 * 2);
    assert(larger.every((value) => Math.abs(value - 0.5) < 1e-6), resized);
  }
  assertEquals(resizeGrid(VALUES, { grid: grid(6, 1), to: grid(6, 1), hidden: 1 }), VALUES);
});
