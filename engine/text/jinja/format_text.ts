// Python's two ways to format: `"%05.2f" % x` (printf) and `"{:>8,}".format(x)` (the mini-language of
// format specs).

import type { Budget } from "./budget.ts";
import { lengthOf } from "./characters.ts";
import { fail } from "./failure.ts";
import { dropZeros, fixedText, generalText, groupDigits, scientificText } from "./number_text.ts";
import { escapedPoint, plainText, reprText } from "./python_text.ts";
import {
  defined,
  isDict,
  isFloat,
  isIndexed,
  isList,
  isNumber,
  isTuple,
  isUndefined,
  orElse,
  plainNumber,
  textOf,
  typeName,
  type Value,
} from "./values.ts";

/** How a number or a text is written. */
interface Spec {
  readonly fill: string;
  /** `=` pads between sign and digits; empty is the type's own. */
  readonly align: string;
  readonly sign: string;
  readonly isAlternate: boolean;
  readonly width: number;
  readonly separator: string;
  readonly precision: number | undefined;
  readonly type: string;
}

const MAX_WIDTH = 10_000;

function sizeOf(digits: string | undefined): number | undefined {
  if (digits === undefined || digits === "") return undefined;
  const size = Number(digits);
  return size <= MAX_WIDTH ? size : fail(`a width of ${digits} is more than ${MAX_WIDTH}`);
}

function pad(text: string, sign: string, { fill, align, width }: Spec): string {
  const missing = Math.max(0, width - lengthOf(sign + text));
  const filler = fill.repeat(missing);
  if (align === "=") return sign + filler + text;
  if (align === "<") return sign + text + filler;
  if (align === ">") return filler + sign + text;
  const left = Math.floor(missing / 2);
  return fill.repeat(left) + sign + text + fill.repeat(missing - left);
}

/** Fills with zeros so that groups stay whole; a separator never stands in front. */
function padGrouped(text: string, sign: string, spec: Spec): string {
  const { separator, fill, align, width, type } = spec;
  if (separator === "") return pad(text, sign, spec);
  const size = "boxX".includes(type) && type !== "" ? 4 : 3;
  const [, digits, rest] = /^([0-9a-fA-F]*)(.*)$/.exec(text)!;
  let whole = digits;
  if (fill === "0" && align === "=") {
    while (lengthOf(sign + groupDigits(whole, { separator, size }) + rest) < width) {
      whole = "0" + whole;
    }
  }
  return pad(groupDigits(whole, { separator, size }) + rest, sign, spec);
}

function signOf(value: number, { sign }: Spec): string {
  return value < 0 || Object.is(value, -0) ? "-" : sign === "-" ? "" : sign;
}

const BASES: Readonly<Record<string, number>> = { b: 2, o: 8, x: 16, X: 16 };

function integerText(value: number, spec: Spec): string {
  const base = BASES[spec.type] ?? 10;
  const digits = Math.abs(value).toString(base);
  const prefix = spec.isAlternate && base !== 10 ? "0" + spec.type : "";
  const shown = spec.type === "X" ? digits.toUpperCase() : digits;
  return padGrouped(shown, signOf(value + 0, spec) + prefix, spec);
}

function floatText(value: number, spec: Spec): string {
  const { type, precision, isAlternate } = spec;
  const size = Math.abs(value);
  const lower = type.toLowerCase();
  let text: string;
  if (!Number.isFinite(value)) text = Number.isNaN(value) ? "nan" : "inf";
  else if (type === "%") text = fixedText(size * 100, precision ?? 6);
  else if (lower === "f") text = fixedText(size, precision ?? 6);
  else if (lower === "e") text = scientificText(size, precision ?? 6);
  else if (lower === "g") {
    text = generalText(size, { precision: precision ?? 6, keepsZeros: isAlternate });
  } else return fail(`Unknown format code '${type}' for object of type 'float'`);
  if (isAlternate && !/[.en]/.test(text)) text += ".";
  if (type === "%") text += "%";
  return padGrouped(
    type === "" || type === lower ? text : text.toUpperCase(),
    signOf(value, spec),
    spec,
  );
}

