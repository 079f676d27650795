// Tools as callers give them, brought into one form. A schema is JSON Schema, or what libraries of schemas
// call Standard Schema (zod, valibot, arktype), from which come a JSON Schema, a check and a type.

import { TroodonError, UnsupportedError } from "../../errors.ts";
import type { Grammar } from "../../text/grammar/grammar.ts";
import { withClosedObjects } from "../../text/grammar/schema/closed_objects.ts";
import { compileSchema } from "../../text/grammar/schema/compile.ts";
import type { SchemaValue } from "../schema_value.ts";
import { problemOf } from "./schema_check.ts";

/**
 * What a handler is told besides its arguments.
 * @category Text
 */
export interface ToolContext {
  /** Fires when the answer is no longer wanted. */
  readonly signal: AbortSignal;
  /** Id of the call. */
  readonly id: string;
}

/** What is used of a schema that follows Standard Schema (https://standardschema.dev). */
interface StandardSchema {
  readonly "~standard": {
    readonly vendor: string;
    readonly validate: (value: unknown) => unknown;
    readonly jsonSchema?: {
      readonly input: (options: { readonly target: string }) => Record<string, unknown>;
    };
  };
}

/**
 * What a handler gets for a schema: its value's type where TypeScript can tell it, else any object.
 * @category Text
 */
export type ToolArguments<Schema> = unknown extends SchemaValue<Schema> ? AnyArguments
  : SchemaValue<Schema>;

/**
 * Arguments of which TypeScript knows nothing.
 * @category Text
 */
// deno-lint-ignore no-explicit-any
export type AnyArguments = any;

/**
 * A tool that the model may call.
 * @category Text
 */
// deno-lint-ignore no-explicit-any
export interface Tool<Schema = any> {
  /** By which the model calls it: letters, digits, `_` and `-`. */
  readonly name: string;
  /** What it is for, in words to the model. */
  readonly description?: string;
  /** JSON Schema of its arguments, or a schema of zod and the like. Default: any object. */
  readonly schema?: Schema;
  /**
   * Does it. What it gives goes to the model, as it is where it is a text, else as JSON. Without a handler
   * calls are the caller's: the answer ends with them.
   */
  handler?(args: ToolArguments<Schema>, context: ToolContext): unknown;
  /**
   * Whether the model can write only what the schema allows. Default true. With false arguments are checked when
   * they are written, which is what a schema with keywords needs that no grammar can say.
   */
  readonly strict?: boolean;
}

/**
 * A tool in the form of OpenAI's API; calls of it are the caller's.
 * @category Text
 */
export interface FunctionTool {
  /** The one kind that there is. */
  readonly type: "function";
  /** As {@linkcode Tool}. */
  readonly function: {
    readonly name: string;
    readonly description?: string;
    readonly parameters?: Readonly<Record<string, unknown>>;
    /** See {@linkcode Tool.strict}. */
    readonly strict?: boolean | null;
  };
}

/** A tool, complete. */
export interface ReadyTool {
  readonly name: string;
  /** JSON Schema of the arguments. */
  readonly parameters: Readonly<Record<string, unknown>>;
  /** As templates want it. */
  readonly definition: FunctionTool;
  /** Arguments as the handler gets them, or what is wrong with them. */
  check(args: unknown): Promise<{ readonly value: unknown } | { readonly problem: string }>;
  readonly handler: ((args: never, context: ToolContext) => unknown) | undefined;
  /** What the arguments may be while they are written; undefined: anything. */
  readonly grammar: Grammar | undefined;
}

const NAME = /^[\w-]{1,64}$/;

/**
 * Ties a handler's argument to its schema's type where TypeScript cannot see that by itself, in a list that is
 * made elsewhere, say.
 *
 * @example
 * ```ts
 * import { tool } from "@troodon/troodon";
 * import { assertEquals } from "@std/assert";
 *
 * const weather = tool({
 *   name: "weather",
 *   schema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
 *   handler: ({ city }) => `Sunny in ${city}`,
 * });
 * assertEquals(weather.name, "weather");
 * ```
 * @category Text
 */
