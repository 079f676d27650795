// chat(): an answer to a conversation, written as the model's own template wants it. What stands in
// messages never becomes a control token; the template's own are the only ones, and there is one beginning
// token (text/chat_template.ts sees to both).

import { UnsupportedError } from "../errors.ts";
import type { Model } from "./model.ts";
import { type ChatMessage, type ChatTemplate, encodeChat } from "../text/chat_template.ts";
import type { GenerateOptions } from "./generate_options.ts";
import type { Generation } from "./generation.ts";
import { coreOf, startGeneration } from "./generate.ts";
import type { Runtime } from "./runtime.ts";
import type { Session } from "./session.ts";

/** Options of {@linkcode chat}. */
export interface ChatOptions extends GenerateOptions {
  /** Tools as the template wants them, usually OpenAI's function format. */
  readonly tools?: readonly unknown[];
  /** More names for the template (`enable_thinking`, …). */
  readonly templateOptions?: Readonly<Record<string, unknown>>;
}

/**
 * Answers a conversation.
 *
 * On a session the conversation so far is found again in its cache: only what is new is computed, so a
 * dialogue costs its new messages each turn. On a model a session is borrowed for the time of the call.
 *
 * @param target A model, or a session of one.
 * @param messages The whole conversation, oldest first.
 * @throws {UnsupportedError} If the model has no chat template.
 * @throws {FormatError} If the template refuses the messages; the message is the template's own.
 * @throws {RangeError | TypeError} On a bad option. @throws {ResourceError} As `generate`.
 *
 * @example
 * ```ts
 * import { chat, load } from "@troodon/troodon";
 * import { assertEquals } from "@std/assert";
 *
 * using model = await load("tests/fixtures/models/llama_formats/llama.Q8_0.gguf", {
 *   chatTemplate: "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}",
 * });
 * using session = model.createSession();
 * const messages = [{ role: "user", content: "Hi" }];
 * const { ids } = await chat(session, messages, { maxTokens: 3 }).result;
 * assertEquals(ids.length, 3);
 * ```
 */
export function chat(
  target: Model | Session,
  messages: readonly ChatMessage[],
  options: ChatOptions = {},
): Generation {
  const { tools, templateOptions, ...rest } = options;
  const { runtime } = coreOf(target);
  const template = templateOf(runtime);
  const encode = (conversation: readonly ChatMessage[]) =>
    encodeChat(runtime.tokenizer(), template, conversation, {
      special: options.special ?? false,
      addGenerationPrompt: true,
      ...tools && { tools },
      ...templateOptions && { extra: templateOptions },
    });
  const tokens = encode(messages);
  const isKept = options.onContextFull === "slide" && options.keep === undefined;
  const keep = isKept ? systemLength(tokens, messages, encode) : 0;
  return startGeneration(target, { tokens, keep, continues: false }, rest);
}

function templateOf({ chatTemplate, name }: Runtime): ChatTemplate {
  if (chatTemplate) return chatTemplate;
  throw new UnsupportedError("the model has no chat template", {
    file: name,
    remedy: "Use generate(), or load it with a chatTemplate",
  });
}

// Where the first message that is not the system's begins: the tokens that do not depend on it. Templates
// put their own system text in when there is none, so their output is asked, not the messages.
function systemLength(
  tokens: readonly number[],
  messages: readonly ChatMessage[],
  encode: (messages: readonly ChatMessage[]) => number[],
): number {
  const first = messages.findIndex(({ role }) => role !== "system");
  if (first < 0) return tokens.length;
  const text = String(messages[first]!.content ?? "");
  const changed = [...messages];
  changed[first] = { ...messages[first]!, content: text.startsWith("0") ? "1" : "0" };
  const other = encode(changed);
  let length = 0;
  while (length < tokens.length && tokens[length] === other[length]) length++;
  return length;
}
