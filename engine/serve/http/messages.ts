// Messages of a chat as the engine's templates take them. `developer` is `system`, as OpenAI means it; contents are texts,
// or parts where a user shows pictures.

import { FLAG, OBJECT, TEXT, valueRule } from "../../record.ts";
import type { ChatMessage } from "../../text/chat_template.ts";
import { badRequest } from "./api_error.ts";
import { argumentsText, contentText, messageContent, toolName } from "./content.ts";
import {
  field,
  ignored,
  objectAt,
  readFields,
  type ReadOptions,
  refused,
  wrong,
} from "./fields.ts";

const LIST = valueRule<readonly unknown[]>("a list", Array.isArray);
const CONTENT = valueRule<unknown>(
  "a text or a list of parts",
  (value) => typeof value === "string" || Array.isArray(value),
);

const MESSAGE_FIELDS = {
  role: field(TEXT),
  content: field(CONTENT),
  name: field(TEXT),
  tool_calls: field(LIST),
  tool_call_id: field(TEXT),
  reasoning_content: field(TEXT),
  refusal: field(TEXT),
  prefix: field(FLAG),
  ...ignored(["annotations", "id", "status", "created", "reasoning", "cache_control"]),
  function_call: refused("give tool_calls instead"),
  audio: refused("models here read text and pictures"),
} as const;

const CALL_FIELDS = {
  id: field(TEXT),
  type: field(TEXT),
  function: field(OBJECT),
  ...ignored(["index"]),
} as const;

const ROLES: Readonly<Record<string, string>> = {
  system: "system",
  developer: "system",
  user: "user",
  assistant: "assistant",
  tool: "tool",
};

/**
 * Checks messages.
 *
 * @throws {ApiError} 400 with the path of what is wrong.
 */
export function readMessages(
  list: readonly unknown[],
  { at = "messages", unknown }: ReadOptions = {},
): ChatMessage[] {
  if (list.length === 0) throw badRequest(`Cannot use ${at}: there must be at least one`, at);
  return list.map((value, i) =>
    readMessage(value, { at: `${at}[${i}]`, ...unknown && { unknown } })
  );
}

function readMessage(
  value: unknown,
  { at = "", unknown }: ReadOptions,
): ChatMessage {
  const { values } = readFields(objectAt(value, at), MESSAGE_FIELDS, {
    at: `${at}.`,
    ...unknown && { unknown },
  });
  const { role: given, content, tool_calls: calls, name, reasoning_content } = values;
  const role = given !== undefined && Object.hasOwn(ROLES, given) ? ROLES[given]! : undefined;
  if (role === undefined) {
    throw badRequest(
      `Cannot use ${at}.role: it must be one of ${Object.keys(ROLES).join(", ")}`,
      `${at}.role`,
    );
  }
  const isAnswer = role === "assistant";
  if (content === undefined && !(isAnswer && (calls || values.refusal !== undefined))) {
    throw wrong(`${at}.content`, { wanted: "a text or a list of parts", value: content });
  }
  if (calls && !isAnswer) {
    throw badRequest(`Cannot use ${at}.tool_calls: role is ${role}`, `${at}.tool_calls`);
  }
  if (role === "tool" && values.tool_call_id === undefined) {
    throw wrong(`${at}.tool_call_id`, { wanted: "a text", value: undefined });
  }
  return {
    role,
    content: content === undefined
      ? values.refusal ?? ""
      : (role === "user" ? messageContent : contentText)(content, `${at}.content`),
    ...name !== undefined && { name },
    ...reasoning_content !== undefined && isAnswer && { reasoning_content },
    ...values.tool_call_id !== undefined && { tool_call_id: values.tool_call_id },
    ...calls && calls.length > 0 && {
      tool_calls: calls.map((call, i) => readCall(call, `${at}.tool_calls[${i}]`)),
    },
  };
}

function readCall(value: unknown, at: string): unknown {
  const { values: { id, type = "function", function: called } } = readFields(
    objectAt(value, at),
    CALL_FIELDS,
    { at: `${at}.` },
  );
  if (type !== "function") {
    throw badRequest(`Cannot use ${at}.type: it must be function`, `${at}.type`);
  }
  const { name, arguments: args = "{}" } = objectAt(called, `${at}.function`);
  return {
    ...id !== undefined && { id },
    type,
    function: {
      name: toolName(name, `${at}.function.name`),
      arguments: argumentsText(args, `${at}.function.arguments`),
    },
  };
}
