// When two JSON texts are the same value, as JSON Schema's uniqueItems means it: numbers by value, objects whatever the
// order of their members.

const utf8 = new TextDecoder();

/** A text that is the same for equal values. */
export function sameValueKey(json: Uint8Array): string {
  return JSON.stringify(JSON.parse(utf8.decode(json)), sorted);
}

function sorted(_: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => a < b ? -1 : 1));
}
