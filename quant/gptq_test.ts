import { assert, assertAlmostEquals, assertEquals, assertLess, assertThrows } from "@std/assert";
import { factorGram, roundByGptq } from "./gptq.ts";
import { formatBytes, formats, getFormat, type NumberFormat } from "./mod.ts";
import { createRoundingGrid, hasGrid } from "./rounding.ts";
import { completed } from "../tests/support/completed.ts";
import { normals } from "../tests/support/normals.ts";

/** Gram matrix of inputs that are mixtures of a few causes and some noise. */
function correlatedGram(columns: number, seed: number): Float32Array {
  const causes = 8, rows = 3 * columns;
  const mixture = normals(columns * causes, seed);
  const strength = normals(rows * causes, seed + 1);
  const noise = normals(rows * columns, seed + 2);
  const x = noise.map((value, i) => {
    const [row, column] = [Math.floor(i / columns), i % columns];
    let sum = 0.3 * value;
    for (let c = 0; c < causes; c++) {
      sum += strength[row * causes + c]! * mixture[column * causes + c]!;
    }
    return sum;
  });
  return gramOf(x, columns);
}

function gramOf(x: Float32Array, columns: number): Float32Array {
  const gram = new Float32Array(columns * columns);
  for (let at = 0; at < x.length; at += columns) {
    for (let i = 0; i < columns; i++) {
      for (let k = 0; k < columns; k++) gram[i * columns + k]! += x[at + i]! * x[at + k]!;
    }
  }
  return gram;
}

/** Σ (ŵ - w) H (ŵ - w)ᵀ: the square error of the outputs. */
function outputError(
  values: Float32Array,
  decoded: Float32Array,
  gram: Float32Array,
  columns: number,
): number {
  let sum = 0;
  for (let at = 0; at < values.length; at += columns) {
    for (let i = 0; i < columns; i++) {
      for (let k = 0; k < columns; k++) {
        sum += (decoded[at + i]! - values[at + i]!) * gram[i * columns + k]! *
          (decoded[at + k]! - values[at + k]!);
      }
    }
  }
  return sum;
}

function decode(format: NumberFormat, bytes: Uint8Array, count: number): Float32Array {
  const out = new Float32Array(count);
  format.decode(bytes, out);
  return out;
}

function rounded(format: NumberFormat, values: Float32Array, gram: Float32Array, columns: number) {
  const bytes = new Uint8Array(formatBytes(format, values.length));
  const factor = completed(factorGram(gram, { columns, group: format.blockSize }));
  roundByGptq(createRoundingGrid(format), values, factor, bytes);
  return decode(format, bytes, values.length);
}

/** Each value to the nearest level of its group. */
function nearestLevels(format: NumberFormat, values: Float32Array): Float32Array {
  const grid = createRoundingGrid(format);
  return values.map((value, i) => {
    const start = i - i % grid.group;
    if (i === start) grid.fit(values.subarray(start, start + grid.group));
    return grid.round(i - start, value);
  });
}

function nearest(format: NumberFormat, values: Float32Array): Float32Array {
  const bytes = new Uint8Array(formatBytes(format, values.length));
  format.encode!(values, bytes);
  return decode(format, bytes, values.length);
}

const gram256 = correlatedGram(256, 3);
const ROW_FORMATS = ["I8PC_256", "I4PC_256"].map(getFormat);
for (const format of [...formats.values(), ...ROW_FORMATS].filter(hasGrid)) {
  Deno.test(`GPTQ to ${format.name} changes outputs less than rounding to nearest, for correlated inputs`, () => {
    const values = normals(6 * 256, 11).map((value) => value * 0.1);
    const plain = outputError(values, nearest(format, values), gram256, 256);
    const own = outputError(values, rounded(format, values, gram256, 256), gram256, 256);
    assertLess(own, 0.5 * plain);
  });
}

Deno.test("what GPTQ writes is what the paper's algorithm with the inverse gives", () => {
  const columns = 64, rows = 3;
  const format = getFormat("Q4_B32T1A");
  // Diagonals descend, so that the order of rounding is that of the columns.
  const gram = correlatedGram(columns, 21);
  for (let i = 0; i < columns; i++) {
    for (let k = 0; k < columns; k++) gram[i * columns + k]! *= 0.8 ** (i + k);
  }
  const diagonal = Array.from({ length: columns }, (_, i) => gram[i * columns + i]!);
  const order = diagonal.map((_, i) => i).sort((a, b) => diagonal[b]! - diagonal[a]!);
  const sorted = Float32Array.from(
    gram,
    (_, at) => gram[order[Math.floor(at / columns)]! * columns + order[at % columns]!]!,
  );
  const values = normals(rows * columns, 22);
  const own = rounded(format, values, sorted, columns);
  const expected = paperGptq(format, values, sorted, columns);
  own.forEach((value, i) => assertAlmostEquals(value, expected[i]!, 1e-5, `value ${i}`));
});

