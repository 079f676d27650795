// Strings as JSON spells them, and their lengths: every text that JSON.parse reads, and none that it does not.

import { assertEquals } from "@std/assert";
import { createBounds } from "./bounds.ts";
import { createDfa } from "./dfa.ts";
import type { Grammar } from "./grammar.ts";
import { ANY_STRING, BLANK } from "./json_marks.ts";
import { parsePattern } from "./pattern.ts";
import { spell } from "./spelling.ts";
import { reads } from "../../../tests/support/grammars.ts";

const STRING: Grammar = { root: ANY_STRING };

function bounded(pattern: string, [min, max]: readonly [number, number]): Grammar {
  const dfa = createDfa(parsePattern(pattern));
  const bounds = createBounds(dfa, { min, max });
  return { root: { kind: "leaf", automaton: spell(dfa, "json"), bounds } };
}

Deno.test("a string has every way of spelling that JSON.parse reads", () => {
  const all = [
    ...["", "a", "é", "東", "😀", "\u007f", "\\n", "\\u00E9", "\\u0041", "\\/", '\\"', "\\\\"],
    ...["\\ud83d\\uDE00", "\\ud83d", "\\ude00", "\\ud83dx", "\\ud83d\\n", "\\ud83d\\ud83d\\ude00"],
  ];
  for (const text of all) assertEquals(reads(STRING, `"${text}"`), true, text);
  for (const text of ["\u0007", "\n", "\t", "\\a", "\\u12", "\\u12x4", '"', "\\"]) {
    assertEquals(reads(STRING, `"${text}"`), false, text);
  }
});

Deno.test("what JSON.stringify writes for any two code units is a string", () => {
  const units = [0, 8, 9, 0x1f, 0x22, 0x2f, 0x5c, 0x7f, 0x80, 0x7ff, 0x800, 0x2028, 0xd7ff];
  const halves = [0xd800, 0xdbff, 0xdc00, 0xdfff, 0xe000, 0xffff];
  const key: Grammar = {
    root: { kind: "leaf", automaton: spell(createDfa(parsePattern("")), "key") },
  };
  for (const a of [...units, ...halves]) {
    for (const b of [...units, ...halves]) {
      const text = JSON.stringify(String.fromCharCode(a, b));
      assertEquals([reads(STRING, text), reads(key, text)], [true, true], text);
    }
  }
  for (const text of ['"\\u0041"', '"\\u000a"', '"\\u001F"', '"\\/"', '"\\ud83d\\ude00"']) {
    assertEquals(reads(key, text), false, text);
  }
});

Deno.test("lengths count characters, however they are spelled", () => {
  const three = bounded("", [0, 3]);
  for (const text of ["", "a\\nb", "😀😀😀", "\\ud83d\\ude00ab", "ab\\ud83d\\ude00", "\\ud83dab"]) {
    assertEquals(reads(three, `"${text}"`), true, text);
  }
  for (const text of ["abcd", "😀😀😀😀", "\\n\\n\\n\\n", "abc\\ud83d", "ab\\ud83dx"]) {
    assertEquals(reads(three, `"${text}"`), false, text);
  }
  const two = bounded("", [2, Infinity]);
  assertEquals(['"😀a"', '"abc"', '"😀"', '""'].map((text) => reads(two, text)), [
    ...[true, true, false, false],
  ]);
});

Deno.test("a pattern within bounds never leads to where it cannot end in time", () => {
  const pairs = bounded("^(ab)*$", [3, 7]);
  assertEquals(
    ['"ab"', '"abab"', '"ababab"', '"abababa', '"abababab"'].map((text) => reads(pairs, text)),
    [false, true, true, false, false],
  );
  const late = bounded("^a*b?$", [0, 2500]);
  assertEquals(reads(late, `"${"a".repeat(2499)}b"`), true);
  assertEquals(reads(late, `"${"a".repeat(2501)}"`), false);
});

Deno.test("white space is a blank, or a line end with an indent", () => {
  const blank: Grammar = { root: BLANK };
  for (const text of ["", " ", "\n", "\n  ", "\n\t\t", "\r\n    "]) {
    assertEquals(reads(blank, text), true, JSON.stringify(text));
  }
  for (const text of ["  ", "\n\n", "\t", `\n${" ".repeat(65)}`]) {
    assertEquals(reads(blank, text), false, JSON.stringify(text));
  }
});
