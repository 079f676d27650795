import { assertAlmostEquals, assertEquals } from "@std/assert";
import fc from "fast-check";
import { createUnigram } from "./unigram.ts";
import { createVocabulary, TOKEN_KIND } from "./vocabulary/vocabulary.ts";

const TEXTS = ["<unk>", "a", "b", "ab", "ba", "aba", "👋", "👋a"];

/** Best sum of scores over all cuts, by trying them all. */
function bestScore(text: string, scores: readonly number[]): number {
  if (text === "") return 0;
  let best = -Infinity;
  for (let id = 1; id < TEXTS.length; id++) {
    if (!text.startsWith(TEXTS[id])) continue;
    best = Math.max(best, scores[id] + bestScore(text.slice(TEXTS[id].length), scores));
  }
  return best;
}

Deno.test("the pieces are those with the highest sum of scores", () => {
  const score = fc.double({ min: -10, max: -0.1, noNaN: true });
  fc.assert(
    fc.property(
      fc.array(score, { minLength: TEXTS.length, maxLength: TEXTS.length }),
      fc.string({ unit: fc.constantFrom("a", "b", "👋"), maxLength: 9 }),
      (scores, text) => {
        const kinds = new Uint8Array(TEXTS.length).fill(TOKEN_KIND.normal);
        kinds[0] = TOKEN_KIND.unknown;
        const out: number[] = [];
        createUnigram({
          vocabulary: createVocabulary(TEXTS, kinds),
          scores,
          unkId: 0,
          byteFallback: false,
        })(text, out);
        assertEquals(out.map((id) => TEXTS[id]).join(""), text);
        assertAlmostEquals(
          out.reduce((sum, id) => sum + scores[id], 0),
          bestScore(text, scores),
          1e-9,
        );
      },
    ),
    { seed: 25, numRuns: 500 },
  );
});

Deno.test("long runs of equal cuts fall as sums of 32 or of 64 bits do", () => {
  const texts = ["<unk>", "a", "aa", "aaa"];
  const kinds = Uint8Array.from([2, 1, 1, 1]);
  const scores = Float32Array.of(0, -2.3, -4.6, -6.9);
  const cut = (length: number, isSingle: boolean) => {
    const out: number[] = [];
    const vocabulary = createVocabulary(texts, kinds);
    createUnigram({ vocabulary, scores, unkId: 0, byteFallback: false, isSingle })(
      "a".repeat(length),
      out,
    );
    return out.join("");
  };
  // sentencepiece 0.2.3
  assertEquals(cut(7, true), "1231");
  assertEquals(cut(20, true), "1231111112222");
  assertEquals(cut(40, true), "1231111112222222322223");
  // tokenizers 0.23.3
  assertEquals(cut(7, false), "1222");
  assertEquals(cut(20, false), "2222222222");
  assertEquals(cut(40, false), "2".repeat(20));
});
