// Texts as numbers, by the rules of Python's `int` and `float`.

import { strip } from "./text_methods.ts";

const PREFIXES: Readonly<Record<number, RegExp>> = { 2: /^0b_?/i, 8: /^0o_?/i, 16: /^0x_?/i };
const FLOAT =
  /^[+-]?(?:\d+(?:_\d+)*(?:\.(?:\d+(?:_\d+)*)?)?|\.\d+(?:_\d+)*)(?:e[+-]?\d+(?:_\d+)*)?$/i;

/** `int(text, base)`; undefined where Python refuses the text. */
export function parseIntegerText(text: string, base: number): number | undefined {
  const bare = plainDigits(strip(text, { set: null, left: true, right: true }));
  const sign = /^[+-]/.test(bare) ? bare[0] : "";
  let digits = bare.slice(sign.length);
  let radix = base;
  if (base === 0) {
    radix = Number(Object.keys(PREFIXES).find((key) => PREFIXES[Number(key)].test(digits)) ?? 10);
    if (radix === 10 && /^0[0_]*[1-9]/.test(digits)) return undefined;
  }
  digits = digits.replace(PREFIXES[radix] ?? /^(?!)/, "");
  if (!/^[0-9a-z]+(?:_[0-9a-z]+)*$/i.test(digits)) return undefined;
  const plain = digits.replaceAll("_", "").toLowerCase();
  if ([...plain].some((digit) => parseInt(digit, 36) >= radix)) return undefined;
  return (sign === "-" ? -1 : 1) * parseInt(plain, radix);
}

/** `float(text)`; undefined where Python refuses the text. */
export function parseFloatText(text: string): number | undefined {
  const bare = plainDigits(strip(text, { set: null, left: true, right: true }));
  if (FLOAT.test(bare)) return Number(bare.replaceAll("_", ""));
  const word = /^([+-]?)(inf|infinity|nan)$/i.exec(bare);
  if (word === null) return undefined;
  if (word[2].toLowerCase() === "nan") return NaN;
  return word[1] === "-" ? -Infinity : Infinity;
}

/** With 0 to 9 for the digits of every script; a script has ten in a row, and runs of digits consist of such tens. */
function plainDigits(text: string): string {
  return text.replace(/[^\0-\x7f]/gu, (char) => {
    const code = char.codePointAt(0)!;
    let before = code;
    while (/\p{Nd}/u.test(String.fromCodePoint(before))) before--;
    return before === code ? char : String((code - before - 1) % 10);
  });
}
