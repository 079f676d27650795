// A JSON Schema document (draft 2020-12, and what older drafts wrote differently): its schemas by identity, and what a
// $ref means where it stands. Every schema knows its path, by which it is named in errors.

import { FormatError, UnsupportedError } from "../../../errors.ts";
import { unescaped } from "../../../percent.ts";
import draft04 from "./draft_04.json" with { type: "json" };
import draft07 from "./draft_07.json" with { type: "json" };

/** A schema: an object of keywords, or true or false. */
export interface SchemaNode {
  readonly id: number;
  readonly schema: Keywords | boolean;
  /** Path as a JSON pointer: `#/properties/a`. */
  readonly path: string;
  /** Identifier of the resource that it belongs to. */
  readonly base: string;
}

/** Keywords of a schema. */
export type Keywords = Readonly<Record<string, unknown>>;

/** Schemas below a keyword: one, a list, or by name. */
const ONE = [
  ...["not", "if", "then", "else", "items", "additionalItems", "contains", "additionalProperties"],
  ...["propertyNames", "unevaluatedItems", "unevaluatedProperties", "contentSchema"],
];
const LIST = ["allOf", "anyOf", "oneOf", "prefixItems", "items"];
const BY_NAME = [
  ...["properties", "patternProperties", "dependentSchemas", "dependencies", "$defs"],
  "definitions",
];

/** Schemas of schemas, to which others refer. */
const META: Readonly<Record<string, unknown>> = {
  "http://json-schema.org/draft-04/schema": draft04,
  "http://json-schema.org/draft-07/schema": draft07,
};

/** All schemas of a document. */
export class SchemaDocument {
  /** The whole. */
  readonly root: SchemaNode;
  /** Whether it is of a draft before 2020-12, where other words meant the same. */
  readonly isOld: boolean;
  /** Whether what stands beside a $ref does not count, as up to draft 7. */
  readonly #refAlone: boolean;
  readonly #nodes = new Map<unknown, SchemaNode>();
  readonly #byUri = new Map<string, SchemaNode>();
  readonly #dynamic = new Map<string, SchemaNode[]>();
  #count = 0;

  constructor(schema: unknown) {
    const draft = isRecord(schema) ? String(schema.$schema ?? "") : "";
    if (draft !== "" && !/^https?:\/\/json-schema\.org\//.test(draft)) {
      throw new UnsupportedError(`the dialect ${draft} is not known`, { place: "#/$schema" });
    }
    this.isOld = /draft-0[3-7]|2019-09/.test(draft);
    this.#refAlone = /draft-0[3-7]/.test(draft);
    this.root = this.#read(schema, "#", "");
    this.#byUri.set("", this.root);
  }

  /** The schema at a place, which belongs to another one. */
  child(parent: SchemaNode, keyword: string, ...names: readonly (string | number)[]): SchemaNode {
    let value: unknown = (parent.schema as Keywords)[keyword];
    for (const name of names) value = (value as Record<string, unknown>)[name];
    return this.#read(value, pathOf(parent.path, keyword, ...names), parent.base);
  }

  /** A schema made of a part of another one. */
  made(schema: Keywords | boolean, { path, base }: SchemaNode): SchemaNode {
    return this.#read(schema, path, base);
  }

