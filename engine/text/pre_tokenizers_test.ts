import { assertEquals } from "@std/assert";
import fc from "fast-check";
import { compilePattern, PRE_TOKENIZERS, splitWords } from "./pre_tokenizers.ts";

function words(kind: string, text: string): string[] {
  const patterns = PRE_TOKENIZERS.get(kind)?.patterns.map(compilePattern) ?? [];
  const found: string[] = [];
  splitWords(text, { patterns, visit: (word) => found.push(word) });
  return found;
}

Deno.test("words of every kind joined are the text, and none is empty", () => {
  const unit = fc.oneof(
    fc.string({ unit: "binary", minLength: 1, maxLength: 1 }),
    fc.constantFrom("don't", "I'LL", "123456", "  ", "\r\n", "\n", "中文", "Ab", "aB", "...", "é"),
  );
  fc.assert(
    fc.property(fc.string({ unit, maxLength: 20 }), (text) => {
      for (const kind of PRE_TOKENIZERS.keys()) {
        const found = words(kind, text);
        assertEquals(found.join(""), text, kind);
        assertEquals(found.includes(""), false, kind);
      }
    }),
    { seed: 61, numRuns: 150 },
  );
});

Deno.test("kinds differ where their tokenizers do", () => {
  const cases: [string, string, string[]][] = [
    ["gpt-2", "I'll pay 1234 $", ["I", "'ll", " pay", " 1234", " $"]],
    ["gpt-2", "I'LL", ["I", "'", "LL"]],
    ["smollm", "v12 ok", ["v", "1", "2", " ok"]],
    ["llama-bpe", "I'LL pay 12345\n\nok", ["I", "'LL", " pay", " ", "123", "45", "\n\n", "ok"]],
    ["qwen2", "12 (x):\n", ["1", "2", " (", "x", "):\n"]],
    ["gpt-4o", "camelCase I'll", ["camel", "Case", " I'll"]],
    ["tekken", "camelCase 12", ["camel", "Case", " ", "1", "2"]],
    ["deepseek-v3", "ab中文1234", ["ab", "中文", "123", "4"]],
    ["deepseek-coder", "if x1\n", ["if", " x", "1", "\n"]],
    ["falcon", "a, 1234", ["a", ",", " ", "123", "4"]],
    ["bloom", "Hi there, you", ["Hi", " there", ",", " you"]],
    ["kimi-k2", "word中文word", ["word", "中文", "word"]],
    ["superbpe", "a 1234567 b", ["a ", "1", "234", "567", " b"]],
  ];
  for (const [kind, text, wanted] of cases) assertEquals(words(kind, text), wanted, kind);
});

Deno.test("blanks are Unicode's, not JavaScript's", () => {
  assertEquals(words("gpt-2", "a\u0085b"), ["a", "\u0085", "b"]);
  assertEquals(words("gpt-2", "a \ufeff\ufeffb"), ["a", " \ufeff\ufeff", "b"]);
});
