// The one source of randomness in decoding: the 48-bit linear congruential generator of Java's
// java.util.Random (Knuth, TAOCP vol. 2, 3.2.1.1), as the Inferflow suite uses it, so that a seed gives
// the same tokens there, here, and on every machine. The state is data, so that it can be saved and
// put back. The 48 bits lie in two 24-bit halves, which keeps every product exact in a double.

/**
 * State of the generator: two halves of 24 bits.
 * @category Sampling
 */
export interface RandomState {
  /** Upper 24 bits. */
  high: number;
  /** Lower 24 bits. */
  low: number;
}

// 0x5DEECE66D, the multiplier, in halves.
const MULTIPLIER_HIGH = 0x5de;
const MULTIPLIER_LOW = 0xece66d;
const INCREMENT = 0xb;
const HALF = 2 ** 24;

/**
 * State for a seed.
 *
 * @param seed A safe integer; taken modulo 2^48.
 * @throws {RangeError} If the seed is not a safe integer.
 */
export function createRandom(seed: number): RandomState {
  if (!Number.isSafeInteger(seed)) {
    throw new RangeError(`Cannot seed with ${seed}: a seed is a safe integer`);
  }
  const bits = BigInt.asUintN(48, BigInt(seed) ^ 0x5DEECE66Dn);
  return { high: Number(bits >> 24n), low: Number(bits & 0xffffffn) };
}

/** Advances the state and returns its upper `count` bits (1..32) as an unsigned number. */
export function nextBits(state: RandomState, count: number): number {
  const low = state.low * MULTIPLIER_LOW + INCREMENT;
  const carry = Math.floor(low / HALF);
  const high = state.high * MULTIPLIER_LOW + state.low * MULTIPLIER_HIGH + carry;
  state.low = low % HALF;
  state.high = high % HALF;
  if (count <= 24) return state.high >>> (24 - count);
  return state.high * 2 ** (count - 24) + (state.low >>> (48 - count));
}

/** A double in [0, 1) with 53 random bits (26 and 27). */
export function nextDouble(state: RandomState): number {
  return (nextBits(state, 26) * 2 ** 27 + nextBits(state, 27)) / 2 ** 53;
}
