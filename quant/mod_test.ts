import { assert, assertEquals, assertLessOrEqual, assertThrows } from "@std/assert";
import fc from "fast-check";
import { formatBytes, formatOfGgmlType, formats, getFormat, ggmlTypeName } from "./mod.ts";

interface DecodeFixture {
  formats: Record<string, {
    ggml_type: number;
    block_size: number;
    block_bytes_size: number;
    cases: { kind: string; n: number; block_bytes: string; values: string }[];
  }>;
}

interface EncodeFixture {
  values: string;
  formats: Record<string, string>;
}

function readFixture(name: string): unknown {
  const url = new URL(`../tests/fixtures/gguf/${name}`, import.meta.url);
  return JSON.parse(Deno.readTextFileSync(url));
}

function floats(base64: string): Float32Array {
  return new Float32Array(Uint8Array.fromBase64(base64).buffer);
}

const decodeFixture = readFixture("formats.json") as DecodeFixture;
const encodeFixture = readFixture("encode.json") as EncodeFixture;

for (const [name, expected] of Object.entries(decodeFixture.formats)) {
  Deno.test(`${name} decodes bit for bit to the values of the Python package gguf`, () => {
    const format = getFormat(name);
    assertEquals(format.ggmlType, expected.ggml_type);
    assertEquals(format.blockSize, expected.block_size);
    assertEquals(format.blockBytes, expected.block_bytes_size);
    for (const { kind, n, block_bytes, values } of expected.cases) {
      const out = new Float32Array(n);
      format.decode(Uint8Array.fromBase64(block_bytes), out);
      const wanted = floats(values);
      assertEquals(wanted.length, n);
      for (let i = 0; i < n; i++) {
        // Object.is: the sign of zero counts, NaN payloads do not.
        if (!Object.is(out[i], wanted[i])) assertEquals(out[i], wanted[i], `${kind} value ${i}`);
      }
    }
  });
}

for (const [name, expected] of Object.entries(encodeFixture.formats)) {
  Deno.test(`${name} encodes byte for byte to the blocks of the ggml reference`, () => {
    const format = getFormat(name);
    const wanted = Uint8Array.fromBase64(expected);
    const count = wanted.length / format.blockBytes * format.blockSize;
    const out = new Uint8Array(wanted.length).fill(0xa5);
    format.encode!(floats(encodeFixture.values).subarray(0, count), out);
    assertEquals(out.toHex(), wanted.toHex());
  });
}

for (const format of formats.values()) {
  const { error: bound, largest } = format.bounds ?? {};
  // Formats of a fixed range have no scale that follows the values: papers_test.ts holds theirs.
  if (!format.encode || largest !== undefined) continue;
  Deno.test(`${format.name} loses no more than its step when values are encoded and decoded`, () => {
    assert(bound !== undefined, `state an error bound for ${format.name}`);
    const count = Math.max(format.blockSize, 32);
    const value = fc.double({ min: -1, max: 1, noNaN: true });
    fc.assert(
      fc.property(
        fc.array(value, { minLength: count, maxLength: count }),
        fc.integer({ min: -6, max: 8 }),
        (list, exponent) => {
          const values = Float32Array.from(list, (v) => v * 2 ** exponent);
          // Scales of tiny blocks fall among the subnormals of f16, where no relative bound holds.
          values[0] = 2 ** exponent;
          const bytes = new Uint8Array(formatBytes(format, count));
          format.encode!(values, bytes);
          const out = new Float32Array(count);
          format.decode(bytes, out);
          for (let i = 0; i < count; i++) {
            assertLessOrEqual(Math.abs(out[i]! - values[i]!), bound * 2 ** exponent);
          }
        },
      ),
      { seed: 3, numRuns: 60 },
    );
  });
}

