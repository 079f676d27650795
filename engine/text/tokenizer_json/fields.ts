// Checked access to a parsed JSON document, with the path of the field in every refusal.

import { FormatError, UnsupportedError } from "../../errors.ts";

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
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new FormatError("must be an object", { file, place: path || "the document" });
  }
  return { value: value as Record<string, unknown>, path, file };
}

function own(node: JsonNode, key: string): unknown {
  return Object.hasOwn(node.value, key) ? node.value[key] ?? undefined : undefined;
}

/** An object below a node; undefined where it is absent or null. */
export function childNode(node: JsonNode, key: string): JsonNode | undefined {
  const value = own(node, key);
  const path = node.path === "" ? key : `${node.path}.${key}`;
  return value === undefined ? undefined : asNode(value, { path, file: node.file });
}

/** A list below a node; empty where it is absent or null. */
export function listField(node: JsonNode, key: string): readonly unknown[] {
  const value = own(node, key) ?? [];
  return Array.isArray(value) ? value : refuseField(node, { key, message: "must be a list" });
}

/** Objects of a list below a node. */
export function childNodes(node: JsonNode, key: string): JsonNode[] {
  const path = node.path === "" ? key : `${node.path}.${key}`;
  return listField(node, key).map((value, i) =>
    asNode(value, { path: `${path}[${i}]`, file: node.file })
  );
}

/** A text; undefined where it is absent or null. */
export function textField(node: JsonNode, key: string): string | undefined {
  const value = own(node, key);
  if (value === undefined || typeof value === "string") return value;
  return refuseField(node, { key, message: "must be a string" });
}

/** A boolean; undefined where it is absent or null. */
export function flagField(node: JsonNode, key: string): boolean | undefined {
  const value = own(node, key);
  if (value === undefined || typeof value === "boolean") return value;
  return refuseField(node, { key, message: "must be true or false" });
}

/** An integer that is not negative; undefined where it is absent or null. */
export function countField(node: JsonNode, key: string): number | undefined {
  const value = own(node, key);
  if (value === undefined || (Number.isSafeInteger(value) && (value as number) >= 0)) {
    return value as number | undefined;
  }
  return refuseField(node, { key, message: "must be an integer of 0 or more" });
}

/** A text that must be there. */
export function needText(node: JsonNode, key: string): string {
  return textField(node, key) ?? refuseField(node, { key, message: "the field is missing" });
}
