// Contents and calls of messages: what both forms of a conversation (chat's messages, items of responses) share. Parts
// that are no text are refused with their path: models here read text.

import { ApiError, badRequest } from "./api_error.ts";
import { objectAt, wrong } from "./fields.ts";

/** Types of parts whose text counts, with the field that has it. */
const TEXT_PARTS: Readonly<Record<string, string>> = {
  text: "text",
  input_text: "text",
  output_text: "text",
  refusal: "refusal",
};

const OTHER_PARTS = ["image_url", "input_image", "input_audio", "audio", "file", "input_file"];

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
      ? `Cannot use ${path}.type: models here read text, and this is ${type}`
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
