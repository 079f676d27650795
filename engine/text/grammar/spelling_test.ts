// Strings as JSON.stringify spells them, and their lengths: its form of every text, and no other.

import { assertEquals } from "@std/assert";
import { createBounds } from "./bounds.ts";
import { createDfa } from "./dfa.ts";
import type { Grammar } from "./grammar.ts";
import { ANY_STRING, BLANK } from "./json_marks.ts";
import { choice, oneOf, sequence, word } from "./nfa.ts";
import { parsePattern } from "./pattern.ts";
import { spell } from "./spelling.ts";
import { begins, reads } from "../../../tests/support/grammars.ts";

const STRING: Grammar = { root: ANY_STRING };

function bounded(pattern: string, [min, max]: readonly [number, number]): Grammar {
  const dfa = createDfa(parsePattern(pattern));
  const bounds = createBounds(dfa, { min, max });
  return { root: { kind: "leaf", automaton: spell(dfa, "json"), bounds } };
}

Deno.test("a text is written as JSON.stringify writes it, and in no other way", () => {
  const all = [
    "",
    "a",
    "é",
    "東",
    "😀",
    "\u007f/",
    '"\\',
    "\b\f\n\r\t",
    "\u0007\u001f",
    "\ud83d",
    "\ude00x",
  ];
  for (const text of all) assertEquals(reads(STRING, JSON.stringify(text)), true, text);
  for (
    const text of [
      ...["\u0007", "\n", "\t", "\\a", "\\u12", "\\u12x4", '"', "\\", "\\/", "\\u0073", "\\u00e9"],
      ...["\\u000a", "\\u001F", "\\u0022", "\\ud83d\\ude00", "\\uD83D", "\\ufeff"],
    ]
  ) assertEquals(reads(STRING, `"${text}"`), false, text);
});

Deno.test("what JSON.stringify writes for any two code units is a string", () => {
  const units = [0, 8, 9, 0x1f, 0x22, 0x2f, 0x5c, 0x7f, 0x80, 0x7ff, 0x800, 0x2028, 0xd7ff];
  const halves = [0xd800, 0xdbff, 0xdc00, 0xdfff, 0xe000, 0xffff];
  for (const a of [...units, ...halves]) {
    for (const b of [...units, ...halves]) {
      const text = JSON.stringify(String.fromCharCode(a, b));
      assertEquals(reads(STRING, text), true, text);
    }
  }
});

Deno.test("the first half of a pair is written where something but the second may follow", () => {
  const pair = sequence(oneOf([0xd83d, 0xd83d]), oneOf([0xdc00, 0xdfff]));
  const dfa = createDfa([{ regular: choice(pair, word("x")) }]);
  const grammar: Grammar = { root: { kind: "leaf", automaton: spell(dfa, "json") } };
  assertEquals(['"', '"\\'].map((text) => begins(grammar, text)), [true, false]);
});

Deno.test("lengths count characters, however they are spelled", () => {
  const three = bounded("", [0, 3]);
  for (const text of ["", "a\\nb", "😀😀😀", "\\ude00ab", "ab\\ud83d", "\\ud83dab"]) {
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
