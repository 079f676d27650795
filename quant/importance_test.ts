import { assert, assertEquals, assertLess, assertThrows } from "@std/assert";
import { normals } from "../tests/support/normals.ts";
import { fitMultiples } from "./fit_multiples.ts";
import { importanceWeights } from "./importance.ts";
import { type EncodeOptions, formatBytes, formats, getFormat, type NumberFormat } from "./mod.ts";

const COLUMNS = 512;
const VALUES = normals(8 * COLUMNS, 3);
// Some columns see inputs a hundred times as large as others, as in real models.
const IMPORTANCE = normals(COLUMNS, 4).map((value) => Math.exp(2 * value));

function weightedError(format: NumberFormat, options: EncodeOptions = {}): number {
  const bytes = new Uint8Array(formatBytes(format, VALUES.length)).fill(0xa5);
  format.encode!(VALUES, bytes, options);
  const decoded = new Float32Array(VALUES.length);
  format.decode(bytes, decoded);
  return decoded.reduce(
    (sum, value, i) => sum + IMPORTANCE[i % COLUMNS]! * (value - VALUES[i]!) ** 2,
    0,
  );
}

const USERS = [...formats.values()].filter(({ usesImportance }) => usesImportance);

Deno.test("the K formats, ggml's old ones and IQ4 use the importance of columns", () => {
  assertEquals(USERS.map(({ name }) => name), [
    ...["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K"],
    ...["IQ4_NL", "IQ4_XS"],
  ]);
});

for (const format of USERS) {
  Deno.test(`${format.name} loses less where columns count more`, () => {
    const own = weightedError(format, { importance: IMPORTANCE });
    assertLess(own, 0.97 * weightedError(format));
  });

  Deno.test(`${format.name} stays near its plain error when all columns count alike, however much, or none`, () => {
    for (const constant of [1, 2 ** 64, 2 ** -80, 0]) {
      const importance = new Float32Array(COLUMNS).fill(constant);
      assertLess(weightedError(format, { importance }), 1.1 * weightedError(format));
    }
  });

  Deno.test(`${format.name} keeps blocks of zeros and tiny ones finite by importance`, () => {
    for (const scale of [0, 1e-12, 1e-30]) {
      const values = VALUES.map((value) => value * scale);
      const bytes = new Uint8Array(formatBytes(format, values.length));
      format.encode!(values, bytes, { importance: IMPORTANCE });
      const decoded = new Float32Array(values.length);
      format.decode(bytes, decoded);
      assert(decoded.every((value) => Math.abs(value) < 1e-6), `${scale}`);
    }
  });
}

Deno.test("formats without a use for importance leave it", () => {
  const format = getFormat("Q8_0");
  assertEquals(weightedError(format, { importance: IMPORTANCE }), weightedError(format));
});

Deno.test("importance must be one number a column, not negative", () => {
  const bad: readonly (readonly [Float32Array, string])[] = [
    [IMPORTANCE.subarray(1), "no whole rows"],
    [new Float32Array(0), "no whole rows"],
    [IMPORTANCE.with(7, -1), "column 7 is -1"],
    [IMPORTANCE.with(9, NaN), "column 9 is NaN"],
  ];
  for (const [importance, message] of bad) {
    assertThrows(() => importanceWeights(VALUES, { importance }), RangeError, message);
  }
  assertEquals(importanceWeights(VALUES, {}), undefined);
});

Deno.test("multiples of a unit err less by weight than those of the greatest part", () => {
  const parts = normals(8, 5).map(Math.abs);
  const weights = normals(8, 6).map((value) => Math.exp(2 * value));
  for (const top of [15, 63]) {
    const error = (unit: number) =>
      parts.reduce((sum, part, i) => {
        const code = Math.max(0, Math.min(top, Math.round(part / unit)));
        return sum + weights[i]! * (part - unit * code) ** 2;
      }, 0);
    const { unit, codes } = fitMultiples(parts, weights, top);
    assert(codes.every((code) => code <= top));
    assertLess(error(unit), error(Math.max(...parts) / top));
  }
  assertEquals(fitMultiples(new Float32Array(3), weights, 15).unit, 0);
});

Deno.test("importance that no inputs give, and products beyond float32, are refused with the place", () => {
  for (const value of [-1, NaN, Infinity, 1e38]) {
    const importance = new Float32Array(COLUMNS).with(5, value);
    assertThrows(
      () => importanceWeights(VALUES, { importance }),
      RangeError,
      `the importance of column 5 is ${Math.fround(value)}`,
    );
  }
  const importance = new Float32Array(COLUMNS).fill(4e9);
  assertThrows(
    () => importanceWeights(VALUES.with(7, 1e30), { importance }),
    RangeError,
    "beyond float32",
  );
});
