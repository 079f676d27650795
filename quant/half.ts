// The two 16-bit floats. IEEE binary16 (f16) goes through Float16Array: the platform rounds to nearest
// even from any double, handles subnormals, and V8 compiles a load to one machine instruction, which
// beat both bit arithmetic and a 256 KiB table when measured. bfloat16 is the upper half of a float32.
// NaN stays NaN; its payload is not promised. The scratch arrays are written and read within one call.

const halfBits = new Uint16Array(1);
const halfValue = new Float16Array(halfBits.buffer);
const floatBits = new Uint32Array(1);
const floatValue = new Float32Array(floatBits.buffer);

/** Value of a binary16 code (0..65535). */
export function f16ToF32(bits: number): number {
  halfBits[0] = bits;
  return halfValue[0]!;
}

/** Nearest binary16 code of a number, ties to even; overflow gives infinity. */
export function f32ToF16(value: number): number {
  halfValue[0] = value;
  return halfBits[0]!;
}

/** Value of a bfloat16 code (0..65535). */
export function bf16ToF32(bits: number): number {
  floatBits[0] = bits << 16;
  return floatValue[0]!;
}

/** Nearest bfloat16 code of a float32, ties to even. A NaN becomes a quiet NaN of the same sign. */
export function f32ToBf16(value: number): number {
  floatValue[0] = value;
  const bits = floatBits[0]!;
  // Rounding could carry a NaN's mantissa into infinity, so NaN is cut instead, with its quiet bit set.
  if ((bits & 0x7fffffff) > 0x7f800000) return (bits >>> 16) | 0x40;
  return (bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16;
}

/** Value of the little-endian binary16 at a byte offset. */
export function readF16(bytes: Uint8Array, offset: number): number {
  halfBits[0] = bytes[offset]! | (bytes[offset + 1]! << 8);
  return halfValue[0]!;
}

/** Writes the nearest binary16, little-endian, at a byte offset. */
export function writeF16(bytes: Uint8Array, offset: number, value: number): void {
  writeU16(bytes, offset, f32ToF16(value));
}

/** Writes 16 bits, little-endian, at a byte offset. */
export function writeU16(bytes: Uint8Array, offset: number, bits: number): void {
  bytes[offset] = bits & 0xff;
  bytes[offset + 1] = (bits >>> 8) & 0xff;
}

/** Value of the little-endian binary32 at a byte offset. */
export function readF32(bytes: Uint8Array, offset: number): number {
  floatBits[0] = bytes[offset]! | (bytes[offset + 1]! << 8) | (bytes[offset + 2]! << 16) |
    (bytes[offset + 3]! << 24);
  return floatValue[0]!;
}

/** Writes a binary32, little-endian, at a byte offset. */
export function writeF32(bytes: Uint8Array, offset: number, value: number): void {
  floatValue[0] = value;
  const bits = floatBits[0]!;
  bytes[offset] = bits & 0xff;
  bytes[offset + 1] = (bits >>> 8) & 0xff;
  bytes[offset + 2] = (bits >>> 16) & 0xff;
  bytes[offset + 3] = bits >>> 24;
}
