// MT19937 with the seeding and the draws of NumPy's RandomState: the generator in which the conformance
// suite of ONNX and most published test data were made, so that a seed means the same numbers here.
// Source: Matsumoto and Nishimura, "Mersenne Twister", 1998; NumPy's legacy distributions.

const SIZE = 624, MIDDLE = 397;

/** Draws one number after another. */
export interface RandomState {
  /** 32 random bits. */
  bits(): number;
  /** In 0..1, the 1 left out, with 53 random bits. */
  uniform(): number;
  /** Of mean 0 and deviation 1. */
  normal(): number;
}

/** A generator of a seed, an integer of 32 bits. */
export function createRandomState(seed: number): RandomState {
  const state = new Uint32Array(SIZE);
  state[0] = seed;
  for (let i = 1; i < SIZE; i++) {
    const last = state[i - 1]!;
    state[i] = Math.imul(1812433253, last ^ (last >>> 30)) + i;
  }
  let at = SIZE;
  let spare: number | undefined;

  function refill(): void {
    for (let i = 0; i < SIZE; i++) {
      const bits = (state[i]! & 0x80000000) | (state[(i + 1) % SIZE]! & 0x7fffffff);
      state[i] = state[(i + MIDDLE) % SIZE]! ^ (bits >>> 1) ^ (bits & 1 ? 0x9908b0df : 0);
    }
    at = 0;
  }

  function bits32(): number {
    if (at === SIZE) refill();
    let bits = state[at++]!;
    bits ^= bits >>> 11;
    bits ^= (bits << 7) & 0x9d2c5680;
    bits ^= (bits << 15) & 0xefc60000;
    return (bits ^ (bits >>> 18)) >>> 0;
  }

  function uniform(): number {
    const high = bits32() >>> 5, low = bits32() >>> 6;
    return (high * 2 ** 26 + low) / 2 ** 53;
  }

  // Marsaglia's polar method gives two numbers; the first is kept for the next call.
  function normal(): number {
    if (spare !== undefined) {
      const kept = spare;
      spare = undefined;
      return kept;
    }
    let x: number, y: number, square: number;
    do {
      x = 2 * uniform() - 1;
      y = 2 * uniform() - 1;
      square = x * x + y * y;
    } while (square >= 1 || square === 0);
    const factor = Math.sqrt(-2 * Math.log(square) / square);
    spare = factor * x;
    return factor * y;
  }

  return { bits: bits32, uniform, normal };
}
