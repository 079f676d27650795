// Attributes, items and slices: what Jinja's sandbox gives for `a.b`, `a[b]` and `a[b:c]`. A missing one is an
// undefined value, not an error; what Python has and this interpreter has not is refused (refused.ts).

import type { Budget } from "./budget.ts";
import { bind, type Call, integerArgument } from "./call_arguments.ts";
import { fail } from "./failure.ts";
import { formatBraces } from "./format_text.ts";
import { plainText } from "./python_text.ts";
import { REFUSED_ATTRIBUTES, refuseListed, UNSAFE_ATTRIBUTES } from "./refused.ts";
import { DICT_METHODS, LIST_METHODS, type Method, TEXT_METHODS } from "./text_methods.ts";
import {
  callable,
  defined,
  type Dict,
  dictKey,
  isCallable,
  isDict,
  isFloat,
  isIndexed,
  isList,
  isMarkup,
  isNamespace,
  isNumber,
  isTuple,
  isUndefined,
  kindOf,
  listOfKind,
  markupValue,
  plainNumber,
  textOf,
  typeName,
  undefinedValue,
  type Value,
} from "./values.ts";

function bindMethod<T extends Value>(
  method: Method<T>,
  { self, name, budget }: { readonly self: T; readonly name: string; readonly budget: Budget },
): Value {
  return callable(name, (args, named) => method(self, { name, args, named, budget }));
}

/** Methods of text that leave it marked; others that give text would have to escape. */
const MARKED: readonly string[] = [
  ...["capitalize", "casefold", "lower", "lstrip", "rstrip", "strip", "swapcase", "title"],
  "upper",
];

/** Methods that give numbers and truths. */
const READING = /^(?:is|r?find$|r?index$|count$|startswith$|endswith$)/;

function markupMethod(text: string, name: string, budget: Budget): Value | undefined {
  const method = TEXT_METHODS.get(name);
  if (method === undefined) return undefined;
  return bindMethod(
    (self: string, call: Call) => {
      if (MARKED.includes(name)) return markupValue(method(self, call) as string);
      return READING.test(name)
        ? method(self, call)
        : fail(`'${name}' of marked text is not supported`);
    },
    { self: text, name, budget },
  );
}

/** `format` and `format_map` of texts. */
export const FORMAT_METHODS: ReadonlyMap<string, Method<string>> = new Map<string, Method<string>>([
  [
    "format",
    (text, { args, named, budget }) =>
      formatBraces(text, { args, named, budget, reach: { getAttribute, getItem } }),
  ],
  ["format_map", (text, call) => {
    const [named] = bind(call, "mapping");
    if (!isDict(named)) return fail(`format_map needs a dict, not ${typeName(named)}`);
    const { budget } = call;
    return formatBraces(text, { args: [], named, budget, reach: { getAttribute, getItem } });
  }],
]);

function findMethod(object: Value, name: string, budget: Budget): Value | undefined {
  const wrap = <T extends Value>(method: Method<T> | undefined, self: T) =>
    method && bindMethod(method, { self, name, budget });
  if (typeof object === "string") {
    return wrap(FORMAT_METHODS.get(name) ?? TEXT_METHODS.get(name), object);
  }
  if (isMarkup(object)) return markupMethod(object.text, name, budget);
  if (isDict(object)) return wrap(DICT_METHODS.get(name), object);
  if (!isList(object)) return undefined;
  if (name === "copy" && kindOf(object) !== "list") return undefined;
  return isIndexed(object) ? wrap(LIST_METHODS.get(name), object) : undefined;
}

function refuse(name: string, type: string): never {
  return fail(`access to attribute '${name}' of '${type}' object is unsafe`);
}

function missing(object: Value, name: string): Value {
  return undefinedValue(`'${typeName(object)} object' has no attribute '${name}'`);
}

function ownAttribute(object: Value, name: string): Value | undefined {
  if (isNamespace(object)) return object.values.get(name);
  if (isCallable(object)) return object.attributes?.get(name);
  if (isList(object) && kindOf(object) === "group") {
    return name === "grouper" ? object[0] : name === "list" ? object[1] : undefined;
  }
  return undefined;
}

