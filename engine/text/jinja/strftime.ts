// Dates for `strftime_now`, which templates use to tell the model what day it is. English names, local
// time; a code that is not listed is refused rather than printed as it is.

import { fail } from "./failure.ts";

const named = (date: Date, part: Intl.DateTimeFormatOptions) => date.toLocaleString("en-US", part);
const two = (value: number) => String(value).padStart(2, "0");

function dayOfYear(date: Date): number {
  const start = Date.UTC(date.getFullYear(), 0, 1);
  const today = Date.UTC(date.getFullYear(), date.getMonth(), date.getDate());
  return Math.round((today - start) / 86_400_000) + 1;
}

const CODES: Readonly<Record<string, (date: Date) => string>> = {
  "%": () => "%",
  A: (date) => named(date, { weekday: "long" }),
  a: (date) => named(date, { weekday: "short" }),
  B: (date) => named(date, { month: "long" }),
  b: (date) => named(date, { month: "short" }),
  d: (date) => two(date.getDate()),
  F: (date) => `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`,
  H: (date) => two(date.getHours()),
  I: (date) => two(date.getHours() % 12 || 12),
  j: (date) => String(dayOfYear(date)).padStart(3, "0"),
  M: (date) => two(date.getMinutes()),
  m: (date) => two(date.getMonth() + 1),
  p: (date) => date.getHours() < 12 ? "AM" : "PM",
  S: (date) => two(date.getSeconds()),
  T: (date) => `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`,
  u: (date) => String(date.getDay() || 7),
  w: (date) => String(date.getDay()),
  Y: (date) => String(date.getFullYear()),
  y: (date) => two(date.getFullYear() % 100),
};

/** Writes a date by a format of C's strftime; `%-d` and the like drop the leading zero. */
export function formatDate(date: Date, format: string): string {
  return format.replace(/%(-?)([\s\S]?)/g, (code, dash, letter) => {
    const write = Object.hasOwn(CODES, letter) ? CODES[letter] : undefined;
    if (write === undefined) return fail(`strftime_now does not know ${code}`);
    return dash === "" ? write(date) : write(date).replace(/^0+(?=.)/, "");
  });
}
