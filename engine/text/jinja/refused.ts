// Built-ins of Jinja 3.1.6, and of the Python objects that templates reach, that are not built: each is refused by its
// name with the reason, where Jinja would do something. What is in none of the tables of this folder is unknown
// to Jinja, too; tests/fixtures/jinja/builtins.json has its own lists.

import { fail } from "./failure.ts";

const RANDOM = "its result is left to chance";
const HTML = "it is for pages of HTML";
const OTHER_TEMPLATES = "it needs other templates, which a chat template does not have";
const BYTES = "templates have no bytes";
const TABLES = "its tables are not built";

/** Filters. */
export const REFUSED_FILTERS: ReadonlyMap<string, string> = new Map([
  ["pprint", "how it breaks lines is Python's own"],
  ["random", RANDOM],
  ["striptags", HTML],
  ["urlize", HTML],
  ["wordwrap", "how it breaks lines is Python's own"],
  ["xmlattr", HTML],
]);

/** Global functions. */
export const REFUSED_GLOBALS: ReadonlyMap<string, string> = new Map([["lipsum", RANDOM]]);

/** Tags. */
export const REFUSED_TAGS: ReadonlyMap<string, string> = new Map([
  ["autoescape", HTML],
  ["block", OTHER_TEMPLATES],
  ["extends", OTHER_TEMPLATES],
  ["from", OTHER_TEMPLATES],
  ["import", OTHER_TEMPLATES],
  ["include", OTHER_TEMPLATES],
]);

/** Attributes by type that Python has. */
export const REFUSED_ATTRIBUTES: Readonly<Record<string, ReadonlyMap<string, string>>> = {
  str: new Map([["encode", BYTES], ["maketrans", TABLES], ["translate", TABLES]]),
  dict: new Map([["fromkeys", "write the dict out"]]),
  int: numberAttributes(
    ["as_integer_ratio", "bit_count", "bit_length", "conjugate", "denominator", "from_bytes"],
    ["imag", "numerator", "real", "to_bytes"],
  ),
  float: numberAttributes(
    ["as_integer_ratio", "conjugate", "fromhex", "hex", "imag", "is_integer", "real"],
  ),
};

function numberAttributes(...names: readonly string[][]): ReadonlyMap<string, string> {
  return new Map(names.flat().map((name) => [name, "numbers have no attributes here"]));
}

/** Methods that change their object, which Jinja's sandbox refuses itself. */
export const UNSAFE_ATTRIBUTES: Readonly<Record<string, readonly string[]>> = {
  list: ["append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"],
  dict: ["clear", "pop", "popitem", "setdefault", "update"],
};

/** Refuses a name that a table lists, and passes any other. */
export function refuseListed(
  name: string,
  { what, table, line = 0 }: { what: string; table: ReadonlyMap<string, string>; line?: number },
): void {
  const reason = table.get(name);
  if (reason !== undefined) fail(`the ${what} '${name}' is not supported: ${reason}`, line);
}
