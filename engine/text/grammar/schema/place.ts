// Where a keyword of a schema stands, and its value as what it must be.

import { FormatError, UnsupportedError } from "../../../errors.ts";
import { isRecord, type Keywords, type SchemaDocument, type SchemaNode } from "./document.ts";

/** Where a keyword stands. */
export interface Place {
  readonly document: SchemaDocument;
  readonly node: SchemaNode;
  readonly schema: Keywords;
  readonly keyword: string;
  /** Path of the keyword. */
  readonly path: string;
  readonly value: unknown;
}

/** @throws {FormatError} Saying what a value is. */
export function wrong({ path }: Place, what: string): never {
  throw new FormatError(`is ${what}`, { place: path });
}

/** @throws {UnsupportedError} With the reason. */
export function refuse({ path }: Pick<Place, "path">, why: string): never {
  throw new UnsupportedError(why, { place: path });
}

/** The value as a finite number. */
export function asNumber(place: Place): number {
  const { value } = place;
  return typeof value === "number" && Number.isFinite(value) ? value : wrong(place, "no number");
}

/** As a whole number from 0 up. */
export function asCount(place: Place): number {
  const { value } = place;
  const isCount = Number.isInteger(value) && (value as number) >= 0;
  return isCount ? value as number : wrong(place, "no whole number from 0 up");
}

/** As a text. */
export function asText(place: Place): string {
  return typeof place.value === "string" ? place.value : wrong(place, "no text");
}

/** As true or false. */
export function asBoolean(place: Place): boolean {
  return typeof place.value === "boolean" ? place.value : wrong(place, "neither true nor false");
}

/** As a list. */
export function asList(place: Place): readonly unknown[] {
  return Array.isArray(place.value) ? place.value : wrong(place, "no list");
}

/** As a list of texts. */
export function asTexts(place: Place, value = place.value): readonly string[] {
  const isTexts = Array.isArray(value) && value.every((one) => typeof one === "string");
  return isTexts ? value : wrong(place, "no list of texts");
}

/** As names with values. */
export function asMap(place: Place): readonly [string, unknown][] {
  return isRecord(place.value) ? Object.entries(place.value) : wrong(place, "no object");
}
