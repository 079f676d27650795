// Values as text that is equal where they are the same, for keys of maps. JSON writes -0 as 0, infinities and NaN
// as null, and refuses bigints.

/** The text of plain data. */
export function exactText(value: unknown): string {
  return JSON.stringify(
    value,
    (_, part: unknown) => isPlain(part) ? part : { number: Object.is(part, -0) ? "-0" : `${part}` },
  );
}

function isPlain(value: unknown): boolean {
  if (typeof value === "number") return Number.isFinite(value) && !Object.is(value, -0);
  return typeof value !== "bigint";
}
