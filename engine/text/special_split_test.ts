import { assertEquals } from "@std/assert";
import fc from "fast-check";
import { createSpecialSplitter } from "./special_split.ts";

function split(tokens: readonly string[], text: string): (string | number)[] {
  const parts: (string | number)[] = [];
  createSpecialSplitter(new Map(tokens.map((token, id) => [token, id])))(
    text,
    (stretch) => parts.push(stretch),
    (id) => parts.push(id),
  );
  return parts;
}

/** The definition: at each place the longest token, else one more unit of text. */
function splitNaively(tokens: readonly string[], text: string): (string | number)[] {
  const parts: (string | number)[] = [];
  let stretch = "";
  for (let at = 0; at < text.length;) {
    const here = tokens.filter((token) => token !== "" && text.startsWith(token, at));
    const longest = here.toSorted((a, b) => b.length - a.length)[0];
    if (longest === undefined) stretch += text[at++];
    else {
      if (stretch !== "") parts.push(stretch);
      stretch = "";
      parts.push(tokens.lastIndexOf(longest));
      at += longest.length;
    }
  }
  return stretch === "" ? parts : [...parts, stretch];
}

Deno.test("whole tokens are found leftmost first and longest first", () => {
  assertEquals(split(["<a>", "<a>b", "ab"], "x<a>bab<a"), ["x", 1, 2, "<a"]);
  assertEquals(split([], "text"), ["text"]);
  assertEquals(split([""], "text"), ["text"]);
});

Deno.test("a token takes the blanks on the side that it is said to, and no token's own text", () => {
  const ids = new Map([["<l>", 0], ["<r>", 1]]);
  const manners = new Map([
    [0, { left: true, right: false, isWord: false }],
    [1, { left: false, right: true, isWord: false }],
  ]);
  const parts: (string | number)[] = [];
  createSpecialSplitter(ids, manners)(
    "a  <l> b \n<r>\n c<r> <l>",
    (stretch) => parts.push(stretch),
    (id) => parts.push(id),
  );
  assertEquals(parts, ["a", 0, " b \n", 1, "c", 1, 0]);
});

Deno.test("splitting equals the definition for any tokens and text", () => {
  const letters = fc.string({ unit: fc.constantFrom("a", "b", "<", "👋"), maxLength: 5 });
  const text = fc.string({ unit: fc.constantFrom("a", "b", "<", "👋"), maxLength: 40 });
  fc.assert(
    fc.property(fc.uniqueArray(letters, { maxLength: 6 }), text, (tokens, input) => {
      assertEquals(split(tokens, input), splitNaively(tokens, input));
    }),
    { seed: 22, numRuns: 1000 },
  );
});
