// Bodies as they come: bounded in bytes, in time and in depth before anything is made of them. A body that is too long is
// refused by its declared length, or as soon as it has become too long; one that trickles is cut.

import { ApiError, badRequest } from "./api_error.ts";

/** Bounds of a body. */
export interface BodyLimits {
  /** Most bytes. */
  readonly bodyBytes: number;
  /** Most milliseconds from the head of the request to the end of its body. */
  readonly bodyMs: number;
  /** How deeply lists and objects may lie in each other. */
  readonly bodyDepth: number;
}

/**
 * Reads a JSON object.
 *
 * Half surrogates, which no text of tokens has, become U+FFFD.
 *
 * @throws {ApiError} 400, 408 or 413. What the body says is not repeated.
 */
export async function readJsonObject(
  request: Request,
  limits: BodyLimits,
): Promise<Readonly<Record<string, unknown>>> {
  const text = decode(await readBytes(request, limits));
  if (text.trim() === "") throw badRequest("The body is empty: it must be a JSON object");
  checkDepth(text, limits.bodyDepth);
  let value: unknown;
  try {
    value = JSON.parse(text, text.includes("\\u") ? wellFormed : undefined);
  } catch (error) {
    throw new ApiError(400, `The body is no JSON${placeOf(error)}`, { code: "invalid_json" });
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    return value as Readonly<Record<string, unknown>>;
  }
  throw badRequest("The body must be a JSON object");
}

async function readBytes(
  request: Request,
  { bodyBytes, bodyMs }: BodyLimits,
): Promise<Uint8Array[]> {
  const tooLong = () =>
    new ApiError(413, `The body is longer than ${bodyBytes} bytes`, {
      code: "request_too_large",
      headers: { connection: "close" },
    });
  if (Number(request.headers.get("content-length") ?? 0) > bodyBytes) throw tooLong();
  if (!request.body) return [];
  const reader = request.body.getReader();
  const parts: Uint8Array[] = [];
  let length = 0, timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<"late">((resolve) => timer = setTimeout(() => resolve("late"), bodyMs));
  try {
    for (;;) {
      const next = await Promise.race([reader.read(), late]);
      if (next === "late") {
        throw new ApiError(408, `The body did not come within ${bodyMs / 1000} s`, {
          code: "request_timeout",
          headers: { connection: "close" },
        });
      }
      if (next.done) return parts;
      length += next.value.length;
      if (length > bodyBytes) throw tooLong();
      parts.push(next.value);
    }
  } catch (error) {
    reader.cancel().catch(() => {});
    if (error instanceof ApiError) throw error;
    throw badRequest("The body broke off before its end");
  } finally {
    clearTimeout(timer);
  }
}

function decode(parts: readonly Uint8Array[]): string {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  try {
    return parts.map((part) => decoder.decode(part, { stream: true })).join("") + decoder.decode();
  } catch {
    throw new ApiError(400, "The body is no UTF-8", { code: "invalid_encoding" });
  }
}

/** Before it is parsed: what is nested a million times takes memory for each of them. */
function checkDepth(text: string, most: number): void {
  let depth = 0, isText = false;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (isText) {
      if (code === 0x5c) at++; // backslash
      else if (code === 0x22) isText = false;
    } else if (code === 0x22) isText = true;
    else if (code === 0x7b || code === 0x5b) {
      if (++depth > most) {
        throw new ApiError(400, `The body is nested more than ${most} times`, {
          code: "invalid_json",
        });
      }
    } else if (code === 0x7d || code === 0x5d) depth--;
  }
}

function wellFormed(_key: string, value: unknown): unknown {
  return typeof value === "string" ? value.toWellFormed() : value;
}

/** Where JSON.parse stopped; its message repeats the text, which is the client's and may be long. */
function placeOf(error: unknown): string {
  const [, place] = /(at position \d+|at line \d+ column \d+|end of JSON input)/
    .exec((error as Error).message) ?? [];
  return place === undefined ? "" : place.startsWith("end") ? ": it ends too early" : `: ${place}`;
}
