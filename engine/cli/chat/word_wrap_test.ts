import { assertEquals } from "@std/assert";
import { createWordWrap } from "./word_wrap.ts";

function wrapped(text: string, columns: number, piece: number): string {
  const wrap = createWordWrap(columns);
  let out = "";
  for (let at = 0; at < text.length; at += piece) out += wrap.push(text.slice(at, at + piece));
  return out + wrap.end();
}

Deno.test("words are not cut, however the text comes; its own line ends and indents stay", () => {
  const cases: [text: string, expected: string][] = [
    ["one two three four", "one two\nthree four"],
    ["one two\nthree", "one two\nthree"],
    ["  - a\n  - bb\n", "  - a\n  - bb\n"],
    ["abcdefghijklmnop q", "abcdefghijklmnop q"],
    ["日本語の長い文章です", "日本語の長い文章です"],
    ["a 日本語語 b", "a 日本語語\nb"],
    ["", ""],
    ["1234567890 x", "1234567890\nx"],
  ];
  for (const [text, expected] of cases) {
    for (const piece of [1, 2, 3, 100]) assertEquals(wrapped(text, 10, piece), expected, text);
  }
});
