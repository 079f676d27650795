// What holds for every format that can be encoded, within the bounds that its record states: encoding what was decoded changes
// nothing, constant blocks come back, and values among the subnormals stay finite and small.

import { assert, assertAlmostEquals, assertEquals, assertLessOrEqual } from "@std/assert";
import { normals } from "../tests/support/normals.ts";
import { formatBytes, formats, type NumberFormat, rowFormatsOf } from "./mod.ts";

const ENCODED = [...formats.values(), ...rowFormatsOf(64)].filter(({ encode }) => encode);

function roundTrip(format: NumberFormat, values: Float32Array): Float32Array {
  const bytes = new Uint8Array(formatBytes(format, values.length)).fill(0xa5);
  format.encode!(values, bytes);
  const out = new Float32Array(values.length);
  format.decode(bytes, out);
  return out;
}

/** Ordinary values; small ones for formats that hold no others. */
function valuesFor({ blockSize, bounds }: NumberFormat, seed: number): Float32Array {
  const scale = Math.min(1, (bounds?.largest ?? Infinity) / 5);
  return normals(Math.max(blockSize, 1024), seed).map((value) => value * scale);
}

const greatestOf = (values: Float32Array) =>
  values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);

for (const format of ENCODED) {
  const { name, bounds: { shrink = 0, settles } = {} } = format;
  Deno.test(`${name}: what was decoded is encoded to the same values`, () => {
    for (const seed of [1, 2, 3]) {
      const once = roundTrip(format, valuesFor(format, seed));
      const twice = roundTrip(format, once);
      const most = greatestOf(once);
      const slack = shrink * most;
      if (!settles) {
        twice.forEach((value, i) => assertLessOrEqual(Math.abs(value - once[i]!), slack));
      } else {
        twice.forEach((value, i) => assertLessOrEqual(Math.abs(value - once[i]!), 0.3 * most));
        assertEquals(roundTrip(format, twice), twice);
      }
    }
  });
}

for (const format of ENCODED) {
  const { name, bounds: { largest = Infinity, relative = 5e-4, step = 0 } = {} } = format;
  Deno.test(`${name}: constant blocks come back, zeros exactly`, () => {
    const count = Math.max(format.blockSize, 64);
    assert(roundTrip(format, new Float32Array(count)).every((value) => value === 0));
    for (const constant of [1, -1, 0.1, -3.7e-3, 1000]) {
      if (Math.abs(constant) > largest) continue;
      const bound = relative * Math.abs(constant) + step;
      for (const value of roundTrip(format, new Float32Array(count).fill(constant))) {
        assertAlmostEquals(value, constant, bound);
      }
    }
  });

  Deno.test(`${name}: values among the subnormals stay finite, and no larger than their greatest and a step`, () => {
    for (const exponent of [-14, -18, -22, -26, -40, -126, -140]) {
      const values = normals(Math.max(format.blockSize, 256), 7).map((v) => v * 2 ** exponent);
      const most = greatestOf(values);
      // Half a step of the widest grid, or what the least 16-bit scale makes of 256 codes.
      const step = Math.max(most / 4, 256 * 2 ** -24);
      for (const value of roundTrip(format, values)) {
        assert(Number.isFinite(value));
        assertLessOrEqual(Math.abs(value), most + step, `2^${exponent}`);
      }
    }
  });
}
