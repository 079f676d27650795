// Messages in the form that a template reads. Callers give contents as texts or lists of parts, and arguments of
// calls as objects or JSON texts (OpenAI's API); a template knows one of each.

import { UnsupportedError } from "../errors.ts";
import {
  argumentsForm,
  showsPictures,
  takesOneCall,
  wantsParts,
} from "../text/answer/template_facts.ts";
import type { ChatMessage, ChatTemplate, ContentPart } from "../text/chat_template.ts";
import { pictureOf, type PictureSource } from "./pictures/picture_source.ts";
import type { Runtime } from "./runtime.ts";

/** Stands for a picture in texts of templates that know no pictures. */
export const PICTURE_MARK = "\u{f0001}picture\u{f0001}";

/**
 * What turns messages into a template's form; asks the template once.
 *
 * @param options `hasCalls`: whether there are calls, or may be; `placeholder`: what a template writes for a picture, if
 * there are some.
 */
export function messageForm(
  template: ChatTemplate,
  { hasCalls, placeholder }: {
    readonly hasCalls: boolean;
    readonly placeholder?: string | undefined;
  },
): (messages: readonly ChatMessage[]) => ChatMessage[] {
  const takesParts = wantsParts(template);
  const form = hasCalls ? argumentsForm(template) : "object";
  const takesTexts = form === "text";
  const takesOne = hasCalls && takesOneCall(template, form);
  const takesPictures = placeholder !== undefined && showsPictures(template, placeholder);

  function formCall(call: { readonly function?: { readonly arguments?: unknown } }): unknown {
    const args = call?.function?.arguments;
    if (args === undefined || (typeof args === "string") === takesTexts) return call;
    const formed = takesTexts ? JSON.stringify(args) : parsed(args as string);
    return { ...call, function: { ...call.function, arguments: formed } };
  }

  const formMessage = (message: ChatMessage): ChatMessage => {
    const { content, tool_calls } = message;
    const keepsParts = takesPictures && picturesOf([message]).length > 0;
    const text = keepsParts
      ? (content as readonly ContentPart[]).map(formPart)
      : Array.isArray(content)
      ? content.map((part) => pictureOf(part) !== undefined ? PICTURE_MARK : part.text ?? "").join(
        "",
      )
      : content;
    const formed = takesParts && typeof text === "string" ? [{ type: "text", text }] : text;
    return {
      ...message,
      ...formed !== undefined && { content: formed },
      ...Array.isArray(tool_calls) && { tool_calls: tool_calls.map(formCall) },
    };
  };
  return (messages) => (takesOne ? callByCall(messages) : messages).map(formMessage);
}

/** Templates ask for the type of a picture alone. */
function formPart(part: ContentPart): ContentPart {
  return pictureOf(part) === undefined ? part : { type: "image" };
}

/** The pictures of messages, in their order. */
export function picturesOf(messages: readonly ChatMessage[]): PictureSource[] {
  return messages.flatMap(({ content }) =>
    Array.isArray(content) ? content.flatMap((part) => pictureOf(part) ?? []) : []
  );
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
 * Refuses what a model cannot read.
 *
 * @throws {UnsupportedError} If a content has a part that is no text, and no picture or the model sees none.
 * @throws {TypeError} If one is no content.
 */
export function checkContents(
  messages: readonly ChatMessage[],
  { name, sight }: Pick<Runtime, "name" | "sight">,
): void {
  messages.forEach(({ content }, index) => {
    if (content === undefined || content === null || typeof content === "string") return;
    if (!Array.isArray(content)) {
      throw new TypeError(
        `Cannot use message ${index}: its content must be a text or a list of parts`,
      );
    }
    const isText = (part?: ContentPart) => part?.type === "text" && typeof part.text === "string";
    const other = content.find((part) =>
      !isText(part) && !(sight && pictureOf(part) !== undefined)
    );
    if (other === undefined) return;
    const reads = sight ? "text and pictures" : "text";
    throw new UnsupportedError(
      `the model reads ${reads} only, and message ${index} has a part of type ${
        JSON.stringify(other?.type ?? null)
      }`,
      {
        file: name,
        remedy: pictureOf(other) !== undefined
          ? "Use a model that sees, with its mmproj file if it is a GGUF file, or say in words what the picture shows"
          : "Leave it out, or say in words what it shows",
      },
    );
  });
}
