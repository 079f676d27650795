// The values of a template and Python's rules for them: truth, equality, order, names of types.
// Integers are JavaScript numbers; a float whose value is an integer (1.0) is boxed, since it prints
// and divides differently. Integers beyond 2^53 are refused rather than rounded. Dicts are maps, so
// that keys keep their order and `__proto__` is a key like any other. Everything else that Python goes
// through is a list with a mark (`ListKind`), because tuples, ranges, views of dicts and generators differ from
// lists in equality, truth, length and print. A generator is emptied by who goes through it.

import { fail } from "./failure.ts";

/** What a missing variable or attribute is: prints nothing, is false, and refuses to be used. */
export interface Undefined {
  readonly tag: "undefined";
  /** What to say when it is used. */
  readonly why: string;
}

/** A float with an integer value. */
export interface WholeFloat {
  readonly tag: "float";
  readonly value: number;
}

/** A function, a macro or a method. */
export interface Callable {
  readonly tag: "callable";
  readonly name: string;
  readonly isMacro?: boolean;
  /** What a template can read of it. */
  readonly attributes?: ReadonlyMap<string, Value>;
  readonly call: (args: readonly Value[], named: ReadonlyMap<string, Value>) => Value;
}

/** Text that a filter escaped or marked safe; what is added to it is escaped. */
export interface Markup {
  readonly tag: "markup";
  readonly text: string;
}

/** The only value a template can change: `namespace()`. `loop`, `cycler` and `joiner` are ones that it cannot. */
export interface Namespace {
  readonly tag: "namespace";
  readonly type: "Namespace" | "LoopContext" | "Cycler" | "Joiner";
  readonly values: Map<string, Value>;
  readonly isFixed: boolean;
  /** Set where it can be called as well: `loop` of a recursive loop, `joiner`. */
  readonly call?: Callable["call"];
}

/** A dict. Keys are texts, numbers, booleans or none. */
export type Dict = ReadonlyMap<Value, Value>;

/** Any value. */
export type Value =
  | null
  | boolean
  | number
  | string
  | readonly Value[]
  | Dict
  | Undefined
  | WholeFloat
  | Markup
  | Callable
  | Namespace;

/** The text of no arguments in particular. */
export function undefinedValue(why: string): Undefined {
  return { tag: "undefined", why };
}

/** A value that may not be there, or another; none is a value, which `??` would take for missing. */
export function orElse(value: Value | undefined, other: () => Value): Value {
  return value === undefined ? other() : value;
}

/** Whether a value is missing. */
export function isUndefined(value: Value): value is Undefined {
  return tagOf(value) === "undefined";
}

/** Whether a value is a list. */
export function isList(value: Value): value is readonly Value[] {
  return Array.isArray(value);
}

/** What Python goes through, item by item. */
export type ListKind =
  | "list"
  | "tuple"
  | "group"
  | "range"
  | "dict_keys"
  | "dict_values"
  | "dict_items"
  | "generator";

interface Marked {
  readonly kind?: ListKind;
  readonly shown?: string;
}

/** A list of another kind; `shown` is how a range prints. */
export function listOfKind(
  kind: ListKind,
  { items, shown = "" }: { readonly items: Iterable<Value>; readonly shown?: string | undefined },
): readonly Value[] {
  return Object.assign([...items], { kind, shown });
}

/** The kind of a list. */
export function kindOf(list: readonly Value[]): ListKind {
  return (list as Marked).kind ?? "list";
}

/** A tuple. */
export function tupleValue(items: readonly Value[]): readonly Value[] {
  return listOfKind("tuple", { items });
}

/** Whether a list is a tuple; `groupby` makes tuples whose items have names. */
export function isTuple(list: readonly Value[]): boolean {
  return kindOf(list) === "tuple" || kindOf(list) === "group";
}

/** How a range was written. */
export function rangeText(list: readonly Value[]): string {
  return (list as Marked).shown ?? "";
}

