// Specs that users give: the text of a file, and Inferflow's form of it, which is translated for the model at hand.

import { closing } from "../byte_source.ts";
import { FormatError } from "../errors.ts";
import type { WeightFile } from "../formats/source.ts";
import { parseStrictJson } from "../formats/strict_json.ts";
import { openFile } from "../io.ts";

/** Where specs were read from: a spec is plain data, and what is wrong with it is said of its file. */
const files = new WeakMap<object, string>();

/** What a given spec is called in errors. */
export function specName(given: unknown): string {
  return typeof given === "object" && given && files.get(given) || "the given spec";
}

/** Spec files have a few kilobytes. */
const MOST_BYTES = 1 << 20;

/**
 * Reads a spec file for `LoadOptions.spec`. Leading lines that begin with `#` are comments.
 *
 * @throws {SourceError} If it cannot be read. @throws {FormatError} If it is no JSON.
 */
export async function readSpecFile(path: string): Promise<unknown> {
  const source = openFile(path);
  using _source = closing(source);
  if (source.size > MOST_BYTES) {
    throw new FormatError(`has ${source.size} bytes, and a spec has at most ${MOST_BYTES}`, {
      file: path,
    });
  }
  const bytes = new Uint8Array(source.size);
  await source.readInto(0, bytes);
  const spec = parseSpecText(new TextDecoder().decode(bytes), path);
  if (typeof spec === "object" && spec) files.set(spec, path);
  return spec;
}

/** Parses the text of a spec file. @throws {FormatError} If it is no JSON behind its comments. */
export function parseSpecText(text: string, file: string): unknown {
  const lines = text.replace(/^\uFEFF/, "").split("\n");
  const first = lines.findIndex((line) => line.trim() !== "" && !line.trimStart().startsWith("#"));
  const json = lines.slice(first < 0 ? lines.length : first).join("\n");
  return parseStrictJson(new TextEncoder().encode(json), file);
}

/** Whether it is written in Inferflow's form. */
export function isInferflowSpec(json: unknown): boolean {
  return typeof json === "object" && json !== null && Object.hasOwn(json, "network_structure");
}

/** A spec of our form, and what was odd about the one given. */
export interface GivenSpec {
  readonly json: unknown;
  /** One sentence each. */
  readonly warnings: readonly string[];
  /** Algorithm that cuts texts, where it names one. */
  readonly tokenization: string;
}

/**
 * A given spec in our form.
 *
 * @throws {FormatError} If it is of Inferflow's form and contradicts itself or the file.
 * @throws {UnsupportedError} If it asks for what is not built.
 */
export async function ownForm(given: unknown, file: WeightFile): Promise<GivenSpec> {
  if (!isInferflowSpec(given)) return { json: given, warnings: [], tokenization: "" };
  const { translateSpec } = await import("./inferflow/translate.ts");
  return translateSpec(given, { model: file, file: specName(given) });
}
