// Compiles wasm/assembly with AssemblyScript inside Deno, once for baseline SIMD and once for relaxed SIMD, and writes
// each into a wasm/kernels_*.gen.json as base64. The result is committed, so that a script needs neither a build step
// nor read permission; whether it is up to date is told by the hash of everything that the compiler sees.

import asc from "assemblyscript/asc";
import { GENERATED } from "../../wasm/gen/mod.ts";
import { CONTROL } from "../../wasm/layout.ts";

const ROOT = new URL("../../wasm/", import.meta.url);
/** Where a variant goes: files of their own, since a process needs one of them, and JSON, which costs no compiler. */
const target = (variant: string) => new URL(`kernels_${variant.toLowerCase()}.gen.json`, ROOT);
// Not -O3: it sinks the sums of a kernel into one long expression, whose loads V8 then does first and
// spills; hot tiles lose 30 % (wasm/gen/tiles.ts).
const OPTIONS = [
  ...["index.ts", "-o", "kernels.wasm", "-O1", "--runtime", "stub", "--noAssert"],
  ...["--importMemory", "--sharedMemory", "--initialMemory", "2", "--maximumMemory", "65536"],
  ...[
    "--memoryBase",
    String(CONTROL.END),
    "--use",
    "abort=",
    "--enable",
    "simd",
    "--enable",
    "threads",
  ],
];
const VARIANTS: Readonly<Record<string, readonly string[]>> = {
  BASELINE: [],
  RELAXED: ["--enable", "relaxed-simd"],
};

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
  const all = JSON.stringify([asc.version, OPTIONS, VARIANTS, [...texts]]);
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(all));
  return new Uint8Array(digest).toHex();
}

/** Compiles one variant; returns the module's bytes, or its text. */
export async function compileVariant(
  texts: ReadonlyMap<string, string>,
  variant: string,
  text = false,
): Promise<Uint8Array | string> {
  const outputs = new Map<string, Uint8Array | string>();
  const format = text ? ["-t", "kernels.wat"] : [];
  const { error, stderr } = await asc.main([...OPTIONS, ...VARIANTS[variant]!, ...format], {
    readFile: (name: string) => texts.get(name) ?? null,
    writeFile: (name: string, contents: Uint8Array | string) => {
      outputs.set(name, contents);
    },
    listFiles: () => [],
  });
  const output = outputs.get(text ? "kernels.wat" : "kernels.wasm");
  if (error !== null || output === undefined) {
    throw new Error(`Cannot compile wasm/assembly (${variant}): ${error}\n${stderr}`);
  }
  return output;
}

/** Names of the variants. */
export const VARIANT_NAMES: readonly string[] = Object.keys(VARIANTS);

/** Compiles and writes all variants. */
export async function writeKernels(): Promise<void> {
  const texts = await sources();
  const hash = await sourceHash(texts);
  for (const variant of VARIANT_NAMES) {
    const bytes = await compileVariant(texts, variant) as Uint8Array;
    console.log(`${variant.toLowerCase()}: ${bytes.length} bytes`);
    const content = { sourceHash: hash, module: bytes.toBase64() };
    await Deno.writeTextFile(target(variant), JSON.stringify(content, undefined, 1) + "\n");
  }
}

/** Files that are older than their sources. */
export async function staleKernels(): Promise<string[]> {
  const expected = `"${await sourceHash(await sources())}"`;
  const stale: string[] = [];
  for (const variant of VARIANT_NAMES) {
    const current = await Deno.readTextFile(target(variant)).catch(() => "");
    if (!current.includes(expected)) {
      stale.push(`wasm/${target(variant).pathname.split("/").at(-1)}`);
    }
  }
  return stale;
}
