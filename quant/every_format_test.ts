// What holds for every format that can be encoded, exceptions by name: encoding what was decoded changes
// nothing, constant blocks come back, and values among the subnormals stay finite and small.

import { assert, assertAlmostEquals, assertEquals, assertLessOrEqual } from "@std/assert";
import { normals } from "../tests/support/normals.ts";
import { formatBytes, formats, getFormat, type NumberFormat } from "./mod.ts";

const ROW_FORMATS = ["I8PC_64", "I4PC_64", "Q8_GL_64"].map(getFormat);
const ENCODED = [...formats.values(), ...ROW_FORMATS].filter(({ encode }) => encode);

function roundTrip(format: NumberFormat, values: Float32Array): Float32Array {
  const bytes = new Uint8Array(formatBytes(format, values.length)).fill(0xa5);
  format.encode!(values, bytes);
  const out = new Float32Array(values.length);
  format.decode(bytes, out);
  return out;
}

/** Ordinary values; small ones for the format of fixed point. */
function valuesFor({ name, blockSize }: NumberFormat, seed: number): Float32Array {
  return normals(Math.max(blockSize, 1024), seed)
    .map((value) => value * (name === "Q4_B16" ? 0.2 : 1));
}

const greatestOf = (values: Float32Array) =>
  values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);

// They search for the best scale, and find a better one for values that lie on a grid already; then it stays.
const SETTLING = ["Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_XS"];
// Levels do not reach both ends of a block, so its range shrinks by a step at most: in the middle of cells
// (B), below the last code (LF8), and where the bias is snapped (E0M4).
const SHRINKING: Readonly<Record<string, number>> = {
  Q4_B32T1B: 1 / 16,
  Q3_B32T1B: 1 / 8,
  Q2_B32T1B: 1 / 4,
  LF8: 1.001 / 255,
  ...Object.fromEntries(
    ENCODED.filter(({ name }) => name.startsWith("E0M4")).map(({ name }) => [name, 2 / 16]),
  ),
};

for (const format of ENCODED) {
  const { name } = format;
  const shrink = SHRINKING[name];
  Deno.test(`${name}: what was decoded is encoded to the same values`, () => {
    for (const seed of [1, 2, 3]) {
      const once = roundTrip(format, valuesFor(format, seed));
      const twice = roundTrip(format, once);
      const most = greatestOf(once);
      // NB4's float32 scale is found from rounded ends.
      const slack = (shrink ?? (name === "NB4" ? 1e-6 : 0)) * most;
      if (!SETTLING.includes(name)) {
        twice.forEach((value, i) => assertLessOrEqual(Math.abs(value - once[i]!), slack));
      } else {
        twice.forEach((value, i) => assertLessOrEqual(Math.abs(value - once[i]!), 0.3 * most));
        assertEquals(roundTrip(format, twice), twice);
      }
    }
  });
}

// Relative error of a block of one value: that of a 16-bit float (twice, for a scale and a code) but for these.
const CONSTANT_ERRORS: Readonly<Record<string, number>> = {
  BF16: 2 ** -8,
  LF8: 1 / 254,
  Q6_K: 1 / 64,
  IQ4_XS: 1 / 64,
  Q8_LOG: 0.05,
  MXFP4: 1 / 4,
  NVFP4: 1 / 16,
};
// Scales or values have a least step, here of the constants below: NVFP4's E4M3, Q4_B16's hundredths.
const COARSE: Readonly<Record<string, number>> = { NVFP4: 2 ** -9 * 6, Q4_B16: 0.005 };
const LIMITS: Readonly<Record<string, number>> = { Q4_B16: 0.9, Q8_LOG: 69 };

for (const format of ENCODED) {
  const { name } = format;
  Deno.test(`${name}: constant blocks come back, zeros exactly`, () => {
    const count = Math.max(format.blockSize, 64);
    assert(roundTrip(format, new Float32Array(count)).every((value) => value === 0));
    for (const constant of [1, -1, 0.1, -3.7e-3, 1000]) {
      if (Math.abs(constant) > (LIMITS[name] ?? Infinity)) continue;
      const bound = (CONSTANT_ERRORS[name] ?? 5e-4) * Math.abs(constant) + (COARSE[name] ?? 0);
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
