import { assertEquals, assertThrows } from "@std/assert";
import { SourceError } from "../../errors.ts";
import { catalogue, defaultModel, modelBytes } from "./catalogue.ts";
import { type ModelSource, parseModelSource } from "./source_name.ts";

Deno.test("parseModelSource() tells the five forms apart", () => {
  const cases: [string, Partial<ModelSource>][] = [
    ["smollm2-135m", { kind: "catalogue" }],
    ["./smollm2-135m", { kind: "path" }],
    ["C:\\models\\a.gguf", { kind: "path" }],
    ["https://host/a/b.gguf?x=1", { kind: "url", url: "https://host/a/b.gguf?x=1" }],
    ["hf:o/r/f.gguf", { kind: "hf", repo: "o/r", file: "f.gguf", revision: "main" }],
    ["hf:o/r/sub/f.gguf@v1.0", { kind: "hf", file: "sub/f.gguf", revision: "v1.0" }],
    ["hf:o/r/f.gguf@refs/pr/3", { kind: "hf", revision: "refs/pr/3" }],
    ["pypi:llm-x==0.1.2/p/f.gguf", {
      kind: "pypi",
      package: "llm-x",
      version: "0.1.2",
      member: "p/f.gguf",
    }],
    ["pypi:x/f.gguf", { kind: "pypi", package: "x", version: undefined, member: "f.gguf" }],
  ];
  for (const [text, expected] of cases) {
    const source = parseModelSource(text) as unknown as Record<string, unknown>;
    for (const [key, value] of Object.entries(expected)) assertEquals(source[key], value, text);
  }
});

Deno.test("the main branch is the same source with and without its name", () => {
  assertEquals(parseModelSource("hf:o/r/f@main").text, parseModelSource("hf:o/r/f").text);
});

Deno.test("names that begin like a form and do not go on like it are refused", () => {
  const bad = [
    "",
    "hf:o/r",
    "hf:o",
    "hf:o/r/../x",
    "hf:o/r/a//b",
    "pypi:x",
    "pypi:--index-url=http://x/f",
    "pypi:x==1;rm/f",
    "pypi:x/../f",
    "pypi:x//f",
    "https://",
    "https://host/",
    "https:///f",
  ];
  for (const text of bad) assertThrows(() => parseModelSource(text), SourceError, undefined, text);
});

Deno.test("the catalogue is complete: every file has a length, a sha256 and a wheel", () => {
  assertEquals(catalogue.get(defaultModel)?.name, "smollm2-135m");
  for (const model of catalogue.values()) {
    assertEquals(model.files.filter(({ name }) => name === model.main).length, 1, model.name);
    assertEquals(model.license.length > 0, true);
    for (const { name, bytes, sha256, members } of model.files) {
      assertEquals(/^[0-9a-f]{64}$/.test(sha256) && bytes > 0 && members.length > 0, true, name);
      for (const { package: pkg, version, member } of members) {
        assertEquals(parseModelSource(`pypi:${pkg}==${version}/${member}`).kind, "pypi");
      }
    }
  }
  assertEquals(modelBytes(catalogue.get("smollm2-135m")!), 98_362_432);
});
