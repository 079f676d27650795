import { assertEquals, assertMatch, assertThrows } from "@std/assert";
import { FormatError } from "../../errors.ts";
import { parseIni } from "./ini.ts";
import { expandMacros, type MacroScope } from "./macros.ts";

function scopeOf(text: string, section = "main"): MacroScope & { readonly warnings: string[] } {
  const warnings: string[] = [];
  return {
    file: parseIni(text, "a.ini"),
    section,
    builtIn: new Map([["data_root_dir", "/data/$(main/x)"], ["run_name", "a"]]),
    warn: (message) => warnings.push(message),
    warnings,
  };
}

Deno.test("sections hold keys, comments are skipped, and of doubled keys the later counts", () => {
  const { sections } = parseIni(
    "\uFEFFtop = 1\r\n# c\r\n[a]\r\n ; k = 2\n k = v = w # no comment\nk=2\n[b]\nk = \n[a]\nm = 3\n",
    "a.ini",
  );
  const plain = [...sections].map(([name, keys]) => [
    name,
    Object.fromEntries([...keys].map(([key, { text, line }]) => [key, `${line}:${text}`])),
  ]);
  assertEquals(plain, [
    ["", { top: "1:1" }],
    ["a", { k: "6:2", m: "10:3" }],
    ["b", { k: "8:" }],
  ]);
});

Deno.test("a value ends with its line, and what looks like a comment in it is text", () => {
  const { sections } = parseIni("[a]\nk = x # y ; z = 1", "a.ini");
  assertEquals(sections.get("a")!.get("k")!.text, "x # y ; z = 1");
});

Deno.test("a line that is nothing, and a broken section, are named", () => {
  for (const text of ["[a]\nhello", "[a]\n= 3", "[a", "[]", "[a] b"]) {
    const error = assertThrows(() => parseIni(text, "a.ini"), FormatError) as FormatError;
    assertMatch(error.message, /a\.ini, line \d: is /);
  }
});

Deno.test("macros stand for built-ins, keys beside them and keys of other sections, recursively", () => {
  const scope = scopeOf("[main]\nx = 1\ny = ${x}$(x)\n[b/c]\nz = <${y}>\ny = ${main/y}2\n");
  const expand = (text: string) => expandMacros(text, { scope });
  assertEquals(expand("$(y)-${main/y}-${b/c/z}"), "11-11-<112>");
  assertEquals(
    expand("${data_root_dir}|${DataRootDir}|${ run_name }"),
    "/data/$(main/x)|/data/$(main/x)|a",
  );
  assertEquals(expand("$5 $ {x} ${"), "$5 $ {x} ${");
  assertEquals(scope.warnings, []);
});

Deno.test("an unknown macro leaves its bare name and a warning", () => {
  const scope = scopeOf("[main]\n");
  assertEquals(expandMacros("a ${none} $(b/none)", { scope }), "a none b/none");
  assertEquals(scope.warnings.length, 2);
});

Deno.test("ten levels of macros are expanded, circles and floods are errors", () => {
  const chain = Array.from({ length: 9 }, (_, i) => `k${i} = \${k${i + 1}}`).join("\n");
  assertEquals(expandMacros("${k0}", { scope: scopeOf(`[main]\n${chain}\nk9 = end`) }), "end");
  assertThrows(
    () => expandMacros("${a}", { scope: scopeOf("[main]\na = ${b}\nb = ${a}") }),
    FormatError,
  );
  const flood = `[main]\na = ${"x".repeat(300_000)}\nb = \${a}\${a}\nc = \${b}\${b}`;
  assertThrows(() => expandMacros("${c}", { scope: scopeOf(flood) }), FormatError, "characters");
});