/** Whether a list has items by number: views of dicts and generators have none. */
export function isIndexed(list: readonly Value[]): boolean {
  return isTuple(list) || kindOf(list) === "list" || kindOf(list) === "range";
}

/** Text that was marked. */
export function markupValue(text: string): Markup {
  return { tag: "markup", text };
}

/** Whether a value is marked text. */
export function isMarkup(value: Value): value is Markup {
  return tagOf(value) === "markup";
}

/** The text of a text, marked or not; anything else has none. */
export function textOf(value: Value): string | undefined {
  return typeof value === "string" ? value : isMarkup(value) ? value.text : undefined;
}

/** Whether a value is a dict. */
export function isDict(value: Value): value is Dict {
  return value instanceof Map;
}

/** A function. */
export function callable(name: string, call: Callable["call"]): Callable {
  return { tag: "callable", name, call };
}

/** Whether a value can be called. */
export function isCallable(value: Value): value is Callable {
  return tagOf(value) === "callable";
}

/** Whether a value is a namespace. */
export function isNamespace(value: Value): value is Namespace {
  return tagOf(value) === "namespace";
}

/** Whether a value is a float: boxed, or with a fraction. */
export function isFloat(value: Value): boolean {
  return tagOf(value) === "float" || (typeof value === "number" && !Number.isInteger(value));
}

/** Whether a value counts as a number; booleans do in Python. */
export function isNumber(value: Value): value is number | WholeFloat | boolean {
  return typeof value === "number" || typeof value === "boolean" || tagOf(value) === "float";
}

function tagOf(value: Value): string | undefined {
  return typeof value === "object" && value !== null && "tag" in value ? value.tag : undefined;
}

/** A number as JavaScript computes with it. */
export function plainNumber(value: number | WholeFloat | boolean): number {
  return typeof value === "object" ? value.value : Number(value);
}

/** A result that is a float. */
export function floatValue(value: number): number | WholeFloat {
  return Number.isInteger(value) ? { tag: "float", value } : value;
}

/** A result that is an integer. */
export function integerValue(value: number): number {
  if (!Number.isSafeInteger(value)) fail(`the integer ${value} is too large to be exact`);
  return value === 0 ? 0 : value;
}

/** Name of a value's type, as Python's error messages write it. */
export function typeName(value: Value): string {
  if (value === null) return "NoneType";
  if (typeof value === "boolean") return "bool";
  if (isFloat(value)) return "float";
  if (typeof value === "number") return "int";
  if (typeof value === "string") return "str";
  if (isList(value)) return isTuple(value) ? "tuple" : kindOf(value);
  if (isDict(value)) return "dict";
  if (isMarkup(value)) return "Markup";
  if (isNamespace(value)) return value.type;
  return isUndefined(value) ? "Undefined" : "function";
}

/** Refuses a missing value; gives any other back. */
export function defined(value: Value): Value {
  return isUndefined(value) ? fail(value.why) : value;
}

/** Python's truth. */
export function isTrue(value: Value): boolean {
  if (isUndefined(value) || value === null) return false;
  if (isNumber(value)) return plainNumber(value) !== 0;
  if (isList(value)) return value.length > 0 || kindOf(value) === "generator";
  if (typeof value === "string" || isMarkup(value)) return textOf(value) !== "";
  return isDict(value) ? value.size > 0 : true;
}

/** Python's `==`. */
export function areEqual(a: Value, b: Value): boolean {
  if (isNumber(a) && isNumber(b)) return plainNumber(a) === plainNumber(b);
  if (isUndefined(a) || isUndefined(b)) return isUndefined(a) && isUndefined(b);
  if (isMarkup(a) || isMarkup(b)) return textOf(a) !== undefined && textOf(a) === textOf(b);
  if (isList(a) && isList(b)) return a === b || areEqualLists(a, b);
  if (isDict(a) && isDict(b)) {
    if (a.size !== b.size) return false;
    for (const [key, value] of a) {
      const other = b.get(key);
      if (other === undefined || !areEqual(value, other)) return false;
    }
    return true;
  }
  return a === b;
}

