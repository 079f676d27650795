// The one place that decides which module runs. A tiny module that uses the relaxed dot product is
// validated; then its results on operands with bit 7 set are looked at, because the specification leaves
// them to the implementation: the second operand may be read as unsigned and exact (AVX-VNNI), with
// saturated sums of two products (pmaddubsw) or as signed (ARM). Kernels ask for capabilities, never for
// a processor.

/** The two builds of wasm/assembly. */
export type SimdVariant = "baseline" | "relaxed";

/** What the processor does under WASM. */
export interface WasmCapabilities {
  readonly simd: SimdVariant;
  /** The relaxed dot takes its second operand as unsigned 8 bit and never saturates. */
  readonly dotI8U8Exact: boolean;
  /** The relaxed dot takes its second operand as signed 8 bit and never saturates. */
  readonly dotI8I8Exact: boolean;
  /** It is an x86 with AVX2, of whose 256 bits V8 can make use (assembly/machine/joining.ts). */
  readonly hasWideVectors: boolean;
}

// (func (export "dot") (param $a i32) (param $b i32) (result i32)): lane 0 of the relaxed dot of two
// splats, accumulated onto zero; (func (export "madd") (param f32 f32 f32) (result f32)): lane 0 of the relaxed
// multiply-add of three splats. Operands are parameters so that nothing is folded while compiling.
const PROBE_MODULE: Uint8Array<ArrayBuffer> = new Uint8Array([
  ...[0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00],
  ...[0x01, 0x0e, 0x02, 0x60, 0x02, 0x7f, 0x7f, 0x01, 0x7f],
  ...[0x60, 0x03, 0x7d, 0x7d, 0x7d, 0x01, 0x7d],
  ...[0x03, 0x03, 0x02, 0x00, 0x01],
  ...[0x07, 0x0e, 0x02, 0x03, 0x64, 0x6f, 0x74, 0x00, 0x00],
  ...[0x04, 0x6d, 0x61, 0x64, 0x64, 0x00, 0x01],
  ...[0x0a, 0x2b, 0x02, 0x14, 0x00],
  ...[0x20, 0x00, 0xfd, 0x0f, 0x20, 0x01, 0xfd, 0x0f, 0x41, 0x00, 0xfd, 0x11],
  ...[0xfd, 0x93, 0x02, 0xfd, 0x1b, 0x00, 0x0b],
  ...[0x14, 0x00, 0x20, 0x00, 0xfd, 0x13, 0x20, 0x01, 0xfd, 0x13, 0x20, 0x02, 0xfd, 0x13],
  ...[0xfd, 0x85, 0x02, 0xfd, 0x1f, 0x00, 0x0b],
]);

const EDGES: readonly number[] = [-128, -127, -1, 0, 1, 127];

/**
 * Probes this engine.
 *
 * @param force Pretend that only this variant exists (tests, diagnosis).
 * @throws {RangeError} If `relaxed` is forced where the engine does not have it.
 */
export function probeCapabilities(force?: SimdVariant): WasmCapabilities {
  const relaxed = WebAssembly.validate(PROBE_MODULE);
  if (force === "relaxed" && !relaxed) {
    throw new RangeError('Cannot use variant "relaxed": this engine has no relaxed SIMD');
  }
  if (!relaxed || force === "baseline") {
    return { simd: "baseline", dotI8U8Exact: false, dotI8I8Exact: false, hasWideVectors: false };
  }
  const instance = new WebAssembly.Instance(new WebAssembly.Module(PROBE_MODULE));
  const dot = instance.exports.dot as (a: number, b: number) => number;
  const madd = instance.exports.madd as (a: number, b: number, c: number) => number;
  const exact = (codes: readonly number[]) =>
    EDGES.every((a) => codes.every((b) => dot(a, b & 255) === 4 * a * b));
  return {
    simd: "relaxed",
    dotI8U8Exact: exact([0, 1, 127, 128, 129, 255]),
    dotI8I8Exact: exact([-128, -127, -1, 0, 1, 127]),
    // No other processor than x86 takes the second operand of a dot as unsigned. Of two roundings nothing would be left; those
    // that have one instruction for both have AVX2 as well.
    hasWideVectors: dot(-1, 255) !== 4 &&
      madd(1 + 2 ** -12, 1 + 2 ** -12, -1 - 2 ** -11) === 2 ** -24,
  };
}
