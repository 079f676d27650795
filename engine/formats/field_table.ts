// The fields of a JSON file beside a model, as data: what is read, what must have a value that is built, what changes
// nothing here and why. A file may ask for anything, and what is not in its table may do so too; it is told, never
// passed over. Tests feed every row.

import { UnsupportedError } from "../errors.ts";
import type { MetadataValue } from "./source.ts";

/** What becomes of a field. */
export type FieldUse =
  /** It is read. */
  | "read"
  /** Only these values are built, beside null and what is empty; others are refused by name. */
  | { readonly only: readonly (string | number | boolean)[] }
  /** It changes no result here, because … */
  | { readonly harmless: string }
  /** It would change results elsewhere and does not here, which is told where it asks for something. */
  | { readonly idle: string };

/** Uses by name; a name with `*` stands for all that fit. */
export type FieldTable = Readonly<Record<string, FieldUse>>;

type Json = { readonly [key: string]: MetadataValue };

/**
 * Holds a file's fields against a table.
 *
 * @returns One sentence for each field that asks for something that is not done.
 * @throws {UnsupportedError} If a field has a value that is not built.
 */
export function checkFields(
  json: Json,
  table: FieldTable,
  at: { readonly file: string; readonly place: string },
): string[] {
  const told: string[] = [];
  for (const [key, value] of Object.entries(json)) {
    if (isEmpty(value)) continue;
    const use = useOf(table, key);
    if (use === undefined) told.push(`${at.place}: ${key} is not understood and has no effect`);
    else if (use !== "read" && "only" in use) refuseOthers(value, use.only, { ...at, key });
    else if (use !== "read" && "idle" in use && asks(value)) {
      told.push(`${at.place}: ${key} has no effect: ${use.idle}`);
    }
  }
  return told;
}

/** What becomes of a field; undefined for one that is in no row. */
export function useOf(table: FieldTable, key: string): FieldUse | undefined {
  if (Object.hasOwn(table, key)) return table[key];
  const row = Object.entries(table).find(([name]) =>
    name.includes("*") && patternOf(name).test(key)
  );
  return row?.[1];
}

/** `*` stands for any part of a key. */
export function patternOf(text: string): RegExp {
  const parts = text.split("*").map((part) => part.replace(/[.+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${parts.join(".*")}$`);
}

/** Whether a value says nothing at all. */
function isEmpty(value: MetadataValue): boolean {
  if (Array.isArray(value) || ArrayBuffer.isView(value)) {
    return (value as ArrayLike<unknown>).length === 0;
  }
  return value === null || value === "" ||
    (typeof value === "object" && Object.keys(value).length === 0);
}

/** Whether a value asks for something: most settings are off at false, 0 and 1. */
function asks(value: MetadataValue): boolean {
  return value !== false && value !== 0 && value !== 1;
}

function refuseOthers(
  value: MetadataValue,
  only: readonly unknown[],
  { file, place, key }: { file: string; place: string; key: string },
): void {
  if (only.includes(value)) return;
  const wanted = ["absent", ...only.map((one) => JSON.stringify(one))].join(" or ");
  const shown = typeof value === "number" ? `${value}` : JSON.stringify(value);
  throw new UnsupportedError(`is ${shown}, and only ${wanted} is built`, {
    file,
    place: `${place}, ${key}`,
  });
}

/** Rows of one use. */
export function rows(use: FieldUse, ...names: readonly string[]): FieldTable {
  return Object.fromEntries(names.map((name) => [name, use]));
}
