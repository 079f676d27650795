// engine/npm_packages.ts for Node and Bun: packages are found as they find them, beside this one. Those that serving takes
// come with it; the others are for their user to install.

/** Imports a package. @throws {Error} If it is not installed, with the command that does. */
export async function importNpm<T>(name: string, path = ""): Promise<T> {
  try {
    return await import(name + path) as T;
  } catch (cause) {
    throw missing(name, cause);
  }
}

/** Imports by the specifier that Deno takes. @throws {Error} As {@linkcode importNpm}. */
export async function importNamed<T>(specifier: string): Promise<T> {
  return await importNpm(specifier.replace(/^npm:(.+)@[\d.]+$/, "$1"));
}

/** A WebAssembly file of a package, compiled. @throws {Error} As {@linkcode importNpm}. */
export async function importNpmWasm(name: string, path: string): Promise<WebAssembly.Module> {
  const { readFile } = await import("node:fs/promises");
  const { createRequire } = await import("node:module");
  try {
    const file = createRequire(import.meta.url).resolve(name + path);
    return await WebAssembly.compile(new Uint8Array(await readFile(file)));
  } catch (cause) {
    throw missing(name, cause);
  }
}

function missing(name: string, cause: unknown): unknown {
  const { code } = cause as { readonly code?: string };
  if (!/MODULE_NOT_FOUND/.test(code ?? "")) return cause;
  return new Error(`this needs the package ${name}: npm install ${name}`, { cause });
}