/** Whether Python's dicts have an attribute. */
export function hasAttribute(dict: Dict, name: string): boolean {
  const type = typeName(dict);
  return DICT_METHODS.has(name) || UNSAFE_ATTRIBUTES[type].includes(name) ||
    REFUSED_ATTRIBUTES[type].has(name);
}

/** `object.name`. */
export function getAttribute(
  object: Value,
  { name, budget }: { readonly name: string; readonly budget: Budget },
): Value {
  defined(object);
  const type = isMarkup(object) ? "str" : typeName(object);
  if (UNSAFE_ATTRIBUTES[type]?.includes(name)) return refuse(name, type);
  const own = ownAttribute(object, name);
  const found = own === undefined ? findMethod(object, name, budget) : own;
  if (found !== undefined) return found;
  const table = REFUSED_ATTRIBUTES[type === "bool" ? "int" : type];
  if (table !== undefined) refuseListed(name, { what: `attribute of a ${type}`, table });
  const item = isDict(object) ? object.get(name) : undefined;
  if (item !== undefined) return item;
  return name.startsWith("__") ? refuse(name, typeName(object)) : missing(object, name);
}

/** `object[key]`. */
export function getItem(
  object: Value,
  { key, budget }: { readonly key: Value; readonly budget: Budget },
): Value {
  defined(object);
  if (isDict(object)) {
    const isKey = !isList(key) && !isDict(key) && !isUndefined(key);
    const found = isKey ? object.get(dictKey(key)) : undefined;
    if (found !== undefined) return found;
  } else if (isNumber(key) && !isFloat(key)) {
    const text = textOf(object);
    const items = text !== undefined
      ? Array.from(text)
      : isList(object) && isIndexed(object)
      ? object
      : [];
    budget.spend(text === undefined ? 1 : items.length);
    const item = items.at(plainNumber(key));
    if (item !== undefined) return isMarkup(object) ? markupValue(item as string) : item;
  }
  const name = textOf(key);
  if (name !== undefined) return getAttribute(object, { name, budget });
  return missing(object, isList(key) || isDict(key) ? typeName(key) : plainText(key, budget));
}

/** Bounds of a slice. */
export interface SliceBounds {
  readonly start: Value;
  readonly stop: Value;
  readonly step: Value;
}

/** `object[start:stop:step]`. */
export function getSlice(
  object: Value,
  { bounds, budget }: { readonly bounds: SliceBounds; readonly budget: Budget },
): Value {
  defined(object);
  const text = textOf(object);
  const isSliced = text !== undefined || (isList(object) && isIndexed(object));
  const { start: from, stop: to, step: by } = bounds;
  if (!isSliced) return fail(`a ${typeName(object)} cannot be sliced`);
  const items = text === undefined ? object as readonly Value[] : Array.from(text);
  budget.spend(items.length);
  const bound = (value: Value) => value === null ? undefined : integerArgument(value);
  const step = bound(by) ?? 1;
  if (step === 0) return fail("a slice step cannot be zero");
  const [low, high] = step > 0 ? [0, items.length] : [-1, items.length - 1];
  const clamp = (value: number | undefined, fallback: number) =>
    value === undefined
      ? fallback
      : Math.max(low, Math.min(high, value < 0 ? value + items.length : value));
  const start = clamp(bound(from), step > 0 ? low : high);
  const stop = clamp(bound(to), step > 0 ? high : low);
  const taken: Value[] = [];
  for (let i = start; step > 0 ? i < stop : i > stop; i += step) taken.push(items[i]);
  if (typeof object === "string") return taken.join("");
  if (isMarkup(object)) return markupValue(taken.join(""));
  return sliceOf(object as readonly Value[], taken);
}

function sliceOf(list: readonly Value[], taken: readonly Value[]): Value {
  if (isTuple(list)) return listOfKind("tuple", { items: taken });
  if (kindOf(list) !== "range") return taken;
  return listOfKind("range", { items: taken });
}
