// Which beginning a prompt has, as a front can tell that has no tokenizer: hashes of its text, one every 256 characters
// (about a page of a cache, which has 64 rows). Who computed a prompt with the same hash has the rows of that beginning.

import type { AnswerJob } from "../engine.ts";

const BLOCK = 256;
/** A conversation that is longer is found by its beginning. */
const MOST_BLOCKS = 128;

/** Hashes of the beginnings of a job's prompt, shortest first; none where it is shorter than a page. */
export function prefixHashes({ model, input, options }: AnswerJob): string[] {
  const text = promptText(input), tools = options.tools ? JSON.stringify(options.tools) : "";
  const hashes: string[] = [];
  const hash = { high: 0x811c9dc5, low: 0x1b873593 };
  mix(hash, `${model}\n${tools}`);
  for (let at = 0; at + BLOCK <= text.length && hashes.length < MOST_BLOCKS; at += BLOCK) {
    mix(hash, text.slice(at, at + BLOCK));
    hashes.push((hash.high >>> 0).toString(36) + (hash.low >>> 0).toString(36));
  }
  return hashes;
}

/** Grows at its end when the prompt does. */
function promptText(input: AnswerJob["input"]): string {
  if ("messages" in input) return input.messages.map((one) => JSON.stringify(one)).join();
  if ("prefix" in input) return input.prefix;
  if (!("prompt" in input)) return JSON.stringify(input);
  return typeof input.prompt === "string" ? input.prompt : input.prompt.join();
}

/** Two hashes like FNV-1a, with factors of their own. */
function mix(hash: { high: number; low: number }, text: string): void {
  let { high, low } = hash;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    high = Math.imul(high ^ code, 0x01000193);
    low = Math.imul(low ^ code, 0x85ebca6b);
    low ^= low >>> 15;
  }
  hash.high = high;
  hash.low = low;
}
