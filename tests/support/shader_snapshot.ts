// The text of shaders, compared with a file beside their test: a change of a template is a readable diff there.
// `deno test -A TEST -- --update` writes the file anew.

import { assertEquals } from "@std/assert";
import type { Shader } from "../../gpu/kernel.ts";
import { shaderText } from "../../gpu/wgsl.ts";

/** Text of a shader on memory of any kind. */
export function textOf(shader: Shader): string {
  const memory = Object.fromEntries(
    Object.keys(shader.storage).map((name) => [name, { access: "either" as const }]),
  );
  return `// ${shader.name}\n${shaderText(shader, memory)}`;
}

/** Compares the texts with the file. */
export function checkSnapshot(file: URL, shaders: readonly Shader[]): void {
  const text = shaders.map(textOf).join("\n");
  if (Deno.args.includes("--update")) Deno.writeTextFileSync(file, text);
  assertEquals(text.split("\n"), Deno.readTextFileSync(file).split("\n"));
}