// Q1_0 and NVFP4 fit their scales anew to what they decoded, so they are not among these.
for (const name of ["F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "TQ2_0", "MXFP4"]) {
  Deno.test(`${name} is stable: encoding what it decoded gives the same values`, () => {
    const format = getFormat(name);
    const random = floats(encodeFixture.values).slice(0, Math.max(format.blockSize, 32));
    const bytes = new Uint8Array(formatBytes(format, random.length));
    format.encode!(random, bytes);
    const once = new Float32Array(random.length);
    format.decode(bytes, once);
    format.encode!(once, bytes);
    const twice = new Float32Array(random.length);
    format.decode(bytes, twice);
    const largest = Math.max(...random.map(Math.abs));
    twice.forEach((v, i) => assertLessOrEqual(Math.abs(v - once[i]!), largest * 0.001));
  });
}

for (const format of formats.values()) {
  Deno.test(`${format.name} decodes any bytes, at any alignment, reading and writing its blocks only`, () => {
    const { blockBytes, blockSize } = format;
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 2 * blockBytes, maxLength: 2 * blockBytes }),
        fc.integer({ min: 0, max: 9 }),
        (blocks, offset) => {
          const inside = (fill: number): Float32Array => {
            const bytes = new Uint8Array(blocks.length + 32).fill(fill);
            bytes.set(blocks, offset);
            const out = new Float32Array(2 * blockSize + 16).fill(12345.5);
            format.decode(
              bytes.subarray(offset, offset + blocks.length),
              out.subarray(8, 8 + 2 * blockSize),
            );
            return out;
          };
          const out = inside(0);
          assertEquals(out, inside(255));
          assert(out.subarray(0, 8).every((v) => v === 12345.5));
          assert(out.subarray(8 + 2 * blockSize).every((v) => v === 12345.5));
          assert(out.subarray(8, 8 + 2 * blockSize).every((v) => v !== 12345.5));
        },
      ),
      { seed: 5, numRuns: 40 },
    );
  });
}

Deno.test("Q8_1 stores scale, scaled sum and codes", () => {
  const format = getFormat("Q8_1");
  const values = Float32Array.from({ length: 32 }, (_, i) => i === 0 ? 127 : -i);
  const bytes = new Uint8Array(36);
  format.encode!(values, bytes);
  const sum = 127 - 31 * 16;
  const view = new DataView(bytes.buffer);
  assertEquals(view.getFloat16(0, true), 1);
  assertEquals(view.getFloat16(2, true), sum);
  assertEquals(view.getInt8(4 + 31), -31);
});

Deno.test("Q8_K maps the value furthest from zero to -127 and stores sums of 16", () => {
  const format = getFormat("Q8_K");
  const values = Float32Array.from({ length: 256 }, (_, i) => i === 40 ? 254 : -(i % 3));
  const bytes = new Uint8Array(292);
  format.encode!(values, bytes);
  const view = new DataView(bytes.buffer);
  assertEquals(view.getFloat32(0, true), -2);
  assertEquals(view.getInt8(4 + 40), -127);
  // Values 0, -1, -2 at scale -2 are 0, 1/2, 1: the half goes to the even code 0.
  assertEquals([0, 1, 2].map((i) => view.getInt8(4 + i)), [0, 0, 1]);
  assertEquals(view.getInt16(260, true), 5);
});

Deno.test("Q1_0 stores signs and the mean magnitude", () => {
  const format = getFormat("Q1_0");
  const values = Float32Array.from({ length: 128 }, (_, i) => i % 2 ? -1.5 : 0.5);
  const bytes = new Uint8Array(18);
  format.encode!(values, bytes);
  const out = new Float32Array(128);
  format.decode(bytes, out);
  assertEquals([...out.subarray(0, 4)], [1, -1, 1, -1]);
});

Deno.test("ggml type ids are unique and lead to their formats", () => {
  const known = [...formats.values()].filter(({ ggmlType }) => ggmlType !== undefined);
  const ids = known.map((format) => format.ggmlType!);
  assertEquals(new Set(ids).size, known.length);
  assert(known.length >= 34);
  for (const format of known) {
    assertEquals(formatOfGgmlType(format.ggmlType!), format);
    assertEquals(ggmlTypeName(format.ggmlType!), format.name);
  }
});

Deno.test("types that cannot be decoded are known by name, unknown ones are not", () => {
  assertEquals(formatOfGgmlType(4), undefined);
  assertEquals(ggmlTypeName(4), "Q4_2");
  assertEquals(ggmlTypeName(12345), undefined);
  assertEquals(formatOfGgmlType(-1), undefined);
});

Deno.test("an unknown format name is refused with the list of known ones", () => {
  const error = assertThrows(() => getFormat("q4_k"), RangeError, 'number format "q4_k"');
  assert(error.message.includes("Q4_K") && error.message.includes("MXFP4"));
});

Deno.test("a count that is no multiple of the block is refused", () => {
  assertEquals(formatBytes(getFormat("Q4_K"), 512), 288);
  assertThrows(() => formatBytes(getFormat("Q4_K"), 300), RangeError, "not a multiple of 256");
});
