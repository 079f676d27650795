// e^x for x <= 0, about twice as fast as Math.exp, which V8 calls out of line: over a vocabulary of
// 262,144 tokens the normaliser of a softmax is this function and little else. x is split into
// k ln2 / 64 + r; 2^(k/64) comes from two tables, e^r from five terms of its series (|r| < 0.0055, so
// the sixth is below 4e-17). The relative error is below 1e-15.

const STEPS = 64;
const STEPS_PER_UNIT = STEPS / Math.LN2;
// ln2 / 64 in two parts; the upper one has 32 bits, so that its product with any k is exact.
const STEP_HIGH = Math.floor(Math.LN2 / STEPS * 2 ** 38) / 2 ** 38;
const STEP_LOW = 2.319046813846299616e-17 / STEPS + (Math.LN2 / STEPS - STEP_HIGH);

const FRACTIONS: Float64Array = Float64Array.from({ length: STEPS }, (_, i) => 2 ** (i / STEPS));
const POWERS: Float64Array = Float64Array.from({ length: 1080 }, (_, i) => 2 ** -i);

/** e^x for x <= 0, -Infinity included; NaN stays NaN. */
export function expNegative(x: number): number {
  if (x < -745) return 0;
  const k = (x * STEPS_PER_UNIT - 0.5) | 0;
  const r = x - k * STEP_HIGH - k * STEP_LOW;
  const series = 1 + r * (1 + r * (1 / 2 + r * (1 / 6 + r * (1 / 24 + r / 120))));
  return POWERS[-(k >> 6)]! * (FRACTIONS[k & 63]! * series);
}