/** Algorithm 1 of the paper without its blocks, and with scales chosen at the start of each group. */
function paperGptq(
  format: NumberFormat,
  values: Float32Array,
  gram: Float32Array,
  columns: number,
): number[] {
  const mean = Array.from({ length: columns }, (_, i) => gram[i * columns + i]!)
    .reduce((sum, value) => sum + value) / columns;
  const damped = Array.from(
    { length: columns },
    (_, i) =>
      Array.from(
        { length: columns },
        (_, k) => gram[i * columns + k]! + (i === k ? 0.01 * mean : 0),
      ),
  );
  const upper = upperCholesky(inverse(damped));
  const grid = createRoundingGrid(format);
  const out: number[] = [];
  for (let at = 0; at < values.length; at += columns) {
    const w = Array.from(values.subarray(at, at + columns));
    for (let j = 0; j < columns; j++) {
      if (j % grid.group === 0) grid.fit(Float32Array.from(w.slice(j, j + grid.group)));
      const level = grid.round(j % grid.group, w[j]!);
      const error = (w[j]! - level) / upper[j]![j]!;
      for (let k = j; k < columns; k++) w[k]! -= error * upper[j]![k]!;
      out.push(level);
    }
  }
  return out;
}

function inverse(matrix: readonly (readonly number[])[]): number[][] {
  const n = matrix.length;
  const rows = matrix.map((row, i) => [...row, ...row.map((_, k) => i === k ? 1 : 0)]);
  for (let i = 0; i < n; i++) {
    const pivot = rows[i]![i]!;
    rows[i] = rows[i]!.map((value) => value / pivot);
    for (let r = 0; r < n; r++) {
      if (r === i) continue;
      const factor = rows[r]![i]!;
      rows[r] = rows[r]!.map((value, k) => value - factor * rows[i]![k]!);
    }
  }
  return rows.map((row) => row.slice(n));
}

/** Upper U with Uᵀ U = matrix. */
function upperCholesky(matrix: readonly (readonly number[])[]): number[][] {
  const n = matrix.length;
  const u = matrix.map((row) => row.map(() => 0));
  for (let i = 0; i < n; i++) {
    for (let k = i; k < n; k++) {
      let sum = matrix[i]![k]!;
      for (let r = 0; r < i; r++) sum -= u[r]![i]! * u[r]![k]!;
      u[i]![k] = i === k ? Math.sqrt(sum) : sum / u[i]![i]!;
    }
  }
  return u;
}

Deno.test("inputs that are always zero, or all unrelated, leave rounding to nearest", () => {
  const columns = 96;
  const format = getFormat("Q4_B32T1A");
  const values = normals(5 * columns, 31);
  const zero = new Float32Array(columns * columns);
  const expected = nearestLevels(format, values);
  assertEquals(rounded(format, values, zero, columns), expected);
  const unrelated = zero.map((_, i) => i % (columns + 1) === 0 ? 2 : 0);
  assertEquals(rounded(format, values, unrelated, columns), expected);
});

Deno.test("rows do not depend on each other, nor on how many are rounded at a time", () => {
  const values = normals(5 * 256, 41);
  for (const name of ["Q4_B32T1A", "Q5_K", "I4PC_256"]) {
    const format = getFormat(name);
    const whole = rounded(format, values, gram256, 256);
    for (let row = 0; row < 5; row++) {
      const at = row * 256;
      const one = rounded(format, values.subarray(at, at + 256), gram256, 256);
      one.forEach((value, i) => assertAlmostEquals(value, whole[at + i]!, 1e-6));
    }
  }
});

Deno.test("inputs that are not finite are refused, and groups must be those of the grid", () => {
  const gram = gram256.slice();
  gram[5] = NaN;
  assertThrows(
    () => completed(factorGram(gram, { columns: 256, group: 32 })),
    RangeError,
    "not finite",
  );
  const factor = completed(factorGram(gram256, { columns: 256, group: 64 }));
  const grid = createRoundingGrid(getFormat("Q4_0"));
  const values = normals(256, 1);
  assertThrows(
    () => roundByGptq(grid, values, factor, new Uint8Array(144)),
    RangeError,
    "groups of 32 in an order of groups of 64",
  );
  assert(values.every(Number.isFinite));
  const q8 = getFormat("E0M4_G32");
  assertThrows(
    () => rounded(q8, values.with(70, 1e9), new Float32Array(256 * 256), 256),
    RangeError,
    "In row 0, from column 64 on: Cannot store the block",
  );
});
