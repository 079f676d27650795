// Filters of texts and numbers.

import { bind, type Call, integerArgument, textArgument } from "./call_arguments.ts";
import { BLANKS, lengthOf } from "./characters.ts";
import { escapeValue } from "./escape.ts";
import { fail } from "./failure.ts";
import { asNumber, asText, type Filter, lengthOfValue } from "./filter_arguments.ts";
import { formatPercent } from "./format_text.ts";
import { fixedText, roundTo } from "./number_text.ts";
import { parseFloatText, parseIntegerText } from "./parse_number.ts";
import { jsonText } from "./python_text.ts";
import { capitalizeText } from "./text_case.ts";
import { justify, replaceText, splitLines, stripText } from "./text_methods.ts";
import {
  defined,
  floatValue,
  integerValue,
  isDict,
  isFloat,
  isList,
  isNumber,
  isTrue,
  isUndefined,
  iterate,
  markupValue,
  plainNumber,
  textOf,
  tupleValue,
  typeName,
  type Value,
} from "./values.ts";

/** A value that must be text already. */
function needText(value: Value): string {
  return textOf(value) ?? fail(`expected a text, not ${typeName(defined(value))}`);
}

function indent(value: Value, call: Call): Value {
  const [width, first, blank] = bind(call, "width", "first", "blank");
  const margin = typeof width === "string" ? width : " ".repeat(marginWidth(width));
  const lines = splitLines(needText(value) + "\n", false);
  call.budget.spend(lines.length * (margin.length + 1));
  return lines.map((line, i) => {
    const isPlain = i === 0 ? !isTrue(first) : line === "" && !isTrue(blank);
    return isPlain ? line : margin + line;
  }).join("\n");
}

function marginWidth(width: Value): number {
  const spaces = Math.max(0, integerArgument(width, 4));
  return spaces <= 1000 ? spaces : fail(`cannot indent by ${spaces}`);
}

/** json.dumps as transformers calls it, with its order of arguments. */
function toJson(value: Value, call: Call): Value {
  const [ensureAscii, indentation, separators, sortKeys] = bind(
    call,
    "ensure_ascii",
    "indent",
    "separators",
    "sort_keys",
  );
  const hasIndent = !isUndefined(indentation) && indentation !== null;
  const [item, key] = isList(separators) ? separators.map((text) => textArgument(text)) : [];
  return jsonText(value, {
    style: {
      indent: !hasIndent
        ? undefined
        : typeof indentation === "string"
        ? indentation
        : " ".repeat(marginWidth(indentation)),
      itemSeparator: item ?? (hasIndent ? "," : ", "),
      keySeparator: key ?? ": ",
      sortKeys: isTrue(sortKeys),
      ensureAscii: isTrue(ensureAscii),
    },
    budget: call.budget,
  });
}

function toInteger(value: Value, call: Call): Value {
  const [given, base] = bind(call, "default", "base");
  const fallback = isUndefined(given) ? 0 : given;
  defined(value);
  if (isNumber(value)) {
    const number = plainNumber(value);
    if (Number.isNaN(number)) return fallback;
    return Number.isFinite(number)
      ? integerValue(Math.trunc(number))
      : fail("cannot convert float infinity to integer");
  }
  const text = textOf(value);
  if (text === undefined) return fallback;
  const whole = parseIntegerText(text, integerArgument(base, 10));
  const number = whole ?? parseFloatText(text);
  return number !== undefined && Number.isFinite(number)
    ? integerValue(Math.trunc(number))
    : fallback;
}

function toFloat(value: Value, call: Call): Value {
  const [fallback] = bind(call, "default");
  defined(value);
  const text = textOf(value);
  const number = isNumber(value)
    ? plainNumber(value)
    : text === undefined
    ? undefined
    : parseFloatText(text);
  if (number !== undefined) return floatValue(number);
  return isUndefined(fallback) ? floatValue(0) : fallback;
}

function round(value: Value, call: Call): Value {
  const [precision, method] = bind(call, "precision", "method");
  const places = integerArgument(precision, 0);
  const number = asNumber(value);
  const name = textArgument(method, "common");
  if (name === "common") {
    return isFloat(value) ? floatValue(roundTo(number, places)) : integerValue(
      places < 0 ? roundTo(number, places) : number,
    );
  }
  if (name !== "ceil" && name !== "floor") return fail("method must be common, ceil or floor");
  const scale = 10 ** places;
  return floatValue(Math[name](number * scale) / scale);
}

function truncate(value: Value, call: Call): Value {
  const [length, killWords, end, leeway] = bind(call, "length", "killwords", "end", "leeway");
  const text = textOf(value);
  const most = integerArgument(length, 255);
  const mark = textArgument(end, "...");
  const spare = integerArgument(leeway === null ? 5 : leeway, 5);
  if (most < lengthOf(mark)) return fail(`expected length >= ${lengthOf(mark)}, got ${most}`);
  if (spare < 0) return fail(`expected leeway >= 0, got ${spare}`);
  // What else has a length passes while it is short.
  const size = text === undefined ? lengthOfValue(value) : lengthOf(text);
  if (size <= most + spare) return value;
  if (text === undefined) return needText(value);
  const head = Array.from(text).slice(0, most - lengthOf(mark)).join("");
  const cut = head.lastIndexOf(" ");
  return (isTrue(killWords) || cut < 0 ? head : head.slice(0, cut)) + mark;
}

