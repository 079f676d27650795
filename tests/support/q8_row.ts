// The definition of 8-bit rows (quant/q8_activation.ts), by which kernels are judged.

import { roundToEven } from "../../functions/special.ts";
import { INT7_GROUP, turnColumns, X_FACTOR } from "../../quant/int7_groups.ts";
import {
  lowColumns,
  lowScale,
  OUTLIER_RUN,
  OUTLIER_RUN_BYTES,
  outlierRuns,
  OUTLIERS,
  outliersAt,
  Q8_GROUP,
  takeOutliers,
} from "../../quant/q8_activation.ts";

/**
 * Quantises one row.
 *
 * @param x `k` values.
 * @param out Receives `q8RowBytes(k)` bytes; its offset in its buffer must be a multiple of 4.
 */
export function quantizeQ8Row(x: Float32Array, out: Uint8Array): void {
  const groups = x.length / Q8_GROUP, rest = x.slice(), runs = outlierRuns(x.length);
  for (let run = 0; run < runs; run++) {
    const first = run * OUTLIER_RUN, last = run === runs - 1 ? x.length : first + OUTLIER_RUN;
    takeOutliers(rest.subarray(first, last)).forEach((at, i) => {
      const place = out.byteOffset + outliersAt(x.length) + OUTLIER_RUN_BYTES * run + 8 * i;
      new Float32Array(out.buffer, place, 1)[0] = x[first + at]!;
      new Uint32Array(out.buffer, place + 4, 1)[0] = first + at;
    });
  }
  const codes = new Int8Array(out.buffer, out.byteOffset, x.length);
  const floats = new Float32Array(out.buffer, out.byteOffset + x.length, 2 * groups);
  const halves = new Int16Array(out.buffer, out.byteOffset + x.length + 8 * groups, 2 * groups);
  for (let g = 0; g < groups; g++) {
    const start = g * Q8_GROUP, values = rest.subarray(start, start + Q8_GROUP);
    const scale = plainScale(values);
    codes.set(codesOf(values, scale), start);
    floats[g] = scale;
    floats[groups + g] = scale * total(codes.subarray(start, start + Q8_GROUP));
    halves[2 * g] = total(codes.subarray(start, start + Q8_GROUP / 2));
    halves[2 * g + 1] = total(codes.subarray(start + Q8_GROUP / 2, start + Q8_GROUP));
  }
}

/** The same with low sums: `out` receives `lowRowBytes(k)` bytes. */
export function quantizeLowRow(x: Float32Array, out: Uint8Array): void {
  const columns = lowColumns(x.length), groups = columns / INT7_GROUP, turned = x.slice();
  const codes = new Int8Array(out.buffer, out.byteOffset, columns);
  const floats = new Float32Array(out.buffer, out.byteOffset + columns, 2 * groups);
  turnColumns(turned, X_FACTOR);
  for (let g = 0; g < groups; g++) {
    const start = g * INT7_GROUP, values = turned.subarray(start, start + INT7_GROUP);
    const scale = lowScale(values, plainScale(values));
    codes.set(codesOf(values, scale), start);
    floats[g] = scale;
    floats[groups + g] = scale * total(codes.subarray(start, start + INT7_GROUP));
  }
}

function plainScale(values: Float32Array): number {
  return Math.fround(values.reduce((most, value) => Math.max(most, Math.abs(value)), 0) / 127);
}

function codesOf(values: Float32Array, scale: number): number[] {
  return Array.from(values, (value) => {
    const ratio = scale === 0 ? 0 : Math.fround(value / scale);
    return Math.min(127, Math.max(-127, roundToEven(ratio)));
  });
}

function total(codes: Int8Array): number {
  return codes.reduce((sum, code) => sum + code, 0);
}

/** The numbers that a quantised row of `out.length` values stands for. */
export function dequantizeQ8Row(bytes: Uint8Array, out: Float32Array): void {
  dequantize(bytes, { out, columns: out.length, group: Q8_GROUP });
  const from = bytes.byteOffset + outliersAt(out.length);
  for (let i = 0; i < outlierRuns(out.length) * OUTLIERS; i++) {
    const [value] = new Float32Array(bytes.buffer, from + 8 * i, 1);
    if (value) out[new Uint32Array(bytes.buffer, from + 8 * i + 4, 1)[0]!] = value;
  }
}

/** The same of a row of low sums: numbers that are turned. */
export function dequantizeLowRow(bytes: Uint8Array, out: Float32Array): void {
  dequantize(bytes, { out, columns: lowColumns(out.length), group: INT7_GROUP });
}

function dequantize(
  bytes: Uint8Array,
  { out, columns, group }: {
    readonly out: Float32Array;
    readonly columns: number;
    readonly group: number;
  },
): void {
  const codes = new Int8Array(bytes.buffer, bytes.byteOffset, columns);
  const scales = new Float32Array(bytes.buffer, bytes.byteOffset + columns, columns / group);
  for (let i = 0; i < out.length; i++) out[i] = codes[i]! * scales[Math.floor(i / group)]!;
}
