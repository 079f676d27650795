// Activation functions by name, in float64, for the ops that apply one.

/** Names that `activation` and `glu` take. */
export const ACTIVATION_NAMES = ["silu", "gelu_tanh", "gelu", "relu", "sigmoid"] as const;

/** One of `ACTIVATION_NAMES`. */
export type ActivationName = typeof ACTIVATION_NAMES[number];

/** The definitions. `gelu` is the exact one, `gelu_tanh` the approximation most models train with. */
export const activations: Readonly<Record<ActivationName, (x: number) => number>> = {
  silu: (x) => x / (1 + Math.exp(-x)),
  // (1 + tanh u) / 2 is the sigmoid of 2u, which keeps the digits of what is nearly 0.
  gelu_tanh: (x) => x / (1 + Math.exp(-2 * Math.sqrt(2 / Math.PI) * (x + 0.044715 * x * x * x))),
  gelu: (x) => 0.5 * x * (1 + erf(x / Math.SQRT2)),
  relu: (x) => Math.max(0, x),
  sigmoid: (x) => 1 / (1 + Math.exp(-x)),
};

/** The error function: Taylor series near 0, continued fraction of erfc beyond; about 1e-13. */
export function erf(x: number): number {
  const size = Math.abs(x);
  const value = size < 2.5 ? erfSeries(size) : 1 - erfcFraction(size);
  return x < 0 ? -value : value;
}

function erfSeries(x: number): number {
  let power = x, sum = x;
  for (let n = 1; n < 60; n++) {
    power *= -x * x / n;
    sum += power / (2 * n + 1);
  }
  return 2 / Math.sqrt(Math.PI) * sum;
}

function erfcFraction(x: number): number {
  let tail = 0;
  for (let n = 80; n > 0; n--) tail = n / 2 / (x + tail);
  return Math.exp(-x * x) / (Math.sqrt(Math.PI) * (x + tail));
}
