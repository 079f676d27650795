// What the rules of prompt lookup are worth, counted on texts instead of timed: a text is taken for the answer, proposals
// along it are right where it goes on as they say. Prints tokens a step of first and latest occurrence, how often the
// first proposed token is right by the length of the match, and what a second branch would add to a chain.
//
// deno run -A bench/lookup_rules.ts [MODEL], for bench/results/speculation.md

import { pullModel } from "../engine/formats/hub/pull.ts";
import { openModel } from "../engine/models/open_model.ts";
import { readTextParts } from "../engine/text/text_parts.ts";
import { createLookup } from "../engine/decode/speculate/lookup.ts";
import { NOTHING } from "../engine/decode/speculate/proposer.ts";
import { STORY_TWICE } from "./support/models.ts";

const FILES: Readonly<Record<string, string>> = {
  "a chapter of Newton's Opticks": "tests/fixtures/text/opticks-book3.txt",
  "a source file": "engine/decode/run.ts",
  "a table in Markdown": "bench/results/cpu-zen5-2-threads.md",
};
const LONGEST = 4000;
const ROWS = [4, 8, 16];

const file = await openModel(await pullModel(Deno.args[0] ?? "smollm2-135m"));
const tokenizer = (await readTextParts(file)).tokenizer();
file.close();
const texts = new Map(
  Object.entries(FILES).map(([name, path]) => [name, Deno.readTextFileSync(path)]),
);
texts.set("a story, copied with one word changed", STORY_TWICE);

/** Tokens a step of so many rows, walking along a text. */
function chain(tokens: readonly number[], occurrence: "first" | "latest", rows: number): number {
  const lookup = createLookup({ occurrence });
  let steps = 0, at = 1;
  for (; at < tokens.length; steps++) {
    const text = tokens.slice(0, at);
    let right = 0;
    if (lookup.level(text) !== NOTHING) {
      const { tokens: draft, count } = lookup.propose(text, rows - 1);
      while (right < count && draft[right] === tokens[at + right]) right++;
    }
    at += right + 1;
  }
  return tokens.length / steps;
}

/** How often the first proposed token is right, by the length of the match. */
function chances(tokens: readonly number[]): string {
  const lookup = createLookup(), tries: number[] = [], hits: number[] = [];
  for (let at = 1; at < tokens.length; at++) {
    const text = tokens.slice(0, at), level = lookup.level(text);
    if (level === NOTHING) continue;
    tries[level] = (tries[level] ?? 0) + 1;
    hits[level] = (hits[level] ?? 0) + (lookup.propose(text, 1).tokens[0] === tokens[at] ? 1 : 0);
  }
  return [...tries].map((count, level) =>
    count ? `${(hits[level]! / count).toFixed(2)} of ${count}` : "–"
  )
    .join(", ");
}

/** Places behind earlier occurrences of the longest n-gram at the end, latest first, with different next tokens. */
function branches(tokens: readonly number[], at: number): number[] {
  for (let n = 3; n > 0; n--) {
    const found: number[] = [], seen = new Set<number>();
    for (let place = at - 1; place >= n; place--) {
      let i = 1;
      while (i <= n && tokens[place - i] === tokens[at - i]) i++;
      if (i <= n || seen.has(tokens[place]!)) continue;
      seen.add(tokens[place]!);
      found.push(place);
      if (found.length === 2) break;
    }
    if (found.length > 0) return found;
  }
  return [];
}

/** Tokens a step where a second branch of so many tokens takes its rows from the first one. */
function tree(tokens: readonly number[], rows: number, second: number): number {
  const right = (place: number | undefined, at: number, most: number): number => {
    let count = 0;
    while (
      place !== undefined && count < most && at + count < tokens.length &&
      tokens[place + count] === tokens[at + count]
    ) count++;
    return count;
  };
  let steps = 0, at = 1;
  for (; at < tokens.length; steps++) {
    const [one, two] = branches(tokens, at);
    const most = rows - 1 - (two === undefined ? 0 : second);
    at += 1 + Math.max(right(one, at, most), right(two, at, second));
  }
  return tokens.length / steps;
}

for (const [name, text] of texts) {
  const tokens = tokenizer.encode(text).slice(0, LONGEST);
  console.log(`\n${name}, ${tokens.length} tokens`);
  for (const rows of ROWS) {
    const trees = [0, 1, 2, rows / 2 - 1].map((second) =>
      `${second}: ${tree(tokens, rows, second).toFixed(3)}`
    );
    console.log(
      `${rows} rows: first ${chain(tokens, "first", rows).toFixed(3)}, latest ${
        chain(tokens, "latest", rows).toFixed(3)
      }; second branch of ${trees.join(", ")}`,
    );
  }
  console.log(`first token right, by match of 1, 2, 3, 4-7, 8-15, 16: ${chances(tokens)}`);
}
