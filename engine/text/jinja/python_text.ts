// How Python writes values: `str` and `repr` of everything a template can print, `repr` of floats, and
// json.dumps as the `tojson` filter calls it (no HTML escapes, key order kept).

import type { Budget } from "./budget.ts";
import { fail } from "./failure.ts";
import {
  defined,
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
  type Namespace,
  plainNumber,
  rangeText,
  type Value,
} from "./values.ts";

/** A float: the shortest digits that give it back, with an exponent below 1e-4 and from 1e16. */
function floatText(value: number): string {
  if (Number.isNaN(value)) return "nan";
  if (!Number.isFinite(value)) return value < 0 ? "-inf" : "inf";
  if (Object.is(value, -0)) return "-0.0";
  if (value === 0) return "0.0";
  const size = Math.abs(value);
  if (size >= 1e16 || size < 1e-4) {
    const [digits, exponent] = value.toExponential().split("e");
    const sign = exponent.startsWith("-") ? "-" : "+";
    return `${digits}e${sign}${exponent.slice(1).padStart(2, "0")}`;
  }
  const text = value.toString();
  return text.includes(".") ? text : text + ".0";
}

function numberText(value: Value): string | undefined {
  if (typeof value === "boolean") return value ? "True" : "False";
  if (!isNumber(value)) return undefined;
  return isFloat(value) ? floatText(plainNumber(value)) : String(value);
}

const ESCAPES: Readonly<Record<string, string>> = {
  "\\": "\\\\",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
};

/** A text in quotes: single ones, unless only they occur inside. */
function quotedText(text: string): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  let body = "";
  for (const char of text) {
    if (char === quote) body += "\\" + char;
    else if (ESCAPES[char] !== undefined) body += ESCAPES[char];
    else if (/[\p{C}\p{Z}]/u.test(char) && char !== " ") body += escapedPoint(char);
    else body += char;
  }
  return quote + body + quote;
}

/** A character by its number, as `repr` and `ascii` write it. */
export function escapedPoint(char: string): string {
  const code = char.codePointAt(0) as number;
  if (code <= 0xff) return "\\x" + code.toString(16).padStart(2, "0");
  return code <= 0xffff
    ? "\\u" + code.toString(16).padStart(4, "0")
    : "\\U" + code.toString(16).padStart(8, "0");
}

function listText(value: readonly Value[], budget: Budget): string {
  const kind = kindOf(value);
  if (kind === "range") {
    return rangeText(value) || fail("printing a slice of a range is not supported");
  }
  if (kind === "generator") return fail("a generator prints an address: put |list behind it");
  const items = value.map((item) => reprText(item, budget)).join(", ");
  if (isTuple(value)) return value.length === 1 ? `(${items},)` : `(${items})`;
  return kind === "list" ? `[${items}]` : `${kind}([${items}])`;
}

/** `repr`: texts in quotes. */
export function reprText(value: Value, budget: Budget): string {
  budget.spend(1);
  if (typeof value === "string") {
    budget.spend(value.length);
    return quotedText(value);
  }
  if (isUndefined(value)) return "Undefined";
  if (isMarkup(value)) return `Markup(${quotedText(value.text)})`;
  if (isList(value)) return listText(value, budget);
  if (isDict(value)) {
    const pairs = Array.from(
      value,
      ([key, item]) => `${reprText(key, budget)}: ${reprText(item, budget)}`,
    );
    return `{${pairs.join(", ")}}`;
  }
  return plainText(value, budget);
}

function namespaceText({ type, values }: Namespace, budget: Budget): string {
  if (type === "Namespace") return `<Namespace ${reprText(values, budget)}>`;
  if (type !== "LoopContext") return fail(`a ${type} prints an address`);
  return `<LoopContext ${values.get("index")}/${values.get("length")}>`;
}

/** `str`: what printing a value writes. */
export function plainText(value: Value, budget: Budget): string {
  if (typeof value === "string") return value;
  if (isUndefined(value)) return "";
  if (value === null) return "None";
  if (isMarkup(value)) return value.text;
  if (isCallable(value)) {
    if (!value.isMacro) return fail("a function prints an address");
    return `<Macro ${value.name === "" ? "anonymous" : quotedText(value.name)}>`;
  }
  if (isNamespace(value)) return namespaceText(value, budget);
  return numberText(value) ?? reprText(value, budget);
}

/** Settings of json.dumps that templates use. */
export interface JsonStyle {
  /** Text of one level of indentation; undefined writes one line. */
  readonly indent: string | undefined;
  readonly itemSeparator: string;
  readonly keySeparator: string;
  readonly sortKeys: boolean;
  readonly ensureAscii: boolean;
}

/** json.dumps. */
export function jsonText(
  value: Value,
  { style, budget, level = 0 }: {
    readonly style: JsonStyle;
    readonly budget: Budget;
    readonly level?: number | undefined;
  },
): string {
  budget.spend(1);
  if (value === null) return "null";
  if (typeof value === "boolean") return String(value);
  if (typeof value === "string") return jsonString(value, style, budget);
  if (isNumber(value)) return jsonNumber(value);
  const newline = style.indent === undefined ? "" : "\n" + style.indent.repeat(level);
  const inner = style.indent === undefined ? "" : newline + style.indent;
  const wrap = (open: string, items: readonly string[], close: string) =>
    items.length === 0
      ? open + close
      : open + inner + items.join(style.itemSeparator + inner) + newline + close;
  if (isMarkup(value)) return jsonString(value.text, style, budget);
  if (isList(value) && isIndexed(value) && kindOf(value) !== "range") {
    return wrap("[", value.map((item) => jsonText(item, { style, budget, level: level + 1 })), "]");
  }
  if (isDict(value)) {
    const pairs = Array.from(value, ([key, item]) => ({ key: jsonKey(key), item }));
    if (style.sortKeys) pairs.sort((a, b) => a.key < b.key ? -1 : Number(a.key > b.key));
    const items = pairs.map(({ key, item }) =>
      jsonString(key, style, budget) + style.keySeparator +
      jsonText(item, { style, budget, level: level + 1 })
    );
    return wrap("{", items, "}");
  }
  defined(value);
  return fail("only texts, numbers, booleans, none, lists and dicts can be written as JSON");
}

function jsonNumber(value: Value): string {
  const text = numberText(value) as string;
  const names: Readonly<Record<string, string>> = {
    inf: "Infinity",
    "-inf": "-Infinity",
    nan: "NaN",
  };
  return names[text] ?? text;
}

function jsonKey(key: Value): string {
  if (typeof key === "string") return key;
  if (key === null) return "null";
  return typeof key === "boolean" ? String(key) : jsonNumber(key);
}

function jsonString(text: string, { ensureAscii }: JsonStyle, budget: Budget): string {
  budget.spend(text.length);
  const quoted = JSON.stringify(text);
  return ensureAscii
    ? quoted.replace(
      /[\u0080-\uffff]/g,
      (unit) => "\\u" + unit.charCodeAt(0).toString(16).padStart(4, "0"),
    )
    : quoted;
}
