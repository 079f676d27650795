// The npm packages that serving takes, imported when they are needed: `load` and `generate` fetch none. Names are put
// together here, because Deno fetches what stands as a text in an `import`, also in one that is never run. With
// `npm-lazy-caching` in deno.json it then fetches what is imported and what that needs, not all of deno.lock.

const VERSIONS = {
  "hono": "4.13.19",
  "prom-client": "15.1.3",
  "@nats-io/jetstream": "3.4.0",
  "@nats-io/transport-node": "3.4.0",
  "@ai-sdk/provider": "4.0.38",
} as const;

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
  const specifier = `npm:${name}@${VERSIONS[name]}${path}`;
  return await import(specifier) as T;
}

/** Names with versions, for who compares them with deno.json. */
export function npmPackages(): readonly string[] {
  return Object.entries(VERSIONS).map(([name, version]) => `npm:${name}@${version}`);
}