/** A float without a type: as printed, or general with a digit behind the point. */
function plainFloatText(value: number, spec: Spec, budget: Budget): string {
  const size = Math.abs(value);
  let text = plainText({ tag: "float", value: size }, budget);
  if (spec.precision !== undefined && Number.isFinite(value)) {
    const count = Math.max(1, spec.precision);
    const long = scientificText(size, count - 1);
    const isLong = Number(long.split("e")[1]) >= count - 1;
    text = isLong ? dropZeros(long) : generalText(size, { precision: count, keepsZeros: false });
    if (!/[.e]/.test(text)) text += ".0";
  }
  return padGrouped(text, signOf(value, spec), spec);
}

const PERCENT =
  /%(?:\(((?:[^()]|\([^()]*\))*)\))?([-+ #0]*)(\*|\d*)(?:\.(\*|\d*))?[hlL]?([\s\S]?)/g;

/** `text % right`. */
export function formatPercent(
  text: string,
  { right, budget }: { readonly right: Value; readonly budget: Budget },
): string {
  const isArguments = isList(right) && isTuple(right);
  const args = isArguments ? right : [right];
  const isMapping = !isArguments && textOf(right) === undefined &&
    (isDict(right) || (isList(right) && isIndexed(right)) || isUndefined(right));
  let used = 0;
  let isNamed = false;
  const next = (): Value =>
    used < args.length ? args[used++] : fail("not enough arguments for format string");
  const star = (size: string | undefined) => {
    if (size !== "*") return size;
    const value = next();
    return isNumber(value) && !isFloat(value) ? String(plainNumber(value)) : fail("* wants int");
  };
  const written = text.replace(PERCENT, (_whole, name, flags, width, precision, type) => {
    if (type === "") return fail("incomplete format");
    let own = args;
    if (name !== undefined) {
      if (!isDict(right)) return fail("format requires a mapping");
      own = [orElse(right.get(name), () => fail(`the mapping has no '${name}'`))];
      isNamed = true;
    }
    const asked = star(width) ?? "";
    const places = star(precision);
    if (type === "%") return "%";
    const value = name === undefined ? next() : own[0];
    const isLeft = flags.includes("-") || asked.startsWith("-");
    const isZero = flags.includes("0") && !isLeft;
    const spec: Spec = {
      fill: isZero && !"sracSRAC".includes(type) ? "0" : " ",
      align: isLeft ? "<" : isZero && !"srac".includes(type) ? "=" : ">",
      sign: flags.includes("+") ? "+" : flags.includes(" ") ? " " : "-",
      isAlternate: flags.includes("#"),
      width: sizeOf(asked.replace("-", "")) ?? 0,
      separator: "",
      precision: places === undefined ? undefined : Math.max(0, sizeOf(places) ?? 0),
      type,
    };
    budget.spend(spec.width + (spec.precision ?? 0));
    return percentValue(value, spec, budget);
  });
  if (used < args.length && !isMapping && !isNamed) {
    fail("not all arguments converted during string formatting");
  }
  budget.spend(written.length);
  return written;
}

function percentValue(value: Value, spec: Spec, budget: Budget): string {
  const { type, precision } = spec;
  if ("sra".includes(type)) {
    const text = type === "s" ? plainText(value, budget) : reprText(value, budget);
    const shown = type === "a" ? escapeAscii(text) : text;
    return pad(Array.from(shown).slice(0, precision).join(""), "", spec);
  }
  if (type === "c") {
    const text = textOf(value);
    if (text !== undefined && lengthOf(text) === 1) return pad(text, "", spec);
    return isNumber(value) && !isFloat(value)
      ? pad(characterOf(plainNumber(value)), "", spec)
      : fail("%c requires int or char");
  }
  defined(value);
  if (!isNumber(value)) {
    return fail(`%${type} format: a number is required, not ${typeName(value)}`);
  }
  const number = plainNumber(value);
  if ("diu".includes(type)) return percentInteger(Math.trunc(number) + 0, { ...spec, type: "d" });
  if ("oxX".includes(type)) {
    return isFloat(value)
      ? fail(`%${type} format: an integer is required, not float`)
      : percentInteger(number, spec);
  }
  return "eEfFgG".includes(type)
    ? floatText(number, spec)
    : fail(`unsupported format character '${type}'`);
}

function characterOf(code: number): string {
  return code >= 0 && code <= 0x10ffff ? String.fromCodePoint(code) : fail("%c arg not in range");
}

/** Here a precision is a least number of digits. */
function percentInteger(value: number, spec: Spec): string {
  if (!Number.isFinite(value)) return fail("cannot convert float infinity or NaN to integer");
  const { precision = 0, ...rest } = spec;
  const bare = integerText(Math.abs(value), { ...rest, precision, width: 0, sign: "-" });
  const [, prefix, digits] = /^(0[oxX])?(.*)$/.exec(bare)!;
  return pad(digits.padStart(precision, "0"), signOf(value, spec) + (prefix ?? ""), spec);
}

function escapeAscii(text: string): string {
  return text.replace(/[^\0-\x7f]/gu, escapedPoint);
}

const SPEC = /^(?:([\s\S])?([<>=^]))?([-+ ])?(#)?(0)?(\d*)([,_])?(?:\.(\d+))?([a-zA-Z%])?$/u;

/** `format(value, spec)`. */
function formatValue(value: Value, text: string, budget: Budget): string {
  if (text === "") return plainText(value, budget);
  const match = SPEC.exec(text);
  if (match === null) return fail(`Invalid format specifier '${text}'`);
  const [, fill, align, sign, alternate, zero, width, separator, precision, type = ""] = match;
  const own = textOf(value);
  const spec: Spec = {
    fill: fill ?? (zero === undefined ? " " : "0"),
    align: align ?? (own !== undefined ? "<" : zero === undefined ? ">" : "="),
    sign: sign ?? "-",
    isAlternate: alternate !== undefined,
    width: sizeOf(width) ?? 0,
    separator: separator === "," ? "," : separator === "_" ? "_" : "",
    precision: sizeOf(precision),
    type,
  };
  budget.spend(spec.width + (spec.precision ?? 0));
  if (own !== undefined) return formatText(own, spec, sign !== undefined);
  if (!isNumber(value)) {
    return fail(`unsupported format string passed to ${typeName(value)}.__format__`);
  }
  const number = plainNumber(value);
  if (isFloat(value)) {
    if (type === "n") return floatText(number, { ...spec, type: "g" });
    return type === "" ? plainFloatText(number, spec, budget) : floatText(number, spec);
  }
  return formatInteger(number, spec);
}

function formatText(text: string, spec: Spec, hasSign: boolean): string {
  const { type, align, separator, isAlternate, precision } = spec;
  if (type !== "" && type !== "s") fail(`Unknown format code '${type}' for object of type 'str'`);
  if (hasSign || align === "=" || separator !== "" || isAlternate) {
    fail("a text has no sign and no digits to format");
  }
  return pad(Array.from(text).slice(0, precision).join(""), "", spec);
}

function formatInteger(value: number, spec: Spec): string {
  const { type, precision, separator } = spec;
  if ("eEfFgG%".includes(type) && type !== "") return floatText(value, spec);
  if (precision !== undefined) return fail("Precision not allowed in integer format specifier");
  if (type === "c") {
    return pad(characterOf(value), "", { ...spec, align: spec.align === "=" ? ">" : spec.align });
  }
  if (separator === "," && "boxX".includes(type) && type !== "") {
    return fail(`Cannot specify ',' with '${type}'.`);
  }
  return ["", "d", "n", "b", "o", "x", "X"].includes(type)
    ? integerText(value, spec)
    : fail(`Unknown format code '${type}' for object of type 'int'`);
}

/** Arguments of `str.format`. */
export interface FormatArguments {
  readonly args: readonly Value[];
  readonly named: ReadonlyMap<Value, Value>;
  readonly budget: Budget;
  /** What expressions reach, so do fields (access.ts). */
  readonly reach: {
    getAttribute(object: Value, at: { readonly name: string; readonly budget: Budget }): Value;
    getItem(object: Value, at: { readonly key: Value; readonly budget: Budget }): Value;
  };
}

const FIELD = /^([^.[\]!:]*)((?:\.[^.[\]!:]+|\[[^\]]+\])*)$/;

/** Fields are numbered by their order or by themselves, not both: how many the order has numbered. */
interface Numbering {
  next: number;
  isManual: boolean;
}

function numbered(field: string, numbering: Numbering): string {
  const isAutomatic = field === "";
  if (isAutomatic ? numbering.isManual : /^\d+$/.test(field) && numbering.next > 0) {
    return fail("fields are numbered by their order or by themselves, not both");
  }
  if (isAutomatic) return String(numbering.next++);
  numbering.isManual ||= /^\d+$/.test(field);
  return field;
}

const REPLACEMENT = /^((?:\[[^\]]*\]|[^!:[])*)(?:!([\s\S]))?(?::([\s\S]*))?$/;

/** `text.format(*args, **named)`. */
export function formatBraces(text: string, given: FormatArguments): string {
  return formatLevel(text, { given, numbering: { next: 0, isManual: false }, levels: 2 });
}

/** A text, or the spec of one of its fields, which may have fields itself. */
function formatLevel(
  text: string,
  { given, numbering, levels }: {
    readonly given: FormatArguments;
    readonly numbering: Numbering;
    readonly levels: number;
  },
): string {
  if (levels < 0) return fail("Max string recursion exceeded");
  let written = "";
  for (let at = 0; at < text.length;) {
    const char = text[at];
    if (char !== "{" && char !== "}") {
      written += char;
      at++;
    } else if (text[at + 1] === char) {
      written += char;
      at += 2;
    } else if (char === "}") return fail("Single '}' encountered in format string");
    else {
      const end = closingBrace(text, at);
      const [, name, conversion, spec = ""] = REPLACEMENT.exec(text.slice(at + 1, end)) ??
        fail("expected ':' after conversion specifier");
      const field = fieldValue(numbered(name, numbering), given);
      const value = convert(field, conversion, given.budget);
      const style = /[{}]/.test(spec)
        ? formatLevel(spec, { given, numbering, levels: levels - 1 })
        : spec;
      written += formatValue(value, style, given.budget);
      at = end + 1;
    }
  }
  given.budget.spend(written.length);
  return written;
}

function closingBrace(text: string, opening: number): number {
  let depth = 0;
  for (let at = opening; at < text.length; at++) {
    if (text[at] === "{") depth++;
    else if (text[at] === "}" && --depth === 0) return at;
  }
  return fail("expected '}' before end of string");
}

function fieldValue(field: string, { args, named, budget, reach }: FormatArguments): Value {
  const match = FIELD.exec(field) ?? fail(`the field '${field}' cannot be read`);
  const [, first, rest] = match;
  const start = /^\d+$/.test(first)
    ? orElse(args[Number(first)], () => fail(`Replacement index ${first} out of range`))
    : orElse(named.get(first), () => fail(`the arguments have no '${first}'`));
  const steps = rest.match(/\.[^.[\]]+|\[[^\]]+\]/g) ?? [];
  return steps.reduce<Value>((object, step) => {
    if (step.startsWith(".")) return reach.getAttribute(object, { name: step.slice(1), budget });
    const key = step.slice(1, -1);
    return reach.getItem(object, { key: /^\d+$/.test(key) ? Number(key) : key, budget });
  }, start);
}

function convert(value: Value, conversion: string | undefined, budget: Budget): Value {
  if (conversion === undefined) return value;
  if (conversion === "s") return plainText(value, budget);
  if (conversion === "r") return reprText(value, budget);
  if (conversion === "a") return escapeAscii(reprText(value, budget));
  return fail(`Unknown conversion specifier '${conversion}'`);
}
