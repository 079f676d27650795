// engine/npm_packages.ts for browsers: what needs a package is refused by name.

import { UnsupportedError } from "../../errors.ts";

function refuse(name: string): never {
  throw new UnsupportedError(
    `this needs the package ${name}, which is not in the browser's bundle`,
  );
}

/** Refuses. @throws {UnsupportedError} */
export async function importNpm(name: string): Promise<never> {
  return await refuse(name);
}

/** Refuses. @throws {UnsupportedError} */
export async function importNamed(specifier: string): Promise<never> {
  return await refuse(specifier);
}

/** Refuses. @throws {UnsupportedError} */
export async function importNpmWasm(name: string): Promise<never> {
  return await refuse(name);
}
