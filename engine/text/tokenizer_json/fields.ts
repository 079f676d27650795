// Checked access to a parsed JSON document, with the path of the field in every refusal.

import { FormatError, UnsupportedError } from "../../errors.ts";
import { FLAG, LIST, OBJECT, TEXT, type ValueRule, whole } from "../../record.ts";

/** An object of a JSON document and where it stands. */
export interface JsonNode {
  readonly value: Readonly<Record<string, unknown>>;
  readonly path: string;
  /** File name, for messages. */
  readonly file: string;
}

/** Refuses a field for what it holds. */
export function refuseField(
  { path, file }: JsonNode,
  { key, message }: { readonly key: string; readonly message: string },
): never {
  throw new FormatError(message, { file, place: path === "" ? key : `${path}.${key}` });
}

/** Refuses a field for what it asks for. */
export function refuseFeature({ path, file }: JsonNode, feature: string): never {
  throw new UnsupportedError(`${feature} is not supported`, {
    file,
    place: path,
    remedy: "Use the model's GGUF file instead, whose vocabulary is read without this file",
  });
}

/** Takes a value as an object. */
export function asNode(
  value: unknown,
  { path, file }: { readonly path: string; readonly file: string },
): JsonNode {
  if (OBJECT.accepts(value)) return { value, path, file };
  throw new FormatError("must be an object", { file, place: path || "the document" });
}

function own(node: JsonNode, key: string): unknown {
  return Object.hasOwn(node.value, key) ? node.value[key] ?? undefined : undefined;
}

/** Reads a field by its rule; undefined where it is absent or null. */
type FieldReader<T> = (node: JsonNode, key: string) => T | undefined;

function fieldOf<T>({ accepts, wanted }: ValueRule<T>): FieldReader<T> {
  return (node, key) => {
    const value = own(node, key);
    if (value === undefined || accepts(value)) return value;
    return refuseField(node, { key, message: `must be ${wanted}` });
  };
}

/** A text. */
export const textField: FieldReader<string> = fieldOf(TEXT);
/** A boolean. */
export const flagField: FieldReader<boolean> = fieldOf(FLAG);
/** An integer that is not negative. */
export const countField: FieldReader<number> = fieldOf(
  whole("an integer of 0 or more", { least: 0 }),
);
const readList = fieldOf(LIST);

/** An object below a node; undefined where it is absent or null. */
export function childNode(node: JsonNode, key: string): JsonNode | undefined {
  const value = own(node, key);
  const path = node.path === "" ? key : `${node.path}.${key}`;
  return value === undefined ? undefined : asNode(value, { path, file: node.file });
}

/** A list below a node; empty where it is absent or null. */
export function listField(node: JsonNode, key: string): readonly unknown[] {
  return readList(node, key) ?? [];
}

/** Objects of a list below a node. */
export function childNodes(node: JsonNode, key: string): JsonNode[] {
  const path = node.path === "" ? key : `${node.path}.${key}`;
  return listField(node, key).map((value, i) =>
    asNode(value, { path: `${path}[${i}]`, file: node.file })
  );
}

/** A text that must be there. */
export function needText(node: JsonNode, key: string): string {
  return textField(node, key) ?? refuseField(node, { key, message: "the field is missing" });
}
