import { assertAlmostEquals, assertEquals, assertThrows } from "@std/assert";
import { torchNoise } from "./torch_noise.ts";

/** torch 2.15.0: `torch.randn(8, generator=torch.Generator().manual_seed(205))`. */
const SHORT = [
  ...[-1.373972, -1.194895, 0.1125555, 0.791656],
  ...[-0.5862316, -0.05620793, -0.5038948, -0.2625324],
];

/** Of 960 values with seed 112 the first sixteen and the last two. */
const LONG = [
  ...[0.134961, 0.431068, 0.914996, -0.371420],
  ...[0.663773, 0.688189, -0.441157, 2.844646],
  ...[-0.106062, -0.338064, 2.040693, -0.875404],
  ...[0.127782, 1.217323, 0.860325, -0.480605],
];
const LONG_END = [-0.498841, -0.801820];

function assertNear(actual: Iterable<number>, expected: readonly number[], what: string): void {
  [...actual].forEach((value, i) => assertAlmostEquals(value, expected[i]!, 2e-6, `${what} ${i}`));
}

Deno.test("short and long tensors of a seed are those of PyTorch", () => {
  assertNear(torchNoise(205).randn(8), SHORT, "of 8");
  assertNear(torchNoise(205 + 2 ** 32).randn(8), SHORT, "low 32 bits of the seed");
  const values = torchNoise(112).randn(960);
  assertNear(values.subarray(0, 16), LONG, "of 960");
  assertNear(values.subarray(-2), LONG_END, "last of 960");
});

Deno.test("short tensors go on where the one before ended, an odd number too", () => {
  const noise = torchNoise(205);
  assertNear([...noise.randn(3), ...noise.randn(4), ...noise.randn(1)], SHORT, "in parts");
});

Deno.test("of a length that is no multiple of 16 the last sixteen are drawn anew", () => {
  const whole = torchNoise(7).randn(32), part = torchNoise(7).randn(20);
  assertEquals([...part.subarray(0, 4)], [...whole.subarray(0, 4)]);
  assertEquals([...part.subarray(4)].some((value, i) => value === whole[4 + i]), false);
});

Deno.test("what is no seed is refused", () => {
  for (const seed of [-1, 0.5, NaN]) {
    assertThrows(() => torchNoise(seed), RangeError, "seed must be");
  }
});