function areEqualLists(a: readonly Value[], b: readonly Value[]): boolean {
  if (typeName(a) !== typeName(b) || a.length !== b.length) return false;
  if (isIndexed(a)) return a.every((item, i) => areEqual(item, b[i]));
  // Views of keys and items are sets.
  const isSet = kindOf(a) === "dict_keys" || kindOf(a) === "dict_items";
  return isSet && a.every((item) => b.some((other) => areEqual(item, other)));
}

/** Python's order: negative, 0 or positive. */
export function compare(a: Value, b: Value): number {
  if (isNumber(a) && isNumber(b)) return plainNumber(a) - plainNumber(b);
  const [text, other] = [textOf(a), textOf(b)];
  if (text !== undefined && other !== undefined) return compareTexts(text, other);
  if (isList(a) && isList(b) && typeName(a) === typeName(b) && /list|tuple/.test(typeName(a))) {
    for (let i = 0; i < Math.min(a.length, b.length); i++) {
      if (!areEqual(a[i], b[i])) return compare(a[i], b[i]);
    }
    return a.length - b.length;
  }
  defined(a);
  defined(b);
  return fail(`${typeName(a)} and ${typeName(b)} have no order`);
}

// By code points, as Python does; UTF-16 order differs above U+FFFF.
function compareTexts(a: string, b: string): number {
  for (let i = 0; i < a.length && i < b.length; i++) {
    if (a[i] === b[i]) continue;
    const isInside = i > 0 && (a.charCodeAt(i) & 0xfc00) === 0xdc00;
    const at = isInside ? i - 1 : i;
    return (a.codePointAt(at) as number) - (b.codePointAt(at) as number);
  }
  return a.length - b.length;
}

/** Key of a dict; a float that is an integer is the integer, as in Python. */
export function dictKey(key: Value): Value {
  if (isUndefined(key)) fail(`a missing value cannot be a key: ${key.why}`);
  if (isNumber(key)) return typeof key === "boolean" ? key : plainNumber(key);
  if (isList(key) || isDict(key) || isMarkup(key)) fail(`a ${typeName(key)} cannot be a key`);
  return key;
}

/** Items that a loop or a filter goes through; a generator has none left then. */
export function iterate(value: Value): readonly Value[] {
  if (isList(value)) {
    return kindOf(value) === "generator" ? (value as Value[]).splice(0) : value;
  }
  if (isUndefined(value)) return [];
  const text = textOf(value);
  if (text !== undefined) return Array.from(text);
  if (isDict(value)) return [...value.keys()];
  return fail(`a ${typeName(value)} cannot be gone through`);
}

const MAX_DEPTH = 64;

/**
 * Takes a JavaScript value into a template.
 *
 * @throws {TypeError} If it is not of the kind that JSON can hold.
 */
export function fromJavaScript(value: unknown, depth = 0): Value {
  if (depth > MAX_DEPTH) {
    throw new TypeError(`Cannot render values nested deeper than ${MAX_DEPTH}`);
  }
  if (value === undefined) return undefinedValue("the value is undefined");
  if (value === null || typeof value === "boolean" || typeof value === "string") return value;
  if (typeof value === "number") return Number.isSafeInteger(value) ? value : floatValue(value);
  if (Array.isArray(value)) return value.map((item) => fromJavaScript(item, depth + 1));
  if (typeof value === "object") {
    const entries = value instanceof Map ? value.entries() : Object.entries(value);
    const dict = new Map<Value, Value>();
    for (const [key, item] of entries) {
      if (item !== undefined) dict.set(key, fromJavaScript(item, depth + 1));
    }
    return dict;
  }
  throw new TypeError(`Cannot render a value of type ${typeof value}`);
}
