// Macros in the values of a configuration: `${x}` and `$(x)` stand for another value, whose own macros are
// expanded too, ten deep. `x` is `section/key`, a built-in name, or a key of the same section; of anything
// else the bare name remains, and a warning says so. A `$` that opens nothing is a dollar.

import { FormatError } from "../../errors.ts";
import type { IniFile } from "./ini.ts";

/** Depth of expansion that is still taken for no circle. */
const MAX_DEPTH = 10;
/** No value of a configuration is longer; ten levels of doubling could be. */
const MAX_LENGTH = 1_000_000;

/** What macros can stand for. */
export interface MacroScope {
  readonly file: IniFile;
  /** Section of the value, for keys beside it. */
  readonly section: string;
  /** By name. `data_root_dir` also answers to `DataRootDir`. */
  readonly builtIn: ReadonlyMap<string, string>;
  /** Told of names that stand for nothing; one sentence. */
  warn(message: string): void;
}

/**
 * Expands the macros of a value.
 *
 * @throws {FormatError} If they go in a circle, or the value grows beyond a million characters.
 */
export function expandMacros(
  text: string,
  { scope, depth = 0 }: { readonly scope: MacroScope; readonly depth?: number | undefined },
): string {
  if (depth > MAX_DEPTH) {
    throw new FormatError(`macros are nested deeper than ${MAX_DEPTH}: ${text.slice(0, 60)}`, {
      file: scope.file.name,
      place: `[${scope.section}]`,
      remedy: "Check for one that stands for itself",
    });
  }
  let length = 0;
  return text.replace(/\$(?:\{([^{}]*)\}|\(([^()]*)\))/g, (_, braced, round) => {
    const name = ((braced ?? round) as string).trim();
    const found = lookUp(name, scope);
    const value = found?.isFinal ? found.text : found &&
      expandMacros(found.text, { scope: { ...scope, section: found.section }, depth: depth + 1 });
    if (value === undefined) {
      scope.warn(`${scope.file.name}, [${scope.section}]: macro ${name} stands for nothing`);
    }
    length += value?.length ?? name.length;
    if (length > MAX_LENGTH) {
      throw new FormatError(`macros make a value of more than ${MAX_LENGTH} characters`, {
        file: scope.file.name,
        place: `[${scope.section}]`,
      });
    }
    return value ?? name;
  });
}

interface Found {
  readonly text: string;
  readonly section: string;
  /** Nothing in it is a macro. */
  readonly isFinal?: boolean;
}

function lookUp(name: string, { file, section, builtIn }: MacroScope): Found | undefined {
  const slash = name.lastIndexOf("/");
  if (slash > 0) {
    const other = name.slice(0, slash);
    const value = file.sections.get(other)?.get(name.slice(slash + 1));
    return value && { text: value.text, section: other };
  }
  const known = builtIn.get(name) ?? builtIn.get(snakeCase(name));
  // A built-in value is what it is: paths may hold dollars.
  if (known !== undefined) return { text: known, section, isFinal: true };
  const beside = file.sections.get(section)?.get(name);
  return beside && { text: beside.text, section };
}

function snakeCase(name: string): string {
  return name.replace(/([a-z0-9])([A-Z])/g, "$1_$2").toLowerCase();
}
