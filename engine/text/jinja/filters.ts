// Jinja's filters: one row for each. Those of plain Jinja that chat templates use or might use; the
// ones that make HTML (urlize, xmlattr …), random choice and `pprint` are left out and refused by name.

import { bind, type Call, integerArgument, textArgument } from "./call_arguments.ts";
import { fail } from "./failure.ts";
import { applyPredicate, PREDICATE_NAMES } from "./predicates.ts";
import { jsonText, plainText } from "./python_text.ts";
import { capitalizeText, joinTexts, lengthOf, replaceText, strip } from "./text_methods.ts";
import {
  areEqual,
  compare,
  defined,
  dictKey,
  floatValue,
  integerValue,
  isDict,
  isFloat,
  isList,
  isNumber,
  isTrue,
  isUndefined,
  iterate,
  plainNumber,
  tupleValue,
  typeName,
  undefinedValue,
  type Value,
} from "./values.ts";

/** A filter: the value in front of the bar, and the arguments. */
export type Filter = (value: Value, call: Call) => Value;

function asText(value: Value, call: Call): string {
  return plainText(value, call.budget);
}

function itemsOf(value: Value, call: Call): readonly Value[] {
  const items = iterate(value);
  call.budget.spend(items.length);
  return items;
}

function asNumber(value: Value): number {
  defined(value);
  return isNumber(value) ? plainNumber(value) : fail(`expected a number, not ${typeName(value)}`);
}

/** `a.b.0` of a value, as filters that take an attribute read it. */
function attributeOf(value: Value, path: Value): Value {
  if (isUndefined(path) || path === null) return value;
  const parts = typeof path === "number" ? [path] : textArgument(path).split(".");
  return parts.reduce<Value>((object, part) => {
    const key = typeof part === "string" && /^\d+$/.test(part) ? Number(part) : part;
    const found = isDict(object)
      ? object.get(key)
      : isList(object) && typeof key === "number"
      ? object[key]
      : undefined;
    return found ?? undefinedValue(`there is no attribute '${key}'`);
  }, value);
}

function sorted(
  items: readonly Value[],
  isReversed: boolean,
  isCased: boolean,
  by: Value,
): Value[] {
  const keyed = items.map((item) => ({ item, key: foldCase(attributeOf(item, by), isCased) }));
  const direction = isReversed ? -1 : 1;
  return keyed.sort((a, b) => direction * compare(a.key, b.key)).map(({ item }) => item);
}

function foldCase(value: Value, isCased: boolean): Value {
  return typeof value === "string" && !isCased ? value.toLowerCase() : value;
}

function extreme(sign: number): Filter {
  return (value, call) => {
    const [isCased, by] = bind(call, "case_sensitive", "attribute");
    const items = sorted(itemsOf(value, call), sign < 0, isTrue(isCased), by);
    return items[0] ?? undefinedValue("the list is empty");
  };
}

/** select, reject, selectattr and rejectattr: the test's name and argument come last. */
function choosing(keeps: boolean, hasAttribute: boolean): Filter {
  return (value, call) => {
    const [path, rest] = hasAttribute
      ? [call.args[0] ?? fail(`${call.name} needs an attribute`), call.args.slice(1)]
      : [null, call.args];
    const [test, argument = undefinedValue("the test needs an argument")] = rest;
    const name = test === undefined ? undefined : textArgument(test);
    if (name !== undefined && !PREDICATE_NAMES.has(name)) fail(`No test named '${name}'`);
    return itemsOf(value, call).filter((item) => {
      const tested = attributeOf(item, path);
      const holds = name === undefined ? isTrue(tested) : applyPredicate(name, tested, argument);
      return holds === keeps;
    });
  };
}

function mapItems(value: Value, call: Call): Value {
  const items = itemsOf(value, call);
  const attribute = call.named.get("attribute");
  if (attribute !== undefined) {
    const fallback = call.named.get("default");
    return items.map((item) => {
      const found = attributeOf(item, attribute);
      return isUndefined(found) && fallback !== undefined ? fallback : found;
    });
  }
  const [name, ...args] = call.args;
  const filterName = textArgument(name ?? fail("map needs a filter or an attribute"));
  return items.map((item) => applyFilter(item, { ...call, name: filterName, args }));
}

function groupBy(value: Value, call: Call): Value {
  const [attribute, fallback] = bind(call, "attribute", "default");
  const groups: { key: Value; items: Value[] }[] = [];
  for (const item of sorted(itemsOf(value, call), false, false, attribute)) {
    const found = attributeOf(item, attribute);
    const key = isUndefined(found) && !isUndefined(fallback) ? fallback : found;
    const last = groups.at(-1);
    if (last !== undefined && areEqual(last.key, key)) last.items.push(item);
    else groups.push({ key, items: [item] });
  }
  return groups.map(({ key, items }) => tupleValue([key, items]));
}

