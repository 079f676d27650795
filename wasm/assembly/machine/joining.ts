// Whether V8 joins pairs of operations on 128 bits to AVX2's 256. It has a pass for that, which a flag of the process turns
// on: `deno run --v8-flags=--experimental-wasm-revectorize`. What it joins are operations of one kind side by side whose
// operands it can join too, down to leaves, and two loads are none, for each has its check of bounds before it. So some
// kernels have a text of their own (gen/planes.ts), to the same bits, which is slower where nothing is joined.
//
// No program can ask for a flag, but this one can be seen. Which of two NaNs a sum keeps is left open by WASM; on x86 it is the first
// one. Of the pair of sums below the second has its operands the other way round, and V8 swaps them to join it with the
// first. Its optimising compiler has to have seen the function, so at first there is work enough to call it.
import { CONTROL_JOINS } from "../generated/opcodes";

const NO: u32 = 0, YES: u32 = 1, UNKNOWN: u32 = 2;
/** What calls the compiler: half a millisecond. */
const TIMES: u32 = 65536;
/** Runs that are waited for it. */
const MOST_LOOKS: u32 = 4096;
/** Bits of the two NaNs. */
const FIRST: i32 = 0x7fc00100, SECOND: i32 = 0x7fc00200;

let looks: u32 = 0;

/** Whether this machine's kernels take that text. */
export function joins(): bool { return ASC_FEATURE_RELAXED_SIMD && load<u32>(CONTROL_JOINS) == YES; }

/** Finds out, as long as it is not known; the main thread does so before each run. */
export function lookForJoining(): void {
  if (load<u32>(CONTROL_JOINS) != UNKNOWN) return;
  if (sumOfNaNs(looks ? 1 : TIMES, 1) == (FIRST | 1)) store<u32>(CONTROL_JOINS, YES);
  else if (++looks == MOST_LOOKS) store<u32>(CONTROL_JOINS, NO);
}

/** Bits of a sum of SECOND and FIRST, with `bits` in both. */
function sumOfNaNs(times: u32, bits: i32): i32 {
  const first = i32x4.splat(FIRST), second = i32x4.splat(SECOND), one = f32x4.splat(1), zero = f32x4.splat(0);
  let last = zero, part = i16x8.splat(<i16>bits);
  do {
    const low = i32x4.extend_low_i16x8_u(part), high = i32x4.extend_high_i16x8_u(part);
    const a = f32x4.mul(v128.or(low, first), one), b = f32x4.mul(v128.or(high, first), one);
    const c = f32x4.sub(v128.or(low, second), zero), d = f32x4.sub(v128.or(high, second), zero);
    const sum = f32x4.add(a, c), turned = f32x4.add(d, b);
    last = v128.xor(turned, v128.and(last, zero));
    part = v128.xor(part, v128.and(i32x4.add(sum, turned), zero));
  } while (--times);
  return i32x4.extract_lane(last, 0);
}