  /** Whether keywords beside the $ref of a schema count. */
  hasSiblings({ schema }: SchemaNode): boolean {
    return !(this.#refAlone && (schema as Keywords).$ref !== undefined);
  }

  /**
   * What a reference of a schema means.
   *
   * @throws {FormatError} If there is nothing. @throws {UnsupportedError} If it lies in another document.
   */
  resolve(node: SchemaNode, keyword: "$ref" | "$dynamicRef"): SchemaNode {
    const reference = (node.schema as Keywords)[keyword];
    const place = pathOf(node.path, keyword);
    if (typeof reference !== "string") throw new FormatError("a reference is a text", { place });
    const [uri, fragment = ""] = reference.split("#") as [string, string?];
    const base = uri === "" ? node.base : resolveUri(node.base, uri);
    if (keyword === "$dynamicRef" && (this.#dynamic.get(fragment)?.length ?? 0) > 1) {
      throw new UnsupportedError(
        `${reference} means another schema from each place that leads to it`,
        { place },
      );
    }
    const root = this.#byUri.get(base) ?? this.#meta(base);
    if (!root) throw new UnsupportedError(`${reference} lies in another document`, { place });
    const decoded = unescaped(fragment);
    if (decoded !== "" && !decoded.startsWith("/")) {
      return this.#byUri.get(`${base}#${decoded}`) ?? nothing(reference, place);
    }
    return this.#pointer(root, decoded) ?? nothing(reference, place);
  }

  #meta(uri: string): SchemaNode | undefined {
    if (!Object.hasOwn(META, uri)) return undefined;
    const node = this.#read(META[uri], `${uri}#`, uri);
    this.#byUri.set(uri, node);
    return node;
  }

  #pointer(root: SchemaNode, pointer: string): SchemaNode | undefined {
    let value: unknown = root.schema;
    let { path, base } = root;
    for (const part of pointer.split("/").slice(1)) {
      const name = part.replaceAll("~1", "/").replaceAll("~0", "~");
      if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) {
        return undefined;
      }
      value = (value as Record<string, unknown>)[name];
      path = pathOf(path, name);
      const known = this.#nodes.get(value);
      if (known) ({ path, base } = known);
    }
    return this.#read(value, path, base);
  }

  // The node of a schema; what is below it is read with it, for the identifiers that are there.
  #read(schema: unknown, path: string, outer: string): SchemaNode {
    const known = this.#nodes.get(schema);
    if (known) return known;
    if (typeof schema !== "boolean" && !isRecord(schema)) {
      throw new FormatError("a schema is an object, true or false", { place: path });
    }
    const id = this.#count++;
    if (typeof schema === "boolean") {
      const node = { id, schema, path, base: outer };
      this.#nodes.set(schema, node);
      return node;
    }
    const own = this.#refAlone && schema.$ref !== undefined ? undefined : schema.$id ?? schema.id;
    const base = typeof own === "string" && this.#isIdentifier(own, schema)
      ? resolveUri(outer, own.replace(/#$/, ""))
      : outer;
    const node: SchemaNode = { id, schema, path, base };
    this.#nodes.set(schema, node);
    if (base !== outer) this.#byUri.set(base, node);
    for (const keyword of ["$anchor", "$dynamicAnchor"]) {
      const anchor = schema[keyword];
      if (typeof anchor !== "string") continue;
      this.#byUri.set(`${base}#${anchor}`, node);
      if (keyword === "$dynamicAnchor") {
        this.#dynamic.set(anchor, [...this.#dynamic.get(anchor) ?? [], node]);
      }
    }
    this.#readBelow(schema, path, base);
    return node;
  }

  // `id` of old drafts; a property of that name is a schema, not a text.
  #isIdentifier(own: string, schema: Keywords): boolean {
    return !own.startsWith("#") && (schema.$id !== undefined || this.isOld);
  }

  #readBelow(schema: Keywords, path: string, base: string): void {
    for (const keyword of ONE) {
      const value = schema[keyword];
      if (isRecord(value)) this.#read(value, pathOf(path, keyword), base);
    }
    for (const keyword of LIST) {
      const value = schema[keyword];
      if (!Array.isArray(value)) continue;
      for (const [i, one] of value.entries()) {
        if (isRecord(one)) this.#read(one, pathOf(path, keyword, i), base);
      }
    }
    for (const keyword of BY_NAME) {
      const value = schema[keyword];
      if (!isRecord(value)) continue;
      for (const [name, one] of Object.entries(value)) {
        if (isRecord(one)) this.#read(one, pathOf(path, keyword, name), base);
      }
    }
  }
}

function nothing(reference: string, place: string): never {
  throw new FormatError(`${reference} refers to nothing`, { place });
}

/** Whether a value is an object of JSON. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A path further down. */
export function pathOf(path: string, ...names: readonly (string | number)[]): string {
  const parts = names.map((name) => `/${String(name).replaceAll("~", "~0").replaceAll("/", "~1")}`);
  return path + parts.join("");
}

/** Stands for the place of a document that has none. */
const NOWHERE = "nowhere://document/";

function resolveUri(base: string, uri: string): string {
  if (/^urn:/i.test(uri)) return uri;
  const resolved = URL.parse(uri, base === "" || /^urn:/i.test(base) ? NOWHERE : base);
  return resolved ? resolved.href.replace(/#$/, "").replace(NOWHERE, NOWHERE) : uri;
}