const UNITS: readonly string[] = ["", "k", "M", "G", "T", "P", "E", "Z", "Y"];

function fileSize(value: Value, call: Call): Value {
  const isBinary = isTrue(bind(call, "binary")[0]);
  const text = textOf(value);
  const size = text === undefined
    ? asNumber(value)
    : parseFloatText(text) ?? fail("could not convert string to float");
  const base = isBinary ? 1024 : 1000;
  if (size === 1) return "1 Byte";
  if (size < base) return `${Math.trunc(size)} Bytes`;
  let power = 1;
  while (power < 8 && size >= base ** (power + 1)) power++;
  const unit = isBinary ? `${UNITS[power].toUpperCase()}iB` : `${UNITS[power]}B`;
  return `${fixedText(base * size / base ** (power + 1), 1)} ${unit}`;
}

function quoteUrl(text: string): string {
  if (!text.isWellFormed()) return fail("surrogates are not allowed");
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (char) => "%" + char.charCodeAt(0).toString(16).toUpperCase(),
  );
}

function encodeUrl(value: Value, call: Call): Value {
  if (!isList(value) && !isDict(value)) return quoteUrl(asText(value, call)).replaceAll("%2F", "/");
  const pairs: readonly Value[] = isDict(value) ? Array.from(value, tupleValue) : iterate(value);
  const quote = (part: Value) => quoteUrl(asText(part, call)).replaceAll("%20", "+");
  return pairs.map((pair) => {
    const [key, item, ...more] = iterate(pair);
    if (item === undefined || more.length > 0) return fail("urlencode needs pairs");
    return `${quote(key)}=${quote(item)}`;
  }).join("&");
}

function format(value: Value, call: Call): Value {
  const { args, named, budget } = call;
  if (args.length > 0 && named.size > 0) {
    fail("can't handle positional and keyword arguments at the same time");
  }
  const right: Value = named.size > 0 ? new Map<Value, Value>(named) : tupleValue(args);
  return formatPercent(asText(value, call), { right, budget });
}

function escape(value: Value, call: Call): Value {
  call.budget.spend(5 * asText(value, call).length);
  return escapeValue(textOf(value) === undefined ? asText(value, call) : value);
}

const fallbackTo: Filter = (value, call) => {
  const [fallback, alsoFalse] = bind(call, "default_value", "boolean");
  const isMissing = isUndefined(value) || (isTrue(alsoFalse) && !isTrue(value));
  if (!isMissing) return value;
  return call.args.length > 0 || call.named.has("default_value") ? fallback : "";
};

// Not the method of the same name: words end at blanks, dashes and opening brackets only.
const TITLE_WORD = new RegExp(`[^-${BLANKS}({\\[<]+`, "gu");

function title(text: string): string {
  return text.replace(TITLE_WORD, (word) => {
    const [first, ...rest] = Array.from(word);
    return first.toUpperCase() + rest.join("").toLowerCase();
  });
}

/** Filters by name. */
export const TEXT_FILTERS: readonly (readonly [string, Filter])[] = [
  ["abs", (value) => {
    const size = Math.abs(asNumber(value));
    return isFloat(value) ? floatValue(size) : size;
  }],
  ["capitalize", (value, call) => capitalizeText(asText(value, call))],
  ["center", (value, call) => {
    const [width] = bind(call, "width");
    const args = [isUndefined(width) ? 80 : width];
    return justify(asText(value, call), {
      call: { ...call, args, named: new Map() },
      place: "center",
    });
  }],
  ["d", fallbackTo],
  ["default", fallbackTo],
  ["e", escape],
  ["escape", escape],
  ["filesizeformat", fileSize],
  ["float", toFloat],
  ["forceescape", (value, call) => escape(asText(value, call), call)],
  ["format", format],
  ["indent", indent],
  ["int", toInteger],
  ["lower", (value, call) => asText(value, call).toLowerCase()],
  ["replace", (value, call) => {
    const [old, fresh, count] = bind(call, "old", "new", "count");
    const args = [asText(defined(old), call), asText(defined(fresh), call)];
    return replaceText(asText(value, call), {
      ...call,
      args: isUndefined(count) || count === null ? args : [...args, count],
      named: new Map(),
    });
  }],
  ["round", round],
  ["safe", (value, call) => markupValue(asText(value, call))],
  ["string", (value, call) => asText(value, call)],
  ["title", (value, call) => title(asText(value, call))],
  ["tojson", toJson],
  ["trim", (value, call) => stripText(asText(value, call), call)],
  ["truncate", truncate],
  ["upper", (value, call) => asText(value, call).toUpperCase()],
  ["urlencode", encodeUrl],
  ["wordcount", (value, call) => asText(value, call).match(/[\p{L}\p{N}_]+/gu)?.length ?? 0],
];
