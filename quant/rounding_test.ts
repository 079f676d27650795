import {
  assert,
  assertAlmostEquals,
  assertEquals,
  assertGreater,
  assertLess,
  assertThrows,
} from "@std/assert";
import { formatBytes, formats, getFormat, type NumberFormat } from "./mod.ts";
import { createRoundingGrid, hasGrid } from "./rounding.ts";
import { normals } from "../tests/support/normals.ts";

const ROW_FORMATS = ["I8PC_64", "I4PC_64"].map(getFormat);
const GRIDS = [...formats.values(), ...ROW_FORMATS].filter(hasGrid);

Deno.test("every format of codes in steps of a scale has a grid", () => {
  const names = GRIDS.map(({ name }) => name);
  assertGreater(names.length, 35);
  for (const name of ["Q4_0", "Q4_1", "Q5_K", "Q6_K", "IQ4_NL", "LF8", "INT4_G128", "E0M4_G128"]) {
    assert(names.includes(name), name);
  }
  for (const name of ["F16", "Q8_LOG", "MXFP4", "IQ1_S"]) {
    assertThrows(() => createRoundingGrid(getFormat(name)), RangeError, `to ${name}`);
  }
});

/** Small enough for the formats of fixed point too. */
function valuesFor({ blockSize }: NumberFormat, seed: number): Float32Array {
  return normals(blockSize, seed).map((value) => value * 0.2);
}

for (const format of GRIDS) {
  Deno.test(`${format.name}: a grid writes the levels that it gave, none further off than the encoder's`, () => {
    const grid = createRoundingGrid(format);
    const values = valuesFor(format, 5);
    const bytes = new Uint8Array(formatBytes(format, values.length));
    const plain = new Float32Array(values.length), own = new Float32Array(values.length);
    format.encode!(values, bytes);
    format.decode(bytes, plain);
    grid.fit(values);
    const levels = values.map((value, i) => grid.round(i, value));
    const out = new Uint8Array(bytes.length + 2).fill(0xa5);
    grid.write(out, 1);
    assertEquals([out[0], out.at(-1)], [0xa5, 0xa5]);
    format.decode(out.subarray(1, -1), own);
    values.forEach((value, i) => {
      assertAlmostEquals(own[i]!, levels[i]!, 1e-6, `value ${i}`);
      const slack = 1e-6 + Math.abs(value) * 1e-5;
      assert(Math.abs(own[i]! - value) <= Math.abs(plain[i]! - value) + slack, `value ${i}`);
    });
  });

  Deno.test(`${format.name}: every code of a grid is a level of its own, in order, and is met again`, () => {
    const { grid: { codes, write } = { codes: 0, write() {} } } = format;
    const grid = createRoundingGrid(format);
    const values = valuesFor(format, 7);
    grid.fit(values);
    const block = new Uint8Array(format.blockBytes);
    format.encode!(values, block);
    const list = new Uint8Array(format.blockSize);
    const decoded = Array.from({ length: codes }, (_, code) => {
      write(list.fill(code), block, 0);
      const out = new Float32Array(format.blockSize);
      format.decode(block, out);
      return out;
    });
    for (let i = 0; i < format.blockSize; i++) {
      const sign = Math.sign(decoded.at(-1)![i]! - decoded[0]![i]!);
      for (let code = 0; code < codes; code++) {
        const level = decoded[code]![i]!;
        if (code > 0 && sign !== 0) assertGreater(sign * (level - decoded[code - 1]![i]!), 0);
        assertAlmostEquals(grid.round(i, level), level, 1e-6);
      }
      assertLess(Math.abs(grid.round(i, 1e6 * (sign || 1)) - decoded.at(-1)![i]!), 1e-6);
    }
  });

  Deno.test(`${format.name}: a grid of nothing but zeros, or of one value, stays there`, () => {
    const grid = createRoundingGrid(format);
    for (const constant of [0, 0.5]) {
      grid.fit(new Float32Array(format.blockSize).fill(constant));
      for (let i = 0; i < format.blockSize; i++) {
        assertAlmostEquals(grid.round(i, constant), constant, 0.003);
      }
    }
  });
}
