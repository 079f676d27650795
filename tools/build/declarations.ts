// Declarations for TypeScript outside Deno: a file for each source that the entries name, written by the compiler from that
// source alone. The rules of JSR, which everything public keeps (`deno lint`), are what makes that possible; where a file
// behind it has a type that its text does not say, nobody outside can name it.

import ts from "typescript";
import { ROOT } from "../support/task.ts";

const OPTIONS: ts.CompilerOptions = {
  declaration: true,
  emitDeclarationOnly: true,
  isolatedDeclarations: true,
  target: ts.ScriptTarget.ESNext,
  module: ts.ModuleKind.ESNext,
};

/** What declarations name beyond the library that a project has by default; it lies at the root. */
const GLOBALS = "globals.d.ts";
const GLOBALS_TEXT = `/// <reference lib="dom" />
/// <reference lib="esnext.disposable" />
/// <reference lib="esnext.float16" />
// Merges with the interfaces of a library that knows WebGPU.
interface GPUAdapter {}
interface GPUBuffer {}
interface GPUDevice {}
interface GPURequestAdapterOptions {}
interface GPUTextureView {}
`;

const RELATIVE = /((?:from|import)\s*\(?\s*["']\.{1,2}\/[^"']+)\.ts(["'])/g;
/** TypeScript indents by four, this project by two. */
const INDENTS = /^(?: {4})+/gm;
/** TypeScript 5.9 writes a method with such a name twice, once as a property. */
const TWICE = /^ *\[Symbol\.\w+\]: .*;\n(?=[\s\S]*^ *\[Symbol\.)/gm;

/** Path of a source's declarations. */
export function declarationPath(source: string): string {
  return source.replace(/\.ts$/, ".d.ts");
}

function declare(path: string): string {
  const source = Deno.readTextFileSync(`${ROOT}/${path}`);
  const { outputText } = ts.transpileDeclaration(source, {
    fileName: path,
    compilerOptions: OPTIONS,
  });
  return outputText.replace(RELATIVE, "$1.js$2").replace(TWICE, "")
    .replace(INDENTS, (indent) => indent.slice(indent.length / 2));
}

/** By path, declarations of the entries and of what they name. */
export function declarations(entries: readonly string[]): ReadonlyMap<string, string> {
  const found = new Map<string, string>([[GLOBALS, GLOBALS_TEXT]]);
  const waiting = [...entries];
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    const target = declarationPath(path);
    if (found.has(target)) continue;
    const text = declare(path);
    const up = "../".repeat(path.split("/").length - 1) || "./";
    const head = entries.includes(path) ? `/// <reference path="${up}${GLOBALS}" />\n` : "";
    found.set(target, head + text);
    for (const [, name] of text.matchAll(/["'](\.{1,2}\/[^"']+)\.js["']/g)) {
      waiting.push(new URL(`${name}.ts`, `file:///${path}`).pathname.slice(1));
    }
  }
  return found;
}
