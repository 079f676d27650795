// Numbers in Python's formats: fixed, scientific and general notation, from the exact digits of the double, ties to
// even. JavaScript's toFixed and toExponential round ties up.

/** A positive number as digits and where the point stands: 0.digits times 10^point. */
interface Decimal {
  readonly digits: string;
  readonly point: number;
}

function exactDecimal(value: number): Decimal {
  const bits = new DataView(new ArrayBuffer(8));
  bits.setFloat64(0, value);
  const biased = bits.getUint16(0) >> 4 & 0x7ff;
  const fraction = bits.getBigUint64(0) & (1n << 52n) - 1n;
  const mantissa = biased === 0 ? fraction : fraction | 1n << 52n;
  const exponent = Math.max(1, biased) - 1075;
  const whole = exponent >= 0 ? mantissa << BigInt(exponent) : mantissa * 5n ** BigInt(-exponent);
  const digits = whole.toString();
  return { digits, point: digits.length + Math.min(0, exponent) };
}

/** Keeps so many digits; none or fewer leave nothing or one. */
function keepDigits({ digits, point }: Decimal, count: number): Decimal {
  if (count < 0) return { digits: "", point };
  if (count >= digits.length) return { digits: digits.padEnd(count, "0"), point };
  const rest = digits.slice(count);
  const isOdd = count > 0 && Number(digits[count - 1]) % 2 === 1;
  const isTie = /^50*$/.test(rest);
  const kept = digits.slice(0, count);
  if (rest[0] < "5" || (isTie && !isOdd)) return { digits: kept, point };
  const up = (BigInt(kept || "0") + 1n).toString().padStart(count, "0");
  return up.length > count ? { digits: up, point: point + 1 } : { digits: up, point };
}

/** `%.{places}f` of a number of 0 or more. */
export function fixedText(value: number, places: number): string {
  const exact = value === 0 ? { digits: "", point: 0 } : exactDecimal(value);
  const { digits } = keepDigits(exact, exact.point + places);
  const text = (digits || "0").padStart(places + 1, "0");
  const cut = text.length - places;
  return places > 0 ? `${text.slice(0, cut)}.${text.slice(cut)}` : text;
}

function withExponent(digits: string, exponent: number): string {
  const sign = exponent < 0 ? "-" : "+";
  const head = digits.length > 1 ? `${digits[0]}.${digits.slice(1)}` : digits;
  return `${head}e${sign}${String(Math.abs(exponent)).padStart(2, "0")}`;
}

/** `%.{places}e` of a number of 0 or more. */
export function scientificText(value: number, places: number): string {
  if (value === 0) return withExponent("0".repeat(places + 1), 0);
  const { digits, point } = keepDigits(exactDecimal(value), places + 1);
  return withExponent(digits.slice(0, places + 1), point - 1);
}

/** `%.{precision}g` of a number of 0 or more; `keepsZeros` leaves what the format cuts off. */
export function generalText(
  value: number,
  { precision, keepsZeros }: { readonly precision: number; readonly keepsZeros: boolean },
): string {
  const count = Math.max(1, precision);
  const exponent = value === 0 ? 0 : keepDigits(exactDecimal(value), count).point - 1;
  const isPlain = exponent >= -4 && exponent < count;
  const text = isPlain ? fixedText(value, count - 1 - exponent) : scientificText(value, count - 1);
  if (keepsZeros) return text.includes(".") ? text : text.replace(/(?=e)|$/, ".");
  return dropZeros(text);
}

/** Takes the zeros at the end of a fraction off. */
export function dropZeros(text: string): string {
  const [mantissa, power = ""] = text.split(/(?=e)/);
  return (mantissa.includes(".") ? mantissa.replace(/\.?0+$/, "") : mantissa) + power;
}

/** Python's `round` of a float: to the nearest decimal, from the exact value. */
export function roundTo(value: number, places: number): number {
  if (!Number.isFinite(value) || value === 0) return value;
  const size = Math.abs(value);
  const exact = exactDecimal(size);
  const { digits, point } = keepDigits(exact, exact.point + places);
  const rounded = digits === "" ? 0 : Number(`0.${digits}e${point}`);
  return value < 0 ? -rounded : rounded;
}

/** Puts a separator between groups of digits. */
export function groupDigits(
  digits: string,
  { separator, size }: { readonly separator: string; readonly size: number },
): string {
  if (separator === "") return digits;
  return digits.replace(new RegExp(`\\B(?=(?:[0-9a-fA-F]{${size}})+$)`, "g"), separator);
}