function indent(value: Value, call: Call): Value {
  const [width, first, blank] = bind(call, "width", "first", "blank");
  const margin = typeof width === "string" ? width : " ".repeat(marginWidth(width));
  const lines = asText(value, call).split("\n");
  call.budget.spend(lines.length * (margin.length + 1));
  return lines.map((line, i) => {
    const isPlain = i === 0 ? !isTrue(first) : line === "" && !isTrue(blank);
    return isPlain ? line : margin + line;
  }).join("\n");
}

function marginWidth(width: Value): number {
  const spaces = integerArgument(width, 4);
  return spaces >= 0 && spaces <= 1000 ? spaces : fail(`cannot indent by ${spaces}`);
}

function toJson(value: Value, call: Call): Value {
  const [indentation, ensureAscii, separators, sortKeys] = bind(
    call,
    "indent",
    "ensure_ascii",
    "separators",
    "sort_keys",
  );
  const hasIndent = !isUndefined(indentation) && indentation !== null;
  const [item, key] = isList(separators) ? separators.map((text) => textArgument(text)) : [];
  return jsonText(value, {
    indent: !hasIndent
      ? undefined
      : typeof indentation === "string"
      ? indentation
      : " ".repeat(marginWidth(indentation)),
    itemSeparator: item ?? (hasIndent ? "," : ", "),
    keySeparator: key ?? ": ",
    sortKeys: isTrue(sortKeys),
    ensureAscii: isTrue(ensureAscii),
  }, call.budget);
}

function toInteger(value: Value, call: Call): Value {
  const [fallback, base] = bind(call, "default", "base");
  if (isNumber(value)) return integerValue(Math.trunc(plainNumber(value)));
  const text = typeof value === "string" ? strip(value, null, true, true) : "";
  const radix = integerArgument(base, 10);
  if (radix === 10 && /^[+-]?\d+(\.\d*)?([eE][+-]?\d+)?$/.test(text)) {
    return integerValue(Math.trunc(Number(text)));
  }
  const parsed = parseInt(text, radix);
  return radix !== 10 && !Number.isNaN(parsed)
    ? integerValue(parsed)
    : integerArgument(fallback, 0);
}

function toFloat(value: Value, call: Call): Value {
  const [fallback] = bind(call, "default");
  if (isNumber(value)) return floatValue(plainNumber(value));
  const text = typeof value === "string" ? strip(value, null, true, true) : "";
  const parsed = text === "" ? NaN : Number(text);
  if (!Number.isNaN(parsed)) return floatValue(parsed);
  return isUndefined(fallback) ? floatValue(0) : fallback;
}

function round(value: Value, call: Call): Value {
  const [precision, method] = bind(call, "precision", "method");
  const scale = 10 ** integerArgument(precision, 0);
  const scaled = asNumber(value) * scale;
  const name = textArgument(method, "common");
  const rules: Readonly<Record<string, (x: number) => number>> = {
    common: roundHalfEven,
    ceil: Math.ceil,
    floor: Math.floor,
  };
  const rule = Object.hasOwn(rules, name) ? rules[name] : fail(`cannot round by '${name}'`);
  return floatValue(rule(scaled) / scale);
}

function roundHalfEven(x: number): number {
  const low = Math.floor(x);
  if (x - low !== 0.5) return Math.round(x);
  return low % 2 === 0 ? low : low + 1;
}

function unique(value: Value, call: Call): Value {
  const [isCased, by] = bind(call, "case_sensitive", "attribute");
  const seen = new Set<Value>();
  return itemsOf(value, call).filter((item) => {
    const key = dictKey(foldCase(attributeOf(item, by), isTrue(isCased)));
    return !seen.has(key) && seen.add(key);
  });
}

function truncate(value: Value, call: Call): Value {
  const [length, killWords, end, leeway] = bind(call, "length", "killwords", "end", "leeway");
  const text = asText(value, call);
  const most = integerArgument(length, 255);
  const mark = textArgument(end, "...");
  if (lengthOf(text) <= most + integerArgument(leeway, 5)) return text;
  const head = Array.from(text).slice(0, Math.max(0, most - lengthOf(mark))).join("");
  const cut = head.lastIndexOf(" ");
  return (isTrue(killWords) || cut < 0 ? head : head.slice(0, cut)) + mark;
}

function batch(value: Value, call: Call): Value {
  const [count, filler] = bind(call, "linecount", "fill_with");
  const size = integerArgument(count);
  if (size < 1) fail(`cannot make batches of ${size}`);
  const items = itemsOf(value, call);
  const rows: Value[][] = [];
  for (let i = 0; i < items.length; i += size) rows.push(items.slice(i, i + size));
  const last = rows.at(-1);
  if (last !== undefined && !isUndefined(filler) && filler !== null) {
    call.budget.spend(size);
    while (last.length < size) last.push(filler);
  }
  return rows;
}

