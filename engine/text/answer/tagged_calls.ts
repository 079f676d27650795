// Calls whose name and values are not written as one JSON object: a name in front of JSON, and parameters
// between tags (Qwen3-Coder, GLM). What is given out is JSON in every case; it only ever grows while the
// body does, so that it can be streamed.

import { firstValue } from "./json_calls.ts";
import type { BodyReader, ToolShape } from "./tool_call.ts";

/**
 * A name in front of JSON arguments.
 *
 * @param head Matches what stands before the arguments; its group `name` is the tool.
 */
export function nameThenJson(head: RegExp): BodyReader {
  return (body) => {
    const found = head.exec(body);
    if (!found) return [];
    return [{
      name: found.groups!.name!.trim(),
      argumentsText: firstValue(body.slice(found.index + found[0].length)),
    }];
  };
}

/** How parameters are written: the tool's name by the group `name`, a parameter by `key` and `value`. */
export interface ParameterTags {
  readonly head: RegExp;
  readonly parameter: RegExp;
}

/** Parameters between tags. Values are texts, or JSON where the tool's schema asks for no text. */
export function taggedParameters({ head, parameter }: ParameterTags): BodyReader {
  return (body, { tools, isWhole }) => {
    const name = head.exec(body)?.groups?.name?.trim();
    if (name === undefined) return [];
    const members = [...body.matchAll(parameter)].map(({ groups }) => {
      const { key = "", value = "" } = groups!;
      const isText = typesOf(tools, { name, key }).includes("string");
      return `${JSON.stringify(key)}: ${isText ? JSON.stringify(value) : jsonOf(value)}`;
    });
    return [{ name, argumentsText: `{${members.join(", ")}${isWhole ? "}" : ""}` }];
  };
}

function typesOf(
  tools: readonly ToolShape[],
  { name, key }: { readonly name: string; readonly key: string },
): readonly unknown[] {
  const { parameters } = tools.find((tool) => tool.name === name) ?? {};
  const { properties } = (parameters ?? {}) as { properties?: Record<string, { type?: unknown }> };
  return [properties?.[key]?.type].flat();
}

function jsonOf(value: string): string {
  try {
    return JSON.stringify(JSON.parse(value));
  } catch {
    // Python's words for what JSON writes in small letters.
    const words: Readonly<Record<string, string>> = { True: "true", False: "false", None: "null" };
    return words[value.trim()] ?? JSON.stringify(value);
  }
}
