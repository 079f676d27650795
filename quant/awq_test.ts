import { assert, assertAlmostEquals, assertEquals, assertLess } from "@std/assert";
import { completed } from "../tests/support/completed.ts";
import { normals } from "../tests/support/normals.ts";
import { searchScales } from "./awq.ts";
import { formatBytes, getFormat } from "./mod.ts";

const COLUMNS = 128;

/** Gram matrix of independent inputs, every sixteenth of them thirty times as large. */
function spikedGram(): Float32Array {
  const gram = new Float32Array(COLUMNS * COLUMNS);
  for (let i = 0; i < COLUMNS; i++) gram[i * COLUMNS + i] = i % 16 === 3 ? 900 : 1;
  return gram;
}

for (const name of ["Q4_0", "Q4_B32T1A", "INT4_G128", "E0M4_G128", "Q3_B32T1B", "I4PC_128"]) {
  Deno.test(`AWQ scales make the outputs of ${name} better where few inputs are large`, () => {
    const format = getFormat(name);
    const values = normals(8 * COLUMNS, 3);
    const gram = spikedGram();
    const { scales, alpha, ratio } = completed(searchScales([{ format, values }], gram, COLUMNS));
    assert(alpha > 0 && scales[3]! > scales[4]!);
    assertLess(ratio, 0.8);
    // What the search says of itself, by the long way.
    const error = (factors: Float32Array) => {
      const scaled = values.map((value, i) => value * factors[i % COLUMNS]!);
      const bytes = new Uint8Array(formatBytes(format, values.length));
      format.encode!(scaled, bytes);
      const decoded = new Float32Array(values.length);
      format.decode(bytes, decoded);
      return decoded.reduce((sum, value, i) => {
        const change = value / factors[i % COLUMNS]! - values[i]!;
        return sum + gram[(i % COLUMNS) * (COLUMNS + 1)]! * change * change;
      }, 0);
    };
    const plain = error(new Float32Array(COLUMNS).fill(1));
    assertAlmostEquals(error(scales) / plain, ratio, 1e-3);
  });
}

Deno.test("scales stay 1 where inputs are alike or absent, and where nothing is lost", () => {
  const values = normals(4 * COLUMNS, 5);
  const ones = new Float32Array(COLUMNS).fill(1);
  const equal = new Float32Array(COLUMNS * COLUMNS);
  for (let i = 0; i < COLUMNS; i++) equal[i * (COLUMNS + 1)] = 7;
  const q4 = getFormat("Q4_0");
  assertEquals(completed(searchScales([{ format: q4, values }], equal, COLUMNS)).scales, ones);
  const nothing = new Float32Array(COLUMNS * COLUMNS);
  assertEquals(completed(searchScales([{ format: q4, values }], nothing, COLUMNS)).scales, ones);
  const exact = completed(
    searchScales([{ format: getFormat("F32"), values }], spikedGram(), COLUMNS),
  );
  assertEquals([exact.alpha, exact.ratio], [0, 1]);
});

Deno.test("least and greatest scale are as far from 1", () => {
  const format = getFormat("Q4_0");
  const values = normals(4 * COLUMNS, 7);
  const { scales } = completed(searchScales([{ format, values }], spikedGram(), COLUMNS));
  assertAlmostEquals(Math.min(...scales) * Math.max(...scales), 1, 1e-5);
});
