// Modules of Node that every runtime carries, taken when they are first used. An import at the head of a file costs each
// script that names the engine: node:zlib alone is 40 ms of a start in Deno, with all the streams behind it.

import { UnsupportedError } from "./errors.ts";

interface Builtins {
  readonly "node:crypto": typeof import("node:crypto");
  readonly "node:zlib": typeof import("node:zlib");
}

/**
 * A built-in module, at once.
 *
 * @throws {UnsupportedError} Where there is none, as in a browser.
 */
export function builtin<Name extends keyof Builtins>(name: Name): Builtins[Name] {
  const { process } = globalThis as {
    readonly process?: { getBuiltinModule?(name: string): unknown };
  };
  const found = process?.getBuiltinModule?.(name);
  if (found) return found as Builtins[Name];
  throw new UnsupportedError(`this needs ${name}, which only Deno, Node and Bun have`);
}
