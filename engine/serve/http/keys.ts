// API keys. What comes is compared with every key by hashes of equal length in constant time, so that nobody learns a key
// by how long a refusal takes.

import { createHash, timingSafeEqual } from "node:crypto";
import { UnsupportedError } from "../../errors.ts";
import { ApiError } from "./api_error.ts";

/** Whether a request may go on. */
export type KeyCheck = (request: Request) => void;

/**
 * The check for keys.
 *
 * A key comes as `Authorization: Bearer KEY`, or as `x-api-key`. Without keys everybody may ask.
 */
export function keyCheck(keys: readonly string[] = []): KeyCheck {
  if (keys.length === 0) return () => {};
  const known = keys.map(hash);
  return ({ headers }) => {
    const given = /^Bearer +(\S+)$/i.exec(headers.get("authorization") ?? "")?.[1] ??
      headers.get("x-api-key");
    const hashed = hash(given ?? "");
    // All of them, whichever is right.
    const matches = known.filter((key) => timingSafeEqual(key, hashed)).length;
    if (given && matches > 0) return;
    throw new ApiError(
      401,
      given
        ? "This API key is not known here"
        : "An API key is missing: send Authorization: Bearer KEY",
      { code: "invalid_api_key", headers: { "www-authenticate": "Bearer" } },
    );
  };
}

function hash(text: string): Uint8Array {
  return createHash("sha256").update(text).digest();
}

/**
 * Keys of a file or a variable: one a line, or separated by commas; what follows `#` is a comment.
 *
 * @throws {UnsupportedError} If there is none, or one that no header can hold.
 */
export function parseKeys(text: string, source: string): string[] {
  const keys = text.split("\n").flatMap((line) => line.replace(/#.*/, "").split(","))
    .map((key) => key.trim()).filter((key) => key !== "");
  const odd = keys.findIndex((key) => !/^[\x21-\x7e]+$/.test(key));
  if (keys.length > 0 && odd < 0) return keys;
  throw new UnsupportedError(
    keys.length === 0
      ? "has no API key"
      : `API key ${odd + 1} has characters that headers cannot hold`,
    { file: source, remedy: "Write one key a line: letters, digits and signs of ASCII" },
  );
}
