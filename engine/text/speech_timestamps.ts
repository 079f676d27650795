// Tokens of times in tokenizer.json of speech recognisers. Files from before 2023, and what converters made of them, end
// with <|notimestamps|>, though models go on: a token for each 0.02 seconds of their window (openai/whisper's tokenizer.py).
// Without them a model would have no way to write a time.

import type { MetadataValue } from "../formats/source.ts";
import { asObject } from "../formats/strict_json.ts";

const LAST = "<|notimestamps|>";
const STEPS_PER_SECOND = 50;

/**
 * The content of a tokenizer.json with the times that it lacks; any other as it is.
 *
 * @param vocabulary Tokens of the model.
 */
export function withTimestamps(json: MetadataValue, vocabulary: unknown): MetadataValue {
  const all = asObject(json), added = all?.added_tokens;
  if (!all || !Array.isArray(added) || typeof vocabulary !== "number") return json;
  const rows = added.map((row) => asObject(row));
  const last = rows.find((row) => row?.content === LAST), id = Number(last?.id);
  if (!last || !rows.every((row) => Number(row?.id) <= id)) return json;
  const times = Array.from({ length: Math.max(0, vocabulary - 1 - id) }, (_, step) => ({
    ...{ ...last, id: id + 1 + step },
    content: `<|${(step / STEPS_PER_SECOND).toFixed(2)}|>`,
  }));
  return { ...all, added_tokens: [...added, ...times] };
}
