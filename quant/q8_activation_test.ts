import { assert, assertEquals, assertThrows } from "@std/assert";
import {
  lowColumns,
  lowRowBytes,
  lowScale,
  Q8_GROUP,
  q8RowBytes,
  takeOutliers,
} from "./q8_activation.ts";
import { dequantizeQ8Row, quantizeLowRow, quantizeQ8Row } from "../tests/support/q8_row.ts";
import { random } from "../tests/support/weights.ts";

function quantize(values: readonly number[]) {
  const x = Float32Array.from({ length: Q8_GROUP }, (_, i) => values[i] ?? 0);
  const bytes = new Uint8Array(q8RowBytes(Q8_GROUP));
  quantizeQ8Row(x, bytes);
  const floats = new Float32Array(bytes.buffer, Q8_GROUP, 2);
  const halves = new Int16Array(bytes.buffer, Q8_GROUP + 8, 2);
  return { x, codes: new Int8Array(bytes.buffer, 0, Q8_GROUP), floats, halves, bytes };
}

Deno.test("a row has codes, scales, sums and half sums, padded to 16 bytes, and outliers of its runs", () => {
  assertEquals([32, 64, 128, 576, 1024].map(q8RowBytes), [64, 112, 192, 816, 1440]);
});

Deno.test("rows that are no multiple of 32 are refused", () => {
  for (const k of [0, -32, 1, 33, 32.5, NaN]) {
    assertThrows(() => q8RowBytes(k), RangeError, "give a multiple of 32");
  }
});

Deno.test("the largest magnitude becomes 127 and ties go to even", () => {
  const { codes, floats } = quantize([127, -127, 0.5, 1.5, 2.5, -0.5, -1.5, 2.51]);
  assertEquals([...codes.subarray(0, 8)], [127, -127, 0, 2, 2, 0, -2, 3]);
  assertEquals(floats[0], 1);
});

Deno.test("a sum is scale times the sum of codes, and half sums are those of codes", () => {
  const values = Array.from({ length: 32 }, (_, i) => i - 12);
  const { codes, floats, halves } = quantize(values);
  const sum = codes.reduce((a, b) => a + b, 0);
  const first = codes.subarray(0, 16).reduce((a, b) => a + b, 0);
  assertEquals(floats[1], Math.fround(floats[0]! * sum));
  assertEquals([...halves], [first, sum - first]);
});

Deno.test("the largest of a run are outliers, up to two, where they are far above the rest of their groups", () => {
  const values = Float32Array.from({ length: 512 }, (_, i) => i % 2 ? 1 : -1);
  const taken = (spikes: readonly (readonly [at: number, value: number])[]) => {
    const run = values.slice();
    for (const [at, value] of spikes) run[at] = value;
    const found = takeOutliers(run);
    for (const at of found) assertEquals(run[at], 0);
    return found;
  };
  assertEquals(taken([]), []);
  // The squares of sixteen peaks, 15 + p² of them, have a mean; p² - 1 is above five times that from p² = 91 / 11 on.
  assertEquals(taken([[40, 2.87]]), []);
  assertEquals(taken([[40, 2.89]]), [40]);
  assertEquals(taken([[300, -50]]), [300]);
  assertEquals(taken([[40, 20], [300, -50], [500, 10]]), [300, 40]);
  assertEquals(
    taken([[40, 20], [41, 20.5], [300, -19]]),
    [],
    "what is left of a group would be as large",
  );
  assertEquals(taken([[40, Infinity], [300, 50]]), []);
  assertEquals(taken([[40, NaN], [300, 50]]), []);
  assertEquals(takeOutliers(new Float32Array(512)), []);
});

Deno.test("an outlier stays as it is, and the rest of its group is as exact as without it", () => {
  const plain = Float32Array.from({ length: 576 }, (_, i) => Math.sin(i * i)), x = plain.slice();
  x[100] = 1e4;
  const rows = [plain, x].map((values) => {
    const bytes = new Uint8Array(q8RowBytes(576)), back = new Float32Array(576);
    quantizeQ8Row(values, bytes);
    dequantizeQ8Row(bytes, back);
    return back;
  });
  assertEquals(rows[1]![100], 1e4);
  rows[1]!.forEach((value, i) => {
    if (i !== 100) assert(Math.abs(value - x[i]!) <= 0.5001 / 127, `value ${i}`);
  });
});

Deno.test("zeros and the smallest numbers give finite rows", () => {
  for (const value of [0, 1e-45, -3e-45]) {
    const { codes, floats } = quantize([value]);
    assert(floats.every(Number.isFinite));
    assert(codes.every((code) => Math.abs(code) <= 127));
  }
});

Deno.test("no value moves by more than half a step", () => {
  const { x, bytes, floats } = quantize(Array.from({ length: 32 }, (_, i) => Math.sin(i * i) * 3));
  const back = new Float32Array(Q8_GROUP);
  dequantizeQ8Row(bytes, back);
  for (let i = 0; i < Q8_GROUP; i++) {
    assert(
      Math.abs(back[i]! - x[i]!) <= 0.5001 * floats[0]!,
      `value ${i}: ${x[i]} became ${back[i]}`,
    );
  }
});

/** Codes and scale of a row of low sums of one group. */
function quantizeLow(x: Float32Array) {
  const bytes = new Uint8Array(lowRowBytes(x.length)), columns = lowColumns(x.length);
  quantizeLowRow(x, bytes);
  return {
    codes: new Int8Array(bytes.buffer, 0, columns),
    scale: new Float32Array(bytes.buffer, columns, 1)[0]!,
  };
}

Deno.test("a row of low sums has whole groups of 64, scales and sums, padded to 16 bytes", () => {
  assertEquals([32, 64, 96, 384, 576].map(lowRowBytes), [80, 80, 144, 432, 656]);
  const { codes } = quantizeLow(new Float32Array(32).fill(1));
  assertEquals([...codes.subarray(32)], new Array(32).fill(0));
});

Deno.test("in a row of low sums eight codes of a sign add up to 258 at most", () => {
  const next = random(3);
  const shapes = [
    () => 1,
    () => -1,
    (i: number) => i % 8 < 2 ? 1 : 0.9999,
    () => next() - 0.5,
    () => (next() - 0.5) ** 3,
    () => Math.fround(3.4e38 * next()),
    () => 2e-33 * (next() - 0.7),
    () => 1e-43 * next(),
  ];
  let most = 0;
  for (let turn = 0; turn < 200; turn++) {
    for (const shape of shapes) {
      const { codes, scale } = quantizeLow(Float32Array.from({ length: 64 }, (_, i) => shape(i)));
      assert(Number.isFinite(scale));
      for (let i = 0; i < 64; i += 16) {
        for (const at of [i, i + 2]) {
          const eight = [0, 1, 4, 5, 8, 9, 12, 13].map((column) => codes[at + column]!);
          for (const sign of [1, -1]) {
            most = Math.max(most, eight.reduce((sum, code) => sum + Math.max(sign * code, 0), 0));
          }
        }
      }
    }
  }
  assert(most <= 258 && most >= 254, `${most}`);
});

Deno.test("the scale of a group of low sums is larger where sums would not be low", () => {
  const few = new Float32Array(64), many = new Float32Array(64).fill(1);
  few[0] = 1;
  assertEquals(lowScale(few, Math.fround(1 / 127)), Math.fround(1 / 127));
  assert(Math.abs(lowScale(many, Math.fround(1 / 127)) - 8 / 254) < 1e-8);
});
