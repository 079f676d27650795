// The table of Jinja's filters, and those that apply others by name. Marked text (`safe`, `escape`) goes through the few
// filters that leave it marked or only read it; the others would have to escape, and refuse it.

import { getAttribute, hasAttribute } from "./access.ts";
import { bind, type Call, textArgument } from "./call_arguments.ts";
import { fail } from "./failure.ts";
import { attributeOf, type Filter, itemsOf } from "./filter_arguments.ts";
import { LIST_FILTERS } from "./list_filters.ts";
import { FILTER_NAMES as NAMES } from "./predicates.ts";
import { REFUSED_FILTERS, refuseListed } from "./refused.ts";
import { TEXT_FILTERS } from "./text_filters.ts";
import {
  isDict,
  isMarkup,
  isTrue,
  listOfKind,
  markupValue,
  undefinedValue,
  type Value,
} from "./values.ts";

function mapItems(value: Value, call: Call): Value {
  if (!isTrue(value)) return listOfKind("generator", { items: [] });
  const items = itemsOf(value, call);
  const attribute = call.named.get("attribute");
  if (call.args.length === 0 && attribute !== undefined) {
    const fallback = call.named.get("default");
    for (const key of call.named.keys()) {
      if (key !== "attribute" && key !== "default") fail(`Unexpected keyword argument '${key}'`);
    }
    return listOfKind("generator", {
      items: items.map((item) => attributeOf(item, attribute, { budget: call.budget, fallback })),
    });
  }
  const [given, ...args] = call.args;
  const name = textArgument(given ?? fail("map requires a filter argument"));
  return listOfKind("generator", {
    items: items.map((item) => applyFilter(item, { ...call, name, args })),
  });
}

/** An attribute, never an item. */
function attribute(value: Value, call: Call): Value {
  const name = textArgument(bind(call, "name")[0]);
  return isDict(value) && !hasAttribute(value, name)
    ? undefinedValue(`'dict object' has no attribute '${name}'`)
    : getAttribute(value, { name, budget: call.budget });
}

const ROWS: ReadonlyMap<string, Filter> = new Map<string, Filter>([
  ...LIST_FILTERS,
  ...TEXT_FILTERS,
  ["attr", attribute],
  ["map", mapItems],
]);
for (const name of ROWS.keys()) NAMES.add(name);

/** Names of all filters. */
export const FILTER_NAMES: ReadonlySet<string> = NAMES;

/** What leaves marked text marked. */
const MARKED: readonly string[] = ["capitalize", "center", "lower", "string", "trim", "upper"];
/** What does to marked text as to any other. */
const READING: readonly string[] = [
  ...["count", "d", "default", "e", "escape", "first", "float", "forceescape", "int", "join"],
  ...["last", "length", "list", "map", "replace", "reverse", "safe", "title", "tojson"],
  ...["urlencode", "wordcount"],
];

function applyToMarked(text: string, call: Call, row: Filter): Value {
  if (MARKED.includes(call.name)) return markupValue(row(text, call) as string);
  return READING.includes(call.name)
    ? row(markupValue(text), call)
    : fail(`the filter '${call.name}' does not take marked text`);
}

/** Refuses the name of a filter that is not there. */
export function checkFilter(name: string, line = 0): void {
  refuseListed(name, { what: "filter", table: REFUSED_FILTERS, line });
  if (!ROWS.has(name)) fail(`No filter named '${name}'`, line);
}

/** Applies a filter. */
export function applyFilter(value: Value, call: Call): Value {
  checkFilter(call.name);
  const row = ROWS.get(call.name)!;
  return isMarkup(value) ? applyToMarked(value.text, call, row) : row(value, call);
}
