// Answers within a schema or grammar: what the options mean, and the value of a whole answer. Schemas are plain JSON
// Schema, or objects of a library that can say its own (Standard JSON Schema, standardschema.dev; zod 4), which then
// also checks and changes the value.

import { FormatError, ResourceError, UnsupportedError } from "../errors.ts";
import { compileGbnf } from "../text/grammar/gbnf.ts";
import { compileRegex, type Grammar } from "../text/grammar/grammar.ts";
import { compileSchema } from "../text/grammar/schema/compile.ts";
import { withClosedObjects } from "../text/grammar/schema/closed_objects.ts";

/**
 * Options that bind an answer; at most one of them.
 * @category Text
 */
export interface StructureOptions {
  /**
   * The answer is JSON that this JSON Schema (draft 2020-12) allows: a plain object, or one of a library with the
   * Standard JSON Schema interface, such as zod 4. TypeBox's are plain objects.
   */
  readonly schema?: unknown;
  /** The answer is a text of this grammar: GBNF, whose first rule is `root`, or one that was made here. */
  readonly grammar?: string | Grammar | undefined;
  /** The answer is a text that this regular expression matches as a whole. */
  readonly regex?: string | RegExp | undefined;
}

/** What binds an answer. */
export interface Structure {
  readonly grammar: Grammar;
  /** Gives the value of an answer: undefined where there is no schema, an error where it is not whole. */
  getterOf(answer: AnswerEnd): Promise<() => unknown>;
}

/** How an answer ended. */
export interface AnswerEnd {
  readonly text: string;
  readonly isWhole: boolean;
  readonly stats: { readonly decodeTokens: number };
}

/** Grammar, and what a whole text means. */
interface Meaning {
  readonly grammar: Grammar;
  /** @throws {FormatError} If the schema's library refuses it. */
  valueOf(text: string): unknown;
}

/** What Standard JSON Schema asks for; libraries have more. */
interface StandardSchema {
  readonly "~standard": {
    readonly vendor: string;
    readonly jsonSchema?: {
      input(options: { readonly target: string }): Readonly<Record<string, unknown>>;
    };
    readonly validate?: (value: unknown) => StandardResult | Promise<StandardResult>;
  };
}

type StandardResult =
  | { readonly value: unknown; readonly issues?: undefined }
  | {
    readonly issues: readonly { readonly message: string; readonly path?: readonly unknown[] }[];
  };

/**
 * Compiles what binds an answer; undefined if nothing does.
 *
 * @throws {RangeError} If more than one option is given. @throws {TypeError} If one is of the wrong kind.
 * @throws {FormatError | UnsupportedError} If it is not well-formed, allows nothing, or is not supported; with the path.
 */
export function resolveStructure(
  { schema, grammar, regex }: StructureOptions,
): Structure | undefined {
  const given = Object.entries({ schema, grammar, regex }).filter(([, value]) =>
    value !== undefined
  );
  if (given.length > 1) {
    throw new RangeError(`Cannot use ${given.map(([name]) => name).join(" and ")}: give one`);
  }
  if (schema !== undefined) return structureOf(ofSchema(schema));
  const bound = grammar !== undefined
    ? grammarOf(grammar)
    : regex !== undefined
    ? compileRegex(sourceOf(regex))
    : undefined;
  return bound && structureOf({ grammar: bound, valueOf: () => undefined });
}

function grammarOf(grammar: string | Grammar): Grammar {
  if (typeof grammar === "string") return compileGbnf(grammar);
  if (typeof grammar === "object" && grammar !== null && "root" in grammar) return grammar;
  throw new TypeError("Cannot use grammar: it is a text in GBNF");
}

function sourceOf(regex: string | RegExp): string {
  if (typeof regex === "string") return regex;
  if (!(regex instanceof RegExp)) throw new TypeError("Cannot use regex: it is a text or a RegExp");
  const flags = regex.flags.replace(/[dguvy]/g, "");
  if (flags === "") return regex.source;
  throw new UnsupportedError(`the flags ${flags} of a regular expression are not supported`);
}

function ofSchema(schema: unknown): Meaning {
  const standard = standardOf(schema);
  if (!standard) return { grammar: compileSchema(schema), valueOf: (text) => JSON.parse(text) };
  const { vendor, jsonSchema, validate } = standard;
  if (!jsonSchema) {
    throw new UnsupportedError(`the schema of ${vendor} cannot say itself in JSON Schema`, {
      remedy: "Give what the library's own function makes of it, such as z.toJSONSchema(schema)",
    });
  }
  const grammar = compileSchema(
    withClosedObjects(jsonSchema.input({ target: "draft-2020-12" })),
  );
  return {
    grammar,
    async valueOf(text) {
      const value = JSON.parse(text);
      const result: StandardResult = await validate?.(value) ?? { value };
      if (!result.issues) return result.value;
      const { message, path = [] } = result.issues[0]!;
      throw new FormatError(`the schema of ${vendor} refuses the answer: ${message}`, {
        place: path.map((part) => String((part as { key?: unknown })?.key ?? part)).join("."),
      });
    },
  };
}

function standardOf(schema: unknown): StandardSchema["~standard"] | undefined {
  const isHolder = typeof schema === "object" && schema !== null || typeof schema === "function";
  if (!isHolder || !("~standard" in schema)) return undefined;
  return (schema as StandardSchema)["~standard"];
}

function structureOf({ grammar, valueOf }: Meaning): Structure {
  return {
    grammar,
    async getterOf({ text, isWhole, stats }) {
      try {
        if (!isWhole) throw cutError(stats.decodeTokens);
        const value = await valueOf(text);
        return () => value;
      } catch (error) {
        return () => {
          throw error;
        };
      }
    },
  };
}

function cutError(length: number): ResourceError {
  return new ResourceError(`the answer ended after ${length} tokens, before it was whole`, {
    remedy: "Raise maxTokens, bound texts, lists and names in the schema (maxLength, maxItems, " +
      "additionalProperties: false), and give no stop texts that can be part of it",
  });
}
