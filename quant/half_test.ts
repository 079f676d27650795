import { assert, assertEquals } from "@std/assert";
import {
  bf16ToF32,
  f16ToF32,
  f32ToBf16,
  f32ToF16,
  readF16,
  readF32,
  writeF16,
  writeF32,
} from "./half.ts";

/** IEEE 754 binary16 by its definition. */
function f16ByDefinition(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

Deno.test("all 65536 binary16 codes decode by the definition and encode to themselves", () => {
  for (let bits = 0; bits < 65536; bits++) {
    const value = f16ToF32(bits);
    if (!Object.is(value, f16ByDefinition(bits))) assertEquals(value, f16ByDefinition(bits));
    if (Number.isNaN(value)) {
      assert(Number.isNaN(f16ToF32(f32ToF16(value))));
    } else if (f32ToF16(value) !== bits) assertEquals(f32ToF16(value), bits);
  }
});

Deno.test("binary16 encoding rounds to nearest, ties to even, up to the overflow border", () => {
  for (let bits = 0; bits < 0x7bff; bits++) {
    const low = f16ByDefinition(bits);
    const high = f16ByDefinition(bits + 1);
    const middle = (low + high) / 2; // exact in float32
    const step = (high - low) / 1024;
    const even = bits & 1 ? bits + 1 : bits;
    for (
      const [value, code] of [[middle, even], [middle - step, bits], [middle + step, bits + 1]]
    ) {
      if (f32ToF16(value!) !== code) assertEquals(f32ToF16(value!), code, `${value}`);
      if (f32ToF16(-value!) !== (code! | 0x8000)) assertEquals(f32ToF16(-value!), code! | 0x8000);
    }
  }
  assertEquals(f32ToF16(65519.99609375), 0x7bff);
  assertEquals(f32ToF16(65520), 0x7c00);
  assertEquals(f32ToF16(-Infinity), 0xfc00);
});

Deno.test("all 65536 bfloat16 codes survive decoding and encoding", () => {
  for (let bits = 0; bits < 65536; bits++) {
    const value = bf16ToF32(bits);
    const again = f32ToBf16(value);
    if (Number.isNaN(value)) assert(Number.isNaN(bf16ToF32(again)));
    else if (again !== bits) assertEquals(again, bits);
  }
});

Deno.test("bfloat16 encoding rounds to nearest, ties to even, and never makes a NaN infinite", () => {
  assertEquals(f32ToBf16(1 + 2 ** -8), 0x3f80); // tie, even below
  assertEquals(f32ToBf16(1 + 3 * 2 ** -8), 0x3f82); // tie, even above
  assertEquals(f32ToBf16(1 + 2 ** -8 + 2 ** -20), 0x3f81);
  assertEquals(f32ToBf16(3.4028234663852886e38), 0x7f80); // overflows to infinity
  const bits = new Uint32Array([0x7f800001, 0xffffffff]); // signalling and negative NaN
  for (const value of new Float32Array(bits.buffer)) {
    assert(Number.isNaN(bf16ToF32(f32ToBf16(value))));
  }
});

Deno.test("values are read and written little-endian at any byte offset", () => {
  const bytes = new Uint8Array(16);
  for (let offset = 0; offset < 4; offset++) {
    writeF32(bytes, offset, Math.fround(Math.PI));
    assertEquals(readF32(bytes, offset), Math.fround(Math.PI));
    writeF16(bytes, offset + 5, -1.5);
    assertEquals([bytes[offset + 5], bytes[offset + 6]], [0x00, 0xbe]);
    assertEquals(readF16(bytes, offset + 5), -1.5);
  }
});