function dictSort(value: Value, call: Call): Value {
  const [isCased, by, isReversed] = bind(call, "case_sensitive", "by", "reverse");
  if (!isDict(value)) return fail(`expected a dict, not ${typeName(value)}`);
  call.budget.spend(value.size);
  const place = textArgument(by, "key") === "value" ? 1 : 0;
  const pairs: Value[] = Array.from(value, tupleValue);
  return sorted(pairs, isTrue(isReversed), isTrue(isCased), place);
}

function length(value: Value): Value {
  if (isUndefined(value)) return 0;
  if (typeof value === "string") return lengthOf(value);
  if (isList(value)) return value.length;
  return isDict(value) ? value.size : fail(`a ${typeName(value)} has no length`);
}

function escapeHtml(value: Value, call: Call): Value {
  const names: Readonly<Record<string, string>> = {
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    "'": "&#39;",
    '"': "&#34;",
  };
  const text = asText(value, call);
  call.budget.spend(5 * text.length);
  return text.replace(/[&<>'"]/g, (char) => names[char]);
}

function join(value: Value, call: Call): Value {
  const [separator, attribute] = bind(call, "d", "attribute");
  const texts = itemsOf(value, call).map((item) => asText(attributeOf(item, attribute), call));
  return joinTexts(texts, textArgument(separator, ""), call);
}

const fallbackTo: Filter = (value, call) => {
  const [fallback, alsoFalse] = bind(call, "default_value", "boolean");
  const isMissing = isUndefined(value) || (isTrue(alsoFalse) && !isTrue(value));
  return isMissing ? (isUndefined(fallback) ? "" : fallback) : value;
};

const ROWS: ReadonlyMap<string, Filter> = new Map<string, Filter>([
  ["abs", (value) => {
    const size = Math.abs(asNumber(value));
    return isFloat(value) ? floatValue(size) : size;
  }],
  ["attr", (value, call) => attributeOf(value, bind(call, "name")[0])],
  ["batch", batch],
  ["capitalize", (value, call) => capitalizeText(asText(value, call))],
  ["count", length],
  ["d", fallbackTo],
  ["default", fallbackTo],
  ["dictsort", dictSort],
  ["e", escapeHtml],
  ["escape", escapeHtml],
  ["first", (value, call) => itemsOf(value, call)[0] ?? undefinedValue("the list is empty")],
  ["float", toFloat],
  ["groupby", groupBy],
  ["indent", indent],
  ["int", toInteger],
  ["items", (value) => isDict(value) ? Array.from(value, tupleValue) : []],
  ["join", join],
  ["last", (value, call) => itemsOf(value, call).at(-1) ?? undefinedValue("the list is empty")],
  ["length", length],
  ["list", (value, call) => [...itemsOf(value, call)]],
  ["lower", (value, call) => asText(value, call).toLowerCase()],
  ["map", mapItems],
  ["max", extreme(-1)],
  ["min", extreme(1)],
  ["reject", choosing(false, false)],
  ["rejectattr", choosing(false, true)],
  ["replace", (value, call) => replaceText(asText(value, call), call)],
  ["reverse", (value, call) => {
    const items = itemsOf(value, call).toReversed();
    return typeof value === "string" ? items.join("") : items;
  }],
  ["round", round],
  ["safe", (value, call) => asText(value, call)],
  ["select", choosing(true, false)],
  ["selectattr", choosing(true, true)],
  ["sort", (value, call) => {
    const [isReversed, isCased, by] = bind(call, "reverse", "case_sensitive", "attribute");
    return sorted(itemsOf(value, call), isTrue(isReversed), isTrue(isCased), by);
  }],
  ["string", (value, call) => asText(value, call)],
  ["sum", (value, call) => {
    const [by, start] = bind(call, "attribute", "start");
    const numbers = itemsOf(value, call).map((item) => attributeOf(item, by));
    if (!isUndefined(start)) numbers.push(start);
    const sum = numbers.reduce<number>((total, item) => total + asNumber(item), 0);
    return numbers.some(isFloat) ? floatValue(sum) : integerValue(sum);
  }],
  // Not the method of the same name: words end at blanks, dashes and opening brackets only.
  [
    "title",
    (value, call) => asText(value, call).replace(/[^-\s({[<]+/gu, (word) => capitalizeText(word)),
  ],
  ["tojson", toJson],
  ["trim", (value, call) => strip(asText(value, call), bind(call, "chars")[0], true, true)],
  ["truncate", truncate],
  ["unique", unique],
  ["upper", (value, call) => asText(value, call).toUpperCase()],
  ["urlencode", (value, call) => encodeURIComponent(asText(value, call)).replaceAll("%2F", "/")],
  ["wordcount", (value, call) => asText(value, call).match(/[\p{L}\p{N}_]+/gu)?.length ?? 0],
]);

/** Names of all filters. */
export const FILTER_NAMES: ReadonlySet<string> = new Set(ROWS.keys());

/** Applies a filter. */
export function applyFilter(value: Value, call: Call): Value {
  const row = ROWS.get(call.name);
  return row === undefined ? fail(`No filter named '${call.name}'`) : row(value, call);
}
