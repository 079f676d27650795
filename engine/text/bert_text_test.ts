import { assertEquals } from "@std/assert";
import { lowercaseEach, normalizeBertText, splitBertWords } from "./bert_text.ts";

const ALL = { cleanText: true, spaceHan: true, stripAccents: true, lowercase: true };

Deno.test("BERT's normalization cleans, spaces Han characters, strips accents and lowers", () => {
  assertEquals(normalizeBertText("Ünïcode\u0000\ufffd\u200d\tX\u00a0Y", ALL), "unicode x y");
  assertEquals(normalizeBertText("a中b𠀀", ALL), "a 中 b 𠀀 ");
  assertEquals(normalizeBertText("かな 한", { ...ALL, stripAccents: false }), "かな 한");
  assertEquals(normalizeBertText("É", { ...ALL, stripAccents: false }), "é");
  assertEquals(normalizeBertText("É\t", { ...ALL, cleanText: false, lowercase: false }), "E\t");
});

Deno.test("letters are lowered without a look at their neighbours", () => {
  assertEquals(lowercaseEach("ΣΊΣΥΦΟΣ"), "σίσυφοσ");
  assertEquals(lowercaseEach("İI"), "i̇i");
});

Deno.test("words end at blanks and every punctuation mark stands alone", () => {
  assertEquals(splitBertWords(" don't  stop—now!? "), [
    "don",
    "'",
    "t",
    "stop",
    "—",
    "now",
    "!",
    "?",
  ]);
  assertEquals(splitBertWords("a+b=$1"), ["a", "+", "b", "=", "$", "1"]);
  assertEquals(splitBertWords(" "), []);
});
