import { assertEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import { FormatError } from "../errors.ts";
import { createCharBpe, mergeByScore } from "./char_bpe.ts";
import { createVocabulary, TOKEN_KIND } from "./vocabulary/vocabulary.ts";

const TEXTS = ["<unk>", "▁", "a", "b", "▁a", "ab", "▁ab", "b▁a", "▁▁", "ba", "aa", "▁ab▁a"];

function build(texts: readonly string[], options: { unkId?: number; fuse?: boolean } = {}) {
  const kinds = new Uint8Array(texts.length).fill(TOKEN_KIND.normal);
  kinds[0] = TOKEN_KIND.unknown;
  const vocabulary = createVocabulary(texts, kinds);
  const encode = createCharBpe({
    vocabulary,
    merge: mergeByScore(vocabulary, texts.map((_, id) => (id * 7) % 5)),
    unkId: options.unkId,
    fuseUnknown: options.fuse ?? true,
    byteFallback: true,
    name: "toy",
  });
  return (text: string): string[] => {
    const out: number[] = [];
    encode(text, out);
    return out.map((id) => texts[id]);
  };
}

/** The definition over the whole text, without cutting it at marks. */
function encodeNaively(text: string): string[] {
  const symbols = Array.from(text);
  while (true) {
    let best = { at: -1, score: -Infinity };
    for (let at = 0; at + 1 < symbols.length; at++) {
      const id = TEXTS.indexOf(symbols[at] + symbols[at + 1]);
      const score = (id * 7) % 5;
      if (id > 0 && score > best.score) best = { at, score };
    }
    if (best.at < 0) return symbols;
    symbols.splice(best.at, 2, symbols[best.at] + symbols[best.at + 1]);
  }
}

Deno.test("cutting a text at marks changes no ids, even with pieces that reach over a mark", () => {
  const encode = build(TEXTS, { unkId: 0 });
  const text = fc.string({ unit: fc.constantFrom("▁", "a", "b"), maxLength: 40 });
  fc.assert(
    fc.property(text, (input) => assertEquals(encode(input), encodeNaively(input))),
    { seed: 24, numRuns: 2000 },
  );
});

Deno.test("characters without a piece fall apart into bytes, or are unknown", () => {
  const bytes = Array.from(
    new TextEncoder().encode("é"),
    (b) => `<0x${b.toString(16).toUpperCase()}>`,
  );
  assertEquals(build(["<unk>", "a", ...bytes], { unkId: 0 })("aé"), ["a", ...bytes]);
  assertEquals(build(["<unk>", "a"], { unkId: 0 })("aéé"), ["a", "<unk>"]);
  assertEquals(build(["<unk>", "a"], { unkId: 0, fuse: false })("aéé"), ["a", "<unk>", "<unk>"]);
  assertThrows(
    () => build(["<unk>", "a"])("é"),
    FormatError,
    'toy: the vocabulary has no token for "é"',
  );
});

Deno.test("a piece may be longer than any of its characters that have none of their own", () => {
  assertEquals(build(["<unk>", "xy"], { unkId: 0 })("xyx"), ["xy", "<unk>"]);
});
