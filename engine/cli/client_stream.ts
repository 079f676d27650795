// Answers of text services as they come over HTTP [IF-24, §4.10], in the two forms that services speak: Inferflow's JSON
// chunks with a blank line behind each, and the server-sent events of OpenAI's chat completions. Both end up as
// pieces of text.

import { FormatError, SourceError } from "../errors.ts";

/** A piece of an answer. */
export interface AnswerPiece {
  readonly text: string;
  /** The last piece has it: why the answer ended, as the service says it. */
  readonly end?: string;
}

/** How a service speaks. */
export type ServiceForm = "inferflow" | "openai";

/** A piece of a body is no longer than this. */
const MOST_CHARACTERS = 16 << 20;

/**
 * Pieces of a response's body.
 *
 * @throws {SourceError} If the service says that it failed, or its answer breaks off.
 * @throws {FormatError} If it is not in this form.
 */
export async function* readAnswer(
  response: Response,
  form: ServiceForm,
): AsyncGenerator<AnswerPiece, void, void> {
  const file = response.url;
  if (!response.ok) {
    const detail = errorText(await response.text());
    throw new SourceError(`answers ${response.status}${detail === "" ? "" : `: ${detail}`}`, {
      file,
    });
  }
  let isOver = false;
  for await (const block of readBlocks(response, file)) {
    const piece = form === "openai" ? openaiPiece(block, file) : inferflowPiece(block, file);
    if (!piece) continue;
    yield piece;
    isOver ||= piece.end !== undefined;
  }
  if (!isOver) throw new SourceError("the answer breaks off before its end", { file });
}

/** Parts of a body that end with a blank line; the last may end with the body. */
async function* readBlocks(response: Response, file: string): AsyncGenerator<string, void, void> {
  let rest = "";
  const stream = response.body?.pipeThrough(new TextDecoderStream()) ?? [];
  for await (const text of stream) {
    const blocks = (rest + text).replaceAll("\r\n", "\n").split("\n\n");
    rest = blocks.pop()!;
    if (rest.length > MOST_CHARACTERS) {
      throw new FormatError(`sends more than ${MOST_CHARACTERS} characters in a piece`, { file });
    }
    yield* blocks.filter((block) => block.trim() !== "");
  }
  if (rest.trim() !== "") yield rest;
}

interface InferflowChunk {
  readonly text?: unknown;
  readonly ret_code?: unknown;
  readonly error_text?: unknown;
  readonly is_end?: unknown;
}

function inferflowPiece(block: string, file: string): AnswerPiece {
  const { text, ret_code: code = "succ", error_text: detail, is_end: end } = parse(
    block,
    file,
  ) as InferflowChunk;
  if (code !== "succ" && code !== "") {
    throw new SourceError(`answers ${code}${detail ? `: ${detail}` : ""}`, { file });
  }
  if (text !== undefined && typeof text !== "string") {
    throw new FormatError("sends a text that is none", { file, place: "text" });
  }
  return { text: text ?? "", ...(end === 1 || end === true) && { end: "stop" } };
}

interface OpenaiChunk {
  readonly error?: { readonly message?: unknown } | string;
  readonly choices?: readonly {
    readonly delta?: { readonly content?: unknown };
    readonly message?: { readonly content?: unknown };
    readonly finish_reason?: unknown;
  }[];
}

function openaiPiece(block: string, file: string): AnswerPiece | undefined {
  const isEvent = /^(data|event|id|retry|):/m.test(block) && !block.trimStart().startsWith("{");
  const data = isEvent
    ? block.split("\n").filter((line) => line.startsWith("data:"))
      .map((line) => line.slice(5).trim()).join("\n")
    : block;
  if (data === "" || data === "[DONE]") return undefined;
  const chunk = parse(data, file) as OpenaiChunk;
  if (chunk.error !== undefined) {
    const { error } = chunk;
    const message = typeof error === "string" ? error : error.message;
    throw new SourceError(`answers an error: ${message ?? "without a reason"}`, { file });
  }
  const choice = chunk.choices?.[0];
  if (!choice) return undefined; // usage, behind the last one
  const content = choice.delta?.content ?? choice.message?.content ?? "";
  if (typeof content !== "string") {
    throw new FormatError("sends a text that is none", { file, place: "choices[0]" });
  }
  const { finish_reason: end } = choice;
  return { text: content, ...typeof end === "string" && { end } };
}

function parse(text: string, file: string): unknown {
  try {
    const json: unknown = JSON.parse(text);
    if (typeof json === "object" && json !== null) return json;
  } catch {
    // told below
  }
  const shown = JSON.stringify(text.length > 60 ? `${text.slice(0, 57)}...` : text);
  throw new FormatError(`sends what is no JSON object: ${shown}`, {
    file,
    remedy: "Check the address, and --form",
  });
}

function errorText(body: string): string {
  try {
    const { error, error_text: detail } = JSON.parse(body) as Record<string, unknown>;
    const message = typeof error === "object" && error !== null
      ? (error as { message?: unknown }).message
      : error ?? detail;
    if (typeof message === "string") return message;
  } catch {
    // plain text
  }
  return body.trim().replace(/\s+/g, " ").slice(0, 200);
}
