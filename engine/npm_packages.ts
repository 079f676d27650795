// The npm packages that the product takes, imported when they are needed: `load` and `generate` fetch none. Names are
// put together here, because Deno fetches what stands as a text in an `import`, also in one that is never run. With
// `npm-lazy-caching` in deno.json it then fetches what is imported and what that needs, not all of deno.lock.

const VERSIONS = {
  "hono": "4.13.19",
  "prom-client": "15.1.3",
  "@nats-io/jetstream": "3.4.0",
  "@nats-io/transport-node": "3.4.0",
  "@ai-sdk/provider": "4.0.38",
  "@jsquash/jpeg": "1.6.0",
  "@jsquash/webp": "1.5.0",
  "mpg123-decoder": "1.0.3",
} as const;

// As texts, so that no tool that reads imports wonders what they are: `deno publish` warns of each.
const importModule = new Function("name", "return import(name)") as Importer;
// Source phase imports, which TypeScript does not know yet; V8 and Deno do.
const importSource = new Function("name", "return import.source(name)") as Importer;

type Importer = (name: string) => Promise<unknown>;

/** The packages. */
export type NpmPackage = keyof typeof VERSIONS;

/**
 * Imports a package. The caller says its type, which `import type` knows.
 *
 * @param path What of the package, with a slash in front.
 *
 * @example
 * ```ts ignore
 * const { Hono } = await importNpm<typeof import("hono")>("hono");
 * ```
 */
export async function importNpm<T>(name: NpmPackage, path = ""): Promise<T> {
  return await importNamed<T>(specifierOf(name) + path);
}

/** Imports by a whole specifier, such as `npm:echarts@6.1.0`; for packages that only one command takes. */
export async function importNamed<T>(specifier: string): Promise<T> {
  return await importModule(specifier) as T;
}

/**
 * A WebAssembly file of a package, compiled. It is loaded as a module and so, unlike a file of the cache that the
 * package opens by itself, without a permission to read.
 *
 * @param path Where it lies in the package, with a slash in front.
 */
export async function importNpmWasm(name: NpmPackage, path: string): Promise<WebAssembly.Module> {
  return await importSource(specifierOf(name) + path) as WebAssembly.Module;
}

/** Names with versions, for who compares them with deno.json. */
export function npmPackages(): readonly string[] {
  return Object.keys(VERSIONS).map((name) => specifierOf(name as NpmPackage));
}

function specifierOf(name: NpmPackage): string {
  return `npm:${name}@${VERSIONS[name]}`;
}
