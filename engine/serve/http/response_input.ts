// The input of /v1/responses as messages: items of a conversation, where calls and their results stand beside what was
// said instead of in it.

import type { ChatMessage } from "../../text/chat_template.ts";
import { badRequest } from "./api_error.ts";
import { argumentsText, contentText, messageContent, toolName } from "./content.ts";
import { objectAt, wrong } from "./fields.ts";

type Item = Readonly<Record<string, unknown>>;

const ROLES: Readonly<Record<string, string>> = {
  system: "system",
  developer: "system",
  user: "user",
  assistant: "assistant",
};

/**
 * The conversation, with `instructions` in front.
 *
 * @throws {ApiError} 400 with the path of what is wrong.
 */
export function readInput(input: unknown, instructions = ""): ChatMessage[] {
  const front = instructions === "" ? [] : [{ role: "system", content: instructions }];
  if (typeof input === "string") return [...front, { role: "user", content: input }];
  const items = input as readonly unknown[];
  if (items.length === 0) throw badRequest("Cannot use input: it is empty", "input");
  const messages: ChatMessage[] = [];
  items.forEach((value, i) => addItem(messages, objectAt(value, `input[${i}]`), `input[${i}]`));
  return [...front, ...messages];
}

function addItem(messages: ChatMessage[], item: Item, at: string): void {
  const { type = "message" } = item;
  if (type === "message") messages.push(readMessage(item, at));
  else if (type === "function_call") addCall(messages, readCall(item, at));
  else if (type === "function_call_output") {
    const id = item.call_id;
    if (typeof id !== "string") throw wrong(`${at}.call_id`, { wanted: "a text", value: id });
    const content = contentText(item.output, `${at}.output`);
    messages.push({ role: "tool", tool_call_id: id, content });
  } else if (type !== "reasoning") { // what was thought is not told again
    throw badRequest(
      `Cannot use ${at}.type: it must be one of message, function_call, function_call_output, reasoning`,
      `${at}.type`,
    );
  }
}

function readMessage({ role: given, content }: Item, at: string): ChatMessage {
  const role = typeof given === "string" && Object.hasOwn(ROLES, given) ? ROLES[given]! : undefined;
  if (role === undefined) {
    throw badRequest(
      `Cannot use ${at}.role: it must be one of ${Object.keys(ROLES).join(", ")}`,
      `${at}.role`,
    );
  }
  const read = role === "user" ? messageContent : contentText;
  return { role, content: read(content, `${at}.content`) };
}

function readCall({ call_id: id, name, arguments: args }: Item, at: string): unknown {
  if (typeof id !== "string") throw wrong(`${at}.call_id`, { wanted: "a text", value: id });
  const called = {
    name: toolName(name, `${at}.name`),
    arguments: argumentsText(args, `${at}.arguments`),
  };
  return { id, type: "function", function: called };
}

/** Calls that follow each other, or what was said in front of them, are one message. */
function addCall(messages: ChatMessage[], call: unknown): void {
  const last = messages.at(-1);
  if (last?.role !== "assistant") {
    messages.push({ role: "assistant", content: "", tool_calls: [call] });
    return;
  }
  const before = last.tool_calls as readonly unknown[] | undefined;
  messages[messages.length - 1] = { ...last, tool_calls: [...before ?? [], call] };
}
