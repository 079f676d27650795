// What OpenAI's API lets stand where texts are meant: a text, a list of texts, token ids, or lists of token ids.

import { badRequest } from "./api_error.ts";

/** Most texts of a request, as in OpenAI's API. */
const MOST_TEXTS = 2048;

/**
 * The texts, each a text or token ids.
 *
 * @throws {ApiError} 400 with the path of what is neither.
 */
export function readTexts(value: unknown, path: string): (string | readonly number[])[] {
  if (typeof value === "string") return [value];
  const list = value as readonly unknown[];
  if (list.length === 0) throw badRequest(`Cannot use ${path}: it is empty`, path);
  if (typeof list[0] === "number") return [idsOf(list, path)];
  if (list.length > MOST_TEXTS) {
    throw badRequest(`Cannot use ${path}: it has more than ${MOST_TEXTS} texts`, path);
  }
  return list.map((one, i) => typeof one === "string" ? one : idsOf(one, `${path}[${i}]`));
}

function idsOf(value: unknown, path: string): readonly number[] {
  const isIds = Array.isArray(value) && value.length > 0 &&
    value.every((id) => Number.isSafeInteger(id) && id >= 0);
  if (isIds) return value;
  throw badRequest(`Cannot use ${path}: it must be a text or a list of token ids`, path);
}
