// Values as text that is equal where they are the same, for keys of maps. JSON writes -0 as 0, infinities and NaN
// as null, and refuses bigints.

/** The text of plain data. */
export function exactText(value: unknown): string {
  // A replacer makes JSON slow, and is seldom needed.
  return isPlain(value) ? JSON.stringify(value) : JSON.stringify(value, (_, part) => exact(part));
}

function exact(part: unknown): unknown {
  if (typeof part === "object" || isPlain(part)) return part;
  return { number: Object.is(part, -0) ? "-0" : `${part}` };
}

function isPlain(value: unknown): boolean {
  if (typeof value === "number") return Number.isFinite(value) && !Object.is(value, -0);
  if (typeof value !== "object" || value === null) return typeof value !== "bigint";
  return Array.isArray(value) ? value.every(isPlain) : Object.values(value).every(isPlain);
}
