import { assertEquals, assertMatch, assertThrows } from "@std/assert";
import { fromOniguruma } from "./oniguruma.ts";

const cut = (pattern: string, text: string): string[] =>
  [...text.matchAll(fromOniguruma(pattern))].map(([match]) => match);

// Matches as the Python package tokenizers 0.23 gives them, which asks the onig library.
const CASES: readonly [pattern: string, text: string, matches: readonly string[]][] = [
  ["\\s+(?!\\S)|\\s+", "a\u0085\u00a0 b", ["\u0085\u00a0", " "]],
  ["\\w+|[^\\w\\s]+", "añ_1٣-é!", ["añ_1٣", "-", "é", "!"]],
  ["\\d", "1٣x", ["1", "٣"]],
  ["\\p{N}{1,3}", "12345", ["123", "45"]],
  ["\\p{N}{1,3}+", "12345", ["12345"]],
  ["(?i:'s|'t)|\\p{L}+", "it'S", ["it", "'S"]],
  ["x(?i)y|z", "xY xZ y Z", ["xY", "xZ"]],
  ["a++b", "aab", ["aab"]],
  ["a++a", "aaa", []],
  ["(?>ab|a)b", "abb ab", ["abb"]],
  ["[\\p{L}&&[^\\p{Han}]]+", "ab漢c", ["ab", "c"]],
  ["[a-c&&b-d]+", "abcd", ["bc"]],
  ["\\p{Han}+", "ab漢字c", ["漢字"]],
  ["\\p{^L}+", "a1-b", ["1-"]],
  ["[[:alpha:]]+", "aé1", ["aé"]],
  ["[^[:space:]]+", "a b", ["a", "b"]],
  ["[]a]+", "a]b", ["a]"]],
  ["[a-]+", "-a b", ["-a"]],
  ["[(|)&~]+", "(|)&~x", ["(|)&~"]],
  ["<\\|a\\|>|\\<b>", "<|a|> <b>", ["<|a|>", "<b>"]],
  ["^a|b$", "a\na b\nb", ["a", "a", "b", "b"]],
  [".+", "a\rb\nc", ["a\rb", "c"]],
  ["a{,2}b", "aaab", ["aab"]],
  ["a{x", "a{x", ["a{x"]],
  ["\\x41\\x{42}\\u0043", "ABC", ["ABC"]],
  ["(?=(\\d{3})+(?!\\d))", "1234567", ["", ""]],
  ["(?<word>a)b", "ab", ["ab"]],
];

for (const [pattern, text, matches] of CASES) {
  Deno.test(`${pattern} on ${JSON.stringify(text)} gives ${JSON.stringify(matches)}`, () => {
    assertEquals(cut(pattern, text), [...matches]);
  });
}

Deno.test("what is not known is refused by name", () => {
  const cases = [
    ["\\Ga", /\\G/],
    ["(a)\\1", /\\1/],
    ["(?x: a)", /\(\?x/],
    ["(?m:.)", /flag m/],
    ["\\p{Klingon}", /Klingon/],
    ["[[:nope:]]", /nope/],
    ["[a", /set/],
    ["(a", /group/],
    ["a)", /parenthesis/],
    ["a\\", /backslash/],
  ] as const;
  for (const [pattern, message] of cases) {
    assertMatch(assertThrows(() => fromOniguruma(pattern), SyntaxError).message, message);
  }
});
