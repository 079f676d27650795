import { assertEquals } from "@std/assert";
import plugin, { familyNames } from "./lint_plugin.ts";

function rulesBroken(file: string, source: string): string[] {
  return Deno.lint.runPlugin(plugin, file, source).map(({ id }) => id.replace("troodon/", ""));
}

Deno.test("layers: imports point one way", () => {
  assertEquals(rulesBroken("quant/a.ts", 'import { b } from "../engine/b.ts";'), ["layers"]);
  assertEquals(rulesBroken("wasm/a.ts", 'import type { b } from "../engine/b.ts";'), ["layers"]);
  assertEquals(rulesBroken("wasm/sub/a.ts", 'export * from "../../gpu/b.ts";'), ["layers"]);
  assertEquals(rulesBroken("gpu/a.ts", 'export { b } from "../engine/b.ts";'), ["layers"]);
  assertEquals(rulesBroken("engine/a.ts", 'await import("../mod.ts");'), ["layers"]);
  assertEquals(rulesBroken("mod.ts", 'export * from "./tests/a.ts";'), ["layers"]);
  assertEquals(rulesBroken("wasm/a.ts", 'import { b } from "../quant/b.ts";'), []);
  assertEquals(rulesBroken("engine/x/a.ts", 'import { b } from "../../wasm/b.ts";'), []);
  assertEquals(rulesBroken("engine/a_test.ts", 'import { b } from "../mod.ts";'), []);
  assertEquals(rulesBroken("engine/a.ts", 'import b from "npm:left-pad@1.3.0";'), ["layers"]);
  assertEquals(rulesBroken("engine/serve/a.ts", 'import { Hono } from "hono";'), ["layers"]);
  assertEquals(rulesBroken("engine/serve/a.ts", 'import type { Hono } from "hono";'), []);
  assertEquals(rulesBroken("engine/run/a.ts", 'import type { Hono } from "hono";'), ["layers"]);
  assertEquals(rulesBroken("quant/a.ts", 'import "node:crypto";'), ["layers"]);
  assertEquals(rulesBroken("engine/a.ts", 'import { createHash } from "node:crypto";'), []);
});

Deno.test("deno-api: the outside world is touched in a few files", () => {
  assertEquals(rulesBroken("engine/graph/a.ts", "Deno.readFileSync(p);"), ["deno-api"]);
  assertEquals(rulesBroken("quant/a.ts", "const e = Deno.env;"), ["deno-api"]);
  assertEquals(rulesBroken("quant/a.ts", "const { env } = Deno;"), ["deno-api"]);
  assertEquals(rulesBroken("quant/a.ts", "globalThis.Deno.exit();"), ["deno-api"]);
  assertEquals(rulesBroken("quant/a.ts", "let file: Deno.FsFile;"), []);
  assertEquals(rulesBroken("engine/io.ts", "Deno.readFileSync(p);"), []);
  assertEquals(rulesBroken("engine/cli/terminal.ts", "Deno.exit(1);"), []);
  assertEquals(rulesBroken("tools/a.ts", "Deno.exit(1);"), []);
});

Deno.test("no-math-random: randomness comes from seeds", () => {
  assertEquals(rulesBroken("engine/a.ts", "const x = Math.random();"), ["no-math-random"]);
  assertEquals(rulesBroken("tests/a.ts", "const x = Math.random();"), []);
});

Deno.test("no-module-let: the engine has no state at module level", () => {
  assertEquals(rulesBroken("engine/a.ts", "let x = 1;"), ["no-module-let"]);
  assertEquals(rulesBroken("engine/a.ts", "export let x = 1;"), ["no-module-let"]);
  assertEquals(rulesBroken("engine/a.ts", "function f() { let x = 1; return x; }"), []);
});

Deno.test("no-model-name: architectures are data", () => {
  const source = 'if (name === "gemma3") f(); switch (name) { case "qwen3": f(); }';
  assertEquals(rulesBroken("engine/models/a.ts", source), ["no-model-name", "no-model-name"]);
  for (
    const branch of [
      'name === "llama"',
      'name.startsWith("gemma")',
      '["x", "qwen2"].includes(name)',
      'names.includes("t5")',
      'known.has("command-r")',
      "/^gemma/.test(name)",
      'new Set(["half", "smollm3"]).has(name)',
    ]
  ) {
    assertEquals(rulesBroken("engine/a.ts", `if (${branch}) f();`), ["no-model-name"], branch);
  }
  for (const branch of ['kind === "half"', 'x.startsWith("ge")', '["half"].includes(x)']) {
    assertEquals(rulesBroken("engine/models/a.ts", `if (${branch}) f();`), [], branch);
  }
});

Deno.test("no-model-name: every name that a spec or a container has is known to the rule", () => {
  const names = familyNames();
  for (const name of ["gemma3", "gemma3_text", "gpt_neox", "gptneox", "command-r", "Yi"]) {
    assertEquals(names.has(name), true, name);
  }
  for (const name of names) {
    const source = `if (type === ${JSON.stringify(name)}) f();`;
    assertEquals(rulesBroken("engine/models/a.ts", source), ["no-model-name"], name);
  }
});

Deno.test("short-function: 120 lines a function", () => {
  const lines = (count: number) => "  x();\n".repeat(count - 2);
  assertEquals(rulesBroken("quant/a.ts", `function f() {\n${lines(120)}}`), []);
  assertEquals(rulesBroken("quant/a.ts", `function f() {\n${lines(121)}}`), ["short-function"]);
  assertEquals(rulesBroken("gpu/a.ts", `const f = () => {\n${lines(121)}};`), ["short-function"]);
  assertEquals(rulesBroken("tools/a.ts", `function f() {\n${lines(121)}}`), []);
});

Deno.test("few-positionals: two and an options object, three within a file", () => {
  const broken = (parameters: string, lead = "export ") =>
    rulesBroken("engine/a.ts", `${lead}function f(${parameters}) {}`);
  assertEquals(broken("a, b, c"), ["few-positionals"]);
  assertEquals(broken("a, b, c: number[]"), ["few-positionals"]);
  assertEquals(broken("a, b"), []);
  for (const last of ["{ c }", "{ c } = {}", "options", "c: { d: 1 }", "c: LoadOptions", "...c"]) {
    assertEquals(broken(`a, b, ${last}`), [], last);
  }
  assertEquals(broken("a, b, c", ""), []);
  assertEquals(broken("a, b, c, d", "async "), ["few-positionals"]);
  assertEquals(rulesBroken("quant/a.ts", "export function f(a, b, c) {}"), []);
});
