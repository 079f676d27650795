// Tools, the choice among them, and what binds an answer's form, of chat's notation and of the responses', as options of
// the engine.

import type { FunctionTool } from "../../decode/tools/tool.ts";
import type { ToolChoice } from "../../decode/tools/round_constraint.ts";
import { badRequest } from "./api_error.ts";
import { toolName } from "./content.ts";
import { objectAt, wrong } from "./fields.ts";

/** Most tools of a request, as in OpenAI's API. */
const MOST_TOOLS = 128;

/**
 * Checks tools. `nested` ones have their fields in `function`, as chat's; the responses' have them beside `type`. What
 * the engine says of one is found again by `names`.
 *
 * @throws {ApiError} 400 with the path of what is wrong.
 */
export function readTools(
  list: readonly unknown[],
  { nested, names }: { readonly nested: boolean; readonly names: Map<string, string> },
): FunctionTool[] {
  if (list.length > MOST_TOOLS) {
    throw badRequest(
      `Cannot use tools: there are ${list.length}, more than ${MOST_TOOLS}`,
      "tools",
    );
  }
  const tools = list.map((value, i) => readTool(value, { at: `tools[${i}]`, nested }));
  const called = tools.map((tool) => tool.function.name);
  const twice = called.findIndex((name, i) => called.indexOf(name) < i);
  const path = (index: number) => `tools[${index}]${nested ? ".function" : ""}`;
  called.forEach((name, i) => names.set(`tool ${name}`, `${path(i)}.parameters`));
  if (twice < 0) return tools;
  const at = `${path(twice)}.name`;
  throw badRequest(`Cannot use ${at}: another tool is called ${called[twice]}, too`, at);
}

function readTool(
  value: unknown,
  { at, nested }: { readonly at: string; readonly nested: boolean },
): FunctionTool {
  const tool = objectAt(value, at);
  if (tool.type !== "function") {
    throw badRequest(`Cannot use ${at}.type: it must be function`, `${at}.type`);
  }
  const path = nested ? `${at}.function` : at;
  const { name, description, parameters, strict } = nested ? objectAt(tool.function, path) : tool;
  if (!isAbsent(description) && typeof description !== "string") {
    throw wrong(`${path}.description`, { wanted: "a text", value: description });
  }
  if (!isAbsent(strict) && typeof strict !== "boolean") {
    throw wrong(`${path}.strict`, { wanted: "true or false", value: strict });
  }
  return {
    type: "function",
    function: {
      name: toolName(name, `${path}.name`),
      ...!isAbsent(description) && { description },
      ...!isAbsent(parameters) && { parameters: objectAt(parameters, `${path}.parameters`) },
      ...!isAbsent(strict) && { strict },
    },
  };
}

function isAbsent(value: unknown): value is null | undefined {
  return value === undefined || value === null;
}

/** Tools of which the model may call some, and whether it has to. */
export interface ToolOptions {
  readonly tools?: readonly FunctionTool[];
  readonly toolChoice?: ToolChoice;
}

/**
 * What `tool_choice` says, in either notation; `allowed_tools` leaves the others out.
 *
 * @throws {ApiError} 400 with the path of what is wrong.
 */
export function chooseTools(tools: readonly FunctionTool[], choice: unknown): ToolOptions {
  const isSome = tools.length > 0;
  if (isAbsent(choice)) return isSome ? { tools } : {};
  if (choice === "auto" || choice === "none") {
    return isSome ? { tools, toolChoice: choice } : {};
  }
  if (!isSome) throw badRequest("Cannot use tool_choice: there are no tools", "tool_choice");
  if (choice === "required") return { tools, toolChoice: "required" };
  if (typeof choice === "string") {
    throw badRequest(
      "Cannot use tool_choice: it must be one of auto, none, required, or an object",
      "tool_choice",
    );
  }
  const { type, allowed_tools: nested, ...rest } = objectAt(choice, "tool_choice");
  if (type === "allowed_tools") {
    return chooseAllowed(
      tools,
      nested === undefined ? rest : objectAt(nested, "tool_choice.allowed_tools"),
    );
  }
  if (type !== "function") {
    throw badRequest("Cannot use tool_choice.type: it must be function", "tool_choice.type");
  }
  return { tools, toolChoice: { name: nameIn(rest, { tools, at: "tool_choice" }) } };
}

function chooseAllowed(
  tools: readonly FunctionTool[],
  { mode = "auto", tools: allowed }: Readonly<Record<string, unknown>>,
): ToolOptions {
  if (mode !== "auto" && mode !== "required" || !Array.isArray(allowed)) {
    throw badRequest("Cannot use tool_choice: allowed_tools have mode and tools", "tool_choice");
  }
  const names = allowed.map((one, i) => {
    const at = `tool_choice.tools[${i}]`;
    return nameIn(objectAt(one, at), { tools, at });
  });
  const left = tools.filter((tool) => names.includes(tool.function.name));
  return left.length === 0 ? {} : { tools: left, toolChoice: mode };
}

function nameIn(
  choice: Readonly<Record<string, unknown>>,
  { tools, at }: { readonly tools: readonly FunctionTool[]; readonly at: string },
): string {
  const isNested = choice.function !== undefined;
  const name = isNested ? objectAt(choice.function, `${at}.function`).name : choice.name;
  const path = `${at}${isNested ? ".function" : ""}.name`;
  const known = tools.map((tool) => tool.function.name);
  if (typeof name === "string" && known.includes(name)) return name;
  throw badRequest(`Cannot use ${path}: tools are ${known.join(", ")}`, path);
}

/** Schema of an answer, and the field that has it. */
export interface FormatSchema {
  readonly schema: unknown;
  readonly path: string;
}

/**
 * What `response_format`, or `text.format`, says; undefined where the answer is free text.
 *
 * @throws {ApiError} 400 with the path of what is wrong.
 */
export function readFormat(format: unknown, at: string): FormatSchema | undefined {
  if (isAbsent(format)) return undefined;
  const { type, json_schema: nested, ...flat } = objectAt(format, at);
  if (type === "text") return undefined;
  if (type === "json_object") return { schema: { type: "object" }, path: at };
  if (type !== "json_schema") {
    throw badRequest(
      `Cannot use ${at}.type: it must be one of text, json_object, json_schema`,
      `${at}.type`,
    );
  }
  // Some leave the level between out, as `text.format` has none; who gives neither is told of OpenAI's.
  const isFlat = nested === undefined && (flat.schema !== undefined || at === "text.format");
  const path = isFlat ? at : `${at}.json_schema`;
  const { schema } = isFlat ? flat : objectAt(nested, path);
  if (typeof schema === "boolean") return { schema, path: `${path}.schema` };
  return { schema: objectAt(schema, `${path}.schema`), path: `${path}.schema` };
}