export function tool<const Schema>(definition: Tool<Schema>): Tool<Schema> {
  return definition;
}

/**
 * Checks tools and brings them into one form.
 *
 * @throws {TypeError} If one has no name that a model can write, or a schema that gives no JSON Schema.
 * @throws {RangeError} If two have one name.
 */
export function readyTools(tools: readonly unknown[]): ReadyTool[] {
  const ready = tools.map((given, index) => readyTool(given, index));
  const names = ready.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) < index);
  if (twice !== undefined) {
    throw new RangeError(`Cannot use two tools with the name "${twice}": names tell calls apart`);
  }
  return ready;
}

function readyTool(given: unknown, index: number): ReadyTool {
  const { type, function: inner } = (given ?? {}) as Partial<FunctionTool>;
  const { name, description, schema, handler, strict } = type === "function" && inner
    ? { ...inner, schema: inner.parameters, handler: undefined }
    : (given ?? {}) as Tool;
  if (typeof name !== "string" || !NAME.test(name)) {
    throw new TypeError(
      `Cannot use tool ${index}: its name must be 1 to 64 letters, digits, _ or -; got ${
        JSON.stringify(name)
      }`,
    );
  }
  if (handler !== undefined && typeof handler !== "function") {
    throw new TypeError(`Cannot use tool "${name}": its handler must be a function`);
  }
  const parameters = parametersOf(schema, name);
  const fields = { name, ...description !== undefined && { description }, parameters };
  return {
    name,
    parameters,
    definition: { type: "function", function: fields },
    check: isStandard(schema)
      ? async (args) => outcomeOf(await schema["~standard"].validate(args))
      : (args) => {
        const problem = problemOf(args, parameters);
        return Promise.resolve(problem === undefined ? { value: args } : { problem });
      },
    handler: handler as ReadyTool["handler"],
    grammar: strict === false ? undefined : grammarOf(parameters, name),
  };
}

function grammarOf(parameters: unknown, name: string): Grammar {
  try {
    return compileSchema(parameters);
  } catch (error) {
    if (!(error instanceof TroodonError)) throw error;
    throw new UnsupportedError(
      `no call of tool "${name}" can be held to its schema: ${error.message}`,
      {
        remedy:
          "Change the schema, or give the tool strict: false, so that arguments are only checked",
        cause: error,
      },
    );
  }
}

function isStandard(schema: unknown): schema is StandardSchema {
  // Schemas of some libraries are functions.
  const isThing = typeof schema === "object" && schema !== null || typeof schema === "function";
  return isThing && "~standard" in (schema as object);
}

function parametersOf(schema: unknown, name: string): Readonly<Record<string, unknown>> {
  if (schema === undefined || schema === null) return { type: "object", properties: {} };
  if (isStandard(schema)) {
    const { jsonSchema, vendor } = schema["~standard"];
    if (jsonSchema) return withClosedObjects(jsonSchema.input({ target: "draft-2020-12" }));
    throw new TypeError(
      `Cannot use the schema of tool "${name}": this version of ${vendor} gives no JSON Schema ` +
        "(~standard.jsonSchema); give a JSON Schema instead",
    );
  }
  if (typeof schema === "object" && !Array.isArray(schema)) {
    return schema as Record<string, unknown>;
  }
  throw new TypeError(`Cannot use the schema of tool "${name}": it must be an object`);
}

// Standard Schema: `issues` where there are some, else `value`.
function outcomeOf(result: unknown): { readonly value: unknown } | { readonly problem: string } {
  const { value, issues } = result as {
    readonly value?: unknown;
    readonly issues?: readonly {
      readonly message: string;
      readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[];
    }[];
  };
  if (!issues) return { value };
  const problem = issues.map(({ message, path = [] }) => {
    const keys = path.map((part) => String(typeof part === "object" ? part.key : part));
    return `${["arguments", ...keys].join(".")}: ${message}`;
  }).join("; ");
  return { problem };
}
