import { assert, assertEquals, assertMatch, assertThrows } from "@std/assert";
import { SourceError } from "../../errors.ts";
import { catalogue, defaultModel, modelNames } from "./catalogue.ts";
import { type ModelSource, parseModelSource } from "./source_name.ts";

Deno.test("parseModelSource() tells the six forms apart", () => {
  const cases: [string, Partial<ModelSource>][] = [
    ["smollm2-135m", { kind: "catalogue" }],
    ["./smollm2-135m", { kind: "path" }],
    ["C:\\models\\a.gguf", { kind: "path" }],
    ["https://host/a/b.gguf?x=1", { kind: "url", url: "https://host/a/b.gguf?x=1" }],
    ["SmolLM2", { kind: "catalogue", text: "smollm2-135m" }],
    ["llama-3.2-1b:Q8_0", {
      kind: "repo",
      text: "hf:bartowski/Llama-3.2-1B-Instruct-GGUF:Q8_0",
      format: "Q8_0",
    }],
    ["hf:o/r", { kind: "repo", repo: "o/r", format: undefined, revision: "main" }],
    ["hf:o/r:q4_k_m@v1", { kind: "repo", format: "Q4_K_M", revision: "v1" }],
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
    "hf:o/..",
    "hf:o/r:",
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

const LICENSES =
  /^(Apache-2\.0|MIT|CC-BY-NC-4\.0|BigScience RAIL 1\.0|BigCode OpenRAIL-M v1|CreativeML Open RAIL-M|Open RAIL\+\+-M|Stability AI Community License|OPT-175B License|DeepSeek License|Gemma Terms of Use|Llama 3\.[12] Community License)$/;

Deno.test("the catalogue has the form that it must have: places, lengths, licences, families, names", () => {
  assertEquals(catalogue.get(defaultModel)?.name, "smollm2-135m");
  assertEquals(new Set(modelNames()).size, modelNames().length);
  const families = [...Deno.readDirSync(new URL("../../models/specs", import.meta.url))]
    .map((entry) => entry.name);
  for (const model of catalogue.values()) {
    const { name, aliases, main, files, hub, bytes, license, family } = model;
    for (const word of [name, ...aliases]) assertMatch(word, /^[a-z0-9]+([.-][a-z0-9]+)*$/);
    assertMatch(license, LICENSES, name);
    assert(bytes > 1e6 && Number.isSafeInteger(bytes), name);
    if (family !== undefined) assert(families.includes(`${family}.json`), `${name}: ${family}`);
    assert(hub !== undefined || files.length > 0, name);
    if (hub !== undefined) {
      const source = parseModelSource(hub);
      assertEquals([source.kind, source.text], ["hf", hub], name);
      assert(hub.replace(/@.*/, "").endsWith(`/${main}`), name);
    }
    assert(files.length === 0 || files.filter((file) => file.name === main).length === 1, name);
    for (const { name, bytes, sha256, members } of files) {
      assertEquals(/^[0-9a-f]{64}$/.test(sha256) && bytes > 0 && members.length > 0, true, name);
      for (const { package: pkg, version, member } of members) {
        assertEquals(parseModelSource(`pypi:${pkg}==${version}/${member}`).kind, "pypi");
      }
    }
  }
  const tasks = ["chat", "generate", "embed", "rerank", "classify", "fill-mask", "translate"];
  const found = new Set<string>([...catalogue.values()].map(({ task }) => task));
  assertEquals(tasks.filter((task) => !found.has(task)), []);
  assertEquals(catalogue.get("smollm2-135m")!.bytes, 98_362_432);
});
