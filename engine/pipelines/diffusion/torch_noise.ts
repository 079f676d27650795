// Noise as PyTorch draws it on a CPU (aten/src/ATen/native/cpu/DistributionTemplates.h): the same generator, the same
// use of its bits, the same map to a normal distribution (Box and Muller, 1958), so that a seed gives the picture that it
// gives there. Values differ from PyTorch's in their last bits, by its vectors' logarithms and sines.

import { createRandomState, type RandomState } from "../../ops/mersenne_twister.ts";

/**
 * Draws tensors one after another.
 * @category Pictures from texts
 */
export interface TorchNoise {
  /** What `torch.randn(shape, generator=g)` gives next, float32. */
  randn(length: number): Float32Array;
}

const BLOCK = 16, HALF = BLOCK / 2;

/**
 * A generator as `torch.Generator("cpu").manual_seed(seed)`.
 *
 * @param seed An integer of 0 or more; as in PyTorch its low 32 bits count.
 * @throws {RangeError} If it is none.
 *
 * @example
 * ```ts
 * import { torchNoise } from "@troodon/troodon";
 * import { assertEquals } from "@std/assert";
 *
 * const noise = torchNoise(0).randn(3); // torch.randn(3, generator=torch.Generator().manual_seed(0))
 * assertEquals([...noise].map((x) => x.toFixed(4)), ["1.5410", "-0.2934", "-2.1788"]);
 * ```
 * @category Pictures from texts
 */
export function torchNoise(seed: number): TorchNoise {
  if (!Number.isSafeInteger(seed) || seed < 0) {
    throw new RangeError(`seed must be a whole number of 0 or more, not ${seed}`);
  }
  const random = createRandomState(seed % 2 ** 32);
  let spare: number | undefined;
  // Short tensors are drawn number by number in float64, two at a time: the second one is kept, also for later tensors.
  const next = (): number => {
    if (spare !== undefined) {
      const kept = spare;
      spare = undefined;
      return kept;
    }
    const turn = 2 * Math.PI * uniform64(random);
    const radius = Math.sqrt(-2 * Math.log1p(-uniform64(random)));
    spare = radius * Math.sin(turn);
    return radius * Math.cos(turn);
  };
  return {
    randn(length) {
      const values = new Float32Array(length);
      if (length < BLOCK) return values.map(next);
      for (let i = 0; i < length; i++) values[i] = uniform32(random);
      for (let at = 0; at + BLOCK <= length; at += BLOCK) toNormal(values, at);
      if (length % BLOCK !== 0) {
        // The last sixteen are drawn anew.
        for (let i = length - BLOCK; i < length; i++) values[i] = uniform32(random);
        toNormal(values, length - BLOCK);
      }
      return values;
    },
  };
}

function uniform32(random: RandomState): number {
  return (random.bits() & 0xffffff) / 2 ** 24;
}

function uniform64(random: RandomState): number {
  const high = random.bits() & 0x1fffff;
  return (high * 2 ** 32 + random.bits()) / 2 ** 53;
}

function toNormal(values: Float32Array, at: number): void {
  for (let i = at; i < at + HALF; i++) {
    const radius = Math.sqrt(-2 * Math.log(1 - values[i]!)), turn = 2 * Math.PI * values[i + HALF]!;
    values[i] = radius * Math.cos(turn);
    values[i + HALF] = radius * Math.sin(turn);
  }
}
