// Functions in float64 that JavaScript lacks.

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

/** Nearest whole number, halves to the even one; a 0 has the sign of x. */
export function roundToEven(x: number): number {
  const floor = Math.floor(x), rest = x - floor;
  const isUp = rest === 0.5 ? floor % 2 !== 0 : !(rest < 0.5);
  return (isUp ? floor + 1 : floor) || 0 * x;
}

/** log(1 + exp(x)). */
export function softplus(x: number): number {
  return Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)));
}

/** C's pow: 1 to any power is 1, also to NaN and infinity, where JavaScript says NaN. */
export function power(x: number, y: number): number {
  return x === 1 || (x === -1 && Math.abs(y) === Infinity) ? 1 : x ** y;
}

/** By squaring, modulo 2^64. A negative power of a whole number is cut to 0, but for ±1. */
export function wholePower(x: bigint, y: bigint): bigint {
  if (y < 0n) {
    if (x === 0n) throw new RangeError("Cannot raise the whole number 0 to a negative power");
    return x === 1n || x === -1n ? wholePower(x, -y) : 0n;
  }
  let result = 1n, square = x;
  for (let rest = y; rest > 0n; rest >>= 1n) {
    if (rest & 1n) result = BigInt.asIntN(64, result * square);
    square = BigInt.asIntN(64, square * square);
  }
  return result;
}

/** The remainder that has the divisor's sign; one of nothing has it too. */
export function floorMod(x: number, y: number): number {
  const rest = x % y;
  if (rest === 0) return y < 0 ? -0 : 0;
  return (rest < 0) !== (y < 0) ? rest + y : rest;
}

/** The same of whole numbers. */
export function wholeMod(x: bigint, y: bigint): bigint {
  const rest = x % divisor(y);
  return rest !== 0n && (rest < 0n) !== (y < 0n) ? rest + y : rest;
}

/** A divisor of whole numbers, checked. */
export function divisor<T extends number | bigint>(y: T): T {
  if (y === 0 || y === 0n) throw new RangeError("Cannot divide whole numbers by 0");
  return y;
}
