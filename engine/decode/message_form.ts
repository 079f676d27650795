// Messages in the form that a template reads. Callers give contents as texts or lists of parts, and arguments of
// calls as objects or JSON texts (OpenAI's API); a template knows one of each.

import { UnsupportedError } from "../errors.ts";
import { argumentsForm, takesOneCall, wantsParts } from "../text/answer/template_facts.ts";
import type { ChatMessage, ChatTemplate } from "../text/chat_template.ts";

/**
 * What turns messages into a template's form; asks the template once.
 *
 * @param options `hasCalls`: whether there are calls, or may be.
 */
export function messageForm(
  template: ChatTemplate,
  { hasCalls }: { readonly hasCalls: boolean },
): (messages: readonly ChatMessage[]) => ChatMessage[] {
  const takesParts = wantsParts(template);
  const form = hasCalls ? argumentsForm(template) : "object";
  const takesTexts = form === "text";
  const takesOne = hasCalls && takesOneCall(template, form);

  function formCall(call: { readonly function?: { readonly arguments?: unknown } }): unknown {
    const args = call?.function?.arguments;
    if (args === undefined || (typeof args === "string") === takesTexts) return call;
    const formed = takesTexts ? JSON.stringify(args) : parsed(args as string);
    return { ...call, function: { ...call.function, arguments: formed } };
  }

  const formMessage = (message: ChatMessage): ChatMessage => {
    const { content, tool_calls } = message;
    const text = Array.isArray(content) ? content.map((part) => part.text ?? "").join("") : content;
    const formed = takesParts && typeof text === "string" ? [{ type: "text", text }] : text;
    return {
      ...message,
      ...formed !== undefined && { content: formed },
      ...Array.isArray(tool_calls) && { tool_calls: tool_calls.map(formCall) },
    };
  };
  return (messages) => (takesOne ? callByCall(messages) : messages).map(formMessage);
}

// Calls of one message as a message each, with its result behind it.
function callByCall(messages: readonly ChatMessage[]): ChatMessage[] {
  const moved = new Set<ChatMessage>();
  return messages.flatMap((message, index) => {
    const { tool_calls: calls } = message;
    if (moved.has(message)) return [];
    if (!Array.isArray(calls) || calls.length < 2) return [message];
    return calls.flatMap((call, at) => {
      const result = messages.find(({ role, tool_call_id }, later) =>
        later > index && role === "tool" && tool_call_id === call?.id
      );
      if (result) moved.add(result);
      const content = at === 0 ? message.content ?? "" : "";
      return [{ ...message, content, tool_calls: [call] }, ...result ? [result] : []];
    });
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/**
 * Refuses what a model of text cannot read.
 *
 * @throws {UnsupportedError} If a content has a part that is no text. @throws {TypeError} If one is no content.
 */
export function checkContents(messages: readonly ChatMessage[], name: string): void {
  messages.forEach(({ content }, index) => {
    if (content === undefined || content === null || typeof content === "string") return;
    if (!Array.isArray(content)) {
      throw new TypeError(
        `Cannot use message ${index}: its content must be a text or a list of parts`,
      );
    }
    const other = content.find((part) => part?.type !== "text" || typeof part.text !== "string");
    if (other === undefined) return;
    throw new UnsupportedError(
      `the model reads text only, and message ${index} has a part of type ${
        JSON.stringify(other?.type ?? null)
      }`,
      { file: name, remedy: "Leave it out, or say in words what it shows" },
    );
  });
}
