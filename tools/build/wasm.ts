// Compiles wasm/assembly with AssemblyScript inside Deno, once for baseline SIMD and once for relaxed SIMD, and the small
// module for lists of strings, and writes each into a wasm/*.gen.json as base64. The result is committed, so that a
// script needs neither a build step nor read permission; whether it is up to date is told by the hash of everything
// that the compiler sees.

import asc from "assemblyscript/asc";
import { GENERATED } from "../../wasm/gen/mod.ts";
import { CONTROL } from "../../wasm/layout.ts";

const ROOT = new URL("../../wasm/", import.meta.url);
// Not -O3: it sinks the sums of a kernel into one long expression, whose loads V8 then does first and
// spills; hot tiles lose 30 % (wasm/gen/tiles.ts).
const OPTIONS = [
  ...["-o", "kernels.wasm", "-O1", "--runtime", "stub", "--noAssert", "--importMemory"],
  ...["--use", "abort="],
];
const KERNELS = [
  ...["index.ts", "--sharedMemory", "--initialMemory", "2", "--maximumMemory", "65536"],
  ...["--memoryBase", String(CONTROL.END), "--enable", "simd", "--enable", "threads"],
];
/** Options by the name of what is written: files of their own, since a process needs few of them, and JSON, which costs
 * no compiler. */
const MODULES: Readonly<Record<string, readonly string[]>> = {
  kernels_baseline: KERNELS,
  kernels_relaxed: [...KERNELS, "--enable", "relaxed-simd"],
  strings: ["text/strings.ts"],
};
const target = (name: string) => new URL(`${name}.gen.json`, ROOT);

/** Every source text by the path under which the compiler asks for it. */
export async function sources(): Promise<Map<string, string>> {
  const names: string[] = [];
  const walk = async (folder: string): Promise<void> => {
    for await (const { name, isDirectory } of Deno.readDir(new URL(`assembly/${folder}`, ROOT))) {
      if (isDirectory) await walk(`${folder}${name}/`);
      if (name.endsWith(".ts")) names.push(folder + name);
    }
  };
  await walk("");
  const texts = new Map<string, string>();
  for (const name of names.sort()) {
    texts.set(name, await Deno.readTextFile(new URL(`assembly/${name}`, ROOT)));
  }
  for (const name of Object.keys(GENERATED).sort()) {
    texts.set(`generated/${name}.ts`, GENERATED[name]!());
  }
  return texts;
}

/** SHA-256 over options and sources, in hexadecimal. */
export async function sourceHash(texts: ReadonlyMap<string, string>): Promise<string> {
  const all = JSON.stringify([asc.version, OPTIONS, MODULES, [...texts]]);
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(all));
  return new Uint8Array(digest).toHex();
}

/** Compiles one module; returns its bytes, or its text. */
export async function compileModule(
  texts: ReadonlyMap<string, string>,
  name: string,
  text = false,
): Promise<Uint8Array | string> {
  const outputs = new Map<string, Uint8Array | string>();
  const format = text ? ["-t", "kernels.wat"] : [];
  const { error, stderr } = await asc.main([...MODULES[name]!, ...OPTIONS, ...format], {
    readFile: (name: string) => texts.get(name) ?? null,
    writeFile: (name: string, contents: Uint8Array | string) => {
      outputs.set(name, contents);
    },
    listFiles: () => [],
  });
  const output = outputs.get(text ? "kernels.wat" : "kernels.wasm");
  if (error !== null || output === undefined) {
    throw new Error(`Cannot compile wasm/assembly (${name}): ${error}\n${stderr}`);
  }
  return output;
}

/** Names of the modules. */
export const MODULE_NAMES: readonly string[] = Object.keys(MODULES);

/** Compiles and writes all modules. */
export async function writeKernels(): Promise<void> {
  const texts = await sources();
  const hash = await sourceHash(texts);
  for (const name of MODULE_NAMES) {
    const bytes = await compileModule(texts, name) as Uint8Array;
    console.log(`${name}: ${bytes.length} bytes`);
    const content = { sourceHash: hash, module: bytes.toBase64() };
    await Deno.writeTextFile(target(name), JSON.stringify(content, undefined, 1) + "\n");
  }
}

/** Files that are older than their sources. */
export async function staleKernels(): Promise<string[]> {
  const expected = `"${await sourceHash(await sources())}"`;
  const stale: string[] = [];
  for (const name of MODULE_NAMES) {
    const current = await Deno.readTextFile(target(name)).catch(() => "");
    if (!current.includes(expected)) stale.push(`wasm/${name}.gen.json`);
  }
  return stale;
}
