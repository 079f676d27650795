// A thousand sentences and clauses of a book, 4 to 32 words long (7 to 50 tokens, 18 in the middle): what a
// search index is fed with.

import { readFixture } from "../../tests/support/fixtures.ts";

/** The first `count` of them. */
export function benchSentences(count: number): string[] {
  const parts = readFixture("text/opticks-book3.txt").replace(/\s+/g, " ").split(/(?<=[.;:?!,])\s/);
  const sentences: string[] = [];
  let current = "";
  for (const part of parts) {
    current = current === "" ? part.trim() : `${current} ${part.trim()}`;
    const words = current.split(" ").length;
    if (words < 8 && !/[.?!]$/.test(current)) continue; // a clause too short to stand alone
    if (words >= 4 && words <= 32) sentences.push(current);
    current = "";
  }
  return sentences.slice(0, count);
}
