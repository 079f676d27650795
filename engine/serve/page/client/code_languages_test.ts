// Expected parts are those that a reader of the language sees.

import hljs from "highlight.js/lib/core";
import { assertEquals } from "@std/assert";
import { SMALL_ALIASES, SMALL_LANGUAGES } from "./code_languages.ts";

for (const [name, language] of Object.entries(SMALL_LANGUAGES)) {
  hljs.registerLanguage(name, language);
}

/** Texts of a scope, in order. */
function parts(language: string, code: string, scope: string): string[] {
  const { value } = hljs.highlight(code, { language, ignoreIllegals: true });
  const plain = value.replace(/&lt;/g, "<").replace(/&gt;/g, ">").replace(/&quot;/g, '"').replace(
    /&#x27;/g,
    "'",
  ).replace(/&amp;/g, "&");
  return [...plain.matchAll(new RegExp(`<span class="hljs-${scope}">(.*?)</span>`, "gs"))].map((
    [, text],
  ) => text!);
}

const CASES: readonly [
  language: string,
  code: string,
  parts: Readonly<Record<string, readonly string[]>>,
][] = [
  ["rust", "fn first<'a>(x: &'a str) -> Option<char> { 'x' } // done", {
    ...{ keyword: ["fn", "str", "char"], title: ["first"], type: ["Option"] },
    ...{ string: ["'x'"], comment: ["// done"] },
  }],
  ["c", '#include <stdio.h>\nint main(void) { return 0x1F + 1.5e3f; /* "no" */ }', {
    ...{ meta: ["#include <stdio.h>"], keyword: ["int", "void", "return"] },
    ...{ number: ["0x1F", "1.5e3f"], string: [], comment: ['/* "no" */'] },
  }],
  ["typescript", "const r = /[/\"]/g, half = a / b / c;\nreturn `x ${await f('y')}` // z", {
    ...{ regexp: ['/[/"]/g'], keyword: ["const", "return", "await"], comment: ["// z"] },
  }],
  ["go", 'func main() { s := "not closed\n var x = 1 }', {
    ...{ title: ["main"], keyword: ["func", "var"], string: [], number: ["1"] },
  }],
  ["php", "$a = 'it''s'; // c", { string: ["'it'", "'s'"], comment: ["// c"] }],
  ["bash", 'for f in *.txt; do echo "$f" --force # all\ndone', {
    ...{ keyword: ["for", "in", "do", "done"], built_in: ["echo"], variable: ["$f"] },
    ...{ attr: ["--force"], comment: [" # all"] },
  }],
  ["sql", "SELECT count(*) FROM t WHERE a = 'it''s' -- x", {
    ...{ keyword: ["SELECT", "FROM", "WHERE"], built_in: ["count"], comment: ["-- x"] },
    ...{ string: ["'it''s'"] },
  }],
  ["css", ".card:hover { color: #fff; margin: 0 1.5rem !important; }\n@media print {}", {
    ...{ "selector-class": [".card"], attr: ["color", "margin"], number: ["#fff", "0", "1.5rem"] },
    ...{ keyword: ["!important", "@media"] },
  }],
  ["yaml", '# top\nname: "x"\n- on: true\n  port: 80', {
    ...{ comment: ["# top"], attr: ["name", "- on", "  port"], string: ['"x"'], literal: ["true"] },
    ...{ number: ["80"] },
  }],
];

for (const [language, code, expected] of CASES) {
  Deno.test(`${language} is told apart into its parts`, () => {
    const found = Object.keys(expected).map((scope) => [scope, parts(language, code, scope)]);
    assertEquals(Object.fromEntries(found), expected);
  });
}

Deno.test("every grammar and every other name of one is known, and takes any text", () => {
  for (const [languageName, names] of Object.entries(SMALL_ALIASES)) {
    hljs.registerAliases([...names], { languageName });
    assertEquals(Object.hasOwn(SMALL_LANGUAGES, languageName), true, languageName);
  }
  const text = "\"'`/*${[<\\ #!@-- \u{1f600}\n".repeat(50);
  for (const language of Object.keys(SMALL_LANGUAGES)) {
    const { _emitter } = hljs.highlight(text, { language, ignoreIllegals: true });
    const flat = (part: unknown): string =>
      typeof part === "string"
        ? part
        : (part as { children: unknown[] }).children.map(flat).join("");
    assertEquals(flat((_emitter as unknown as { rootNode: unknown }).rootNode), text, language);
  }
});
