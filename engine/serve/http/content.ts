// Contents and calls of messages: what both forms of a conversation (chat's messages, items of responses) share. Pictures
// come as data: URLs alone, since a server that fetches what strangers name reaches where they cannot; other parts that are
// no text are refused with their path. Whether a model sees is for the engine to say.

import type { ChatMessage, ContentPart } from "../../text/chat_template.ts";
import { ApiError, badRequest } from "./api_error.ts";
import { objectAt, wrong } from "./fields.ts";

/** Types of parts whose text counts, with the field that has it. */
const TEXT_PARTS: Readonly<Record<string, string>> = {
  text: "text",
  input_text: "text",
  output_text: "text",
  refusal: "refusal",
};

/** Types of parts that are pictures: OpenAI's of a chat and of responses. */
const PICTURE_PARTS = ["image_url", "input_image"];
const OTHER_PARTS = [...PICTURE_PARTS, "input_audio", "audio", "file", "input_file"];

/** A content as the engine takes it: one text, or parts where there are pictures. */
export function messageContent(
  content: unknown,
  path: string,
): NonNullable<ChatMessage["content"]> {
  const hasPictures = Array.isArray(content) &&
    content.some((part) => PICTURE_PARTS.includes(part?.type));
  if (!hasPictures) return contentText(content, path);
  return content.map((part, i): ContentPart => {
    const at = `${path}[${i}]`;
    return PICTURE_PARTS.includes(part?.type)
      ? { type: "image", image: pictureAddress(part.image_url, `${at}.image_url`) }
      : { type: "text", text: partText(part, at) };
  });
}

function pictureAddress(value: unknown, path: string): string {
  const address = typeof value === "string"
    ? value
    : (value as { readonly url?: unknown } | undefined)?.url;
  if (typeof address !== "string") throw wrong(path, { wanted: "an address", value: address });
  if (/^data:/i.test(address)) return address;
  throw badRequest(
    `Cannot use ${path}: it must be a data: URL with the picture in base64, since nothing is fetched here`,
    path,
  );
}

/** A content as one text; its parts follow each other. */
export function contentText(content: unknown, path: string): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) {
    throw wrong(path, { wanted: "a text or a list of parts", value: content });
  }
  return content.map((part, i) => partText(part, `${path}[${i}]`)).join("");
}

function partText(value: unknown, path: string): string {
  const part = objectAt(value, path);
  const { type } = part;
  const key = typeof type === "string" && Object.hasOwn(TEXT_PARTS, type)
    ? TEXT_PARTS[type]
    : undefined;
  if (key !== undefined) {
    const text = part[key];
    if (typeof text !== "string") throw wrong(`${path}.${key}`, { wanted: "a text", value: text });
    return text;
  }
  if (typeof type !== "string") throw wrong(`${path}.type`, { wanted: "a text", value: type });
  const known = OTHER_PARTS.includes(type);
  throw new ApiError(
    400,
    known
      ? `Cannot use ${path}.type: models here read text${
        PICTURE_PARTS.includes(type) ? " in this place" : " and pictures"
      }, and this is ${type}`
      : `Cannot use ${path}.type: it must be one of text, refusal`,
    { param: `${path}.type`, code: known ? "unsupported_content" : "invalid_value" },
  );
}

/** Names that tools may have. */
const NAME = /^[\w-]{1,64}$/;

/** A tool's name, which templates and grammars will hold. */
export function toolName(value: unknown, path: string): string {
  if (typeof value === "string" && NAME.test(value)) return value;
  throw badRequest(`Cannot use ${path}: it must be 1 to 64 letters, digits, _ or -`, path);
}

/** Text of a call's arguments. */
export function argumentsText(value: unknown, path: string): string {
  if (typeof value === "string") return value;
  if (typeof value === "object" && value !== null) return JSON.stringify(value);
  throw wrong(path, { wanted: "a text of JSON", value });
}
