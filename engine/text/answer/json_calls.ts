// Calls written as JSON: an object with the tool's name and its arguments, a list of such, or several one
// behind the other. The text may end anywhere, since it is read while the model writes it; that is why
// JSON.parse cannot do it.

import type { BodyReader, CallDraft } from "./tool_call.ts";

const NAMES: ReadonlySet<string> = new Set(["name", "tool_name"]);
const ARGUMENTS: ReadonlySet<string> = new Set(["arguments", "parameters"]);

/** Where a value ends, and whether it does. */
interface Span {
  readonly end: number;
  readonly isWhole: boolean;
}

/** Reads calls written as `{"name": …, "arguments": {…}}`; `parameters` and `tool_name` mean the same. */
export const readJsonCalls: BodyReader = (body) => {
  const drafts: CallDraft[] = [];
  for (let at = body.indexOf("{"); at >= 0;) {
    const span = valueSpan(body, at);
    drafts.push(draftOf(body.slice(at, span.end)));
    at = body.indexOf("{", span.end);
  }
  const isNoCall = drafts.length === 0 && body.trim() !== "" && body.trim() !== "[";
  return isNoCall ? [{ name: "", argumentsText: "" }] : drafts;
};

/** The first JSON value of a text, without what stands behind it. */
export function firstValue(text: string): string {
  const start = text.search(/\S/);
  return start < 0 ? "" : text.slice(start, valueSpan(text, start).end);
}

// An object's name and arguments. What wraps them (`{"type": "function", "function": {…}}`) is looked into.
function draftOf(object: string): CallDraft {
  let name = "", argumentsText = "";
  let at = 1;
  for (;;) {
    const key = /^[\s,]*"((?:[^"\\]|\\.)*)"\s*:\s*/s.exec(object.slice(at));
    if (!key) break;
    at += key[0].length;
    const span = valueSpan(object, at);
    const value = object.slice(at, span.end);
    at = span.end;
    if (NAMES.has(key[1]!) && span.isWhole && value.startsWith('"')) name = unquote(value);
    if (ARGUMENTS.has(key[1]!)) argumentsText = value.startsWith('"') ? unquote(value) : value;
    if (key[1] === "function" && value.startsWith("{")) return draftOf(value);
  }
  return { name, argumentsText };
}

/** A JSON string's text, also where it is cut. */
function unquote(text: string): string {
  for (let cut = 0; cut < 8; cut++) {
    const part = cut === 0 ? text : text.slice(0, text.length - cut + 1) + '"';
    try {
      const value = JSON.parse(part);
      return typeof value === "string" ? value : "";
    } catch {
      // Cut in the middle of an escape: what stands before it counts.
    }
  }
  return "";
}

function valueSpan(text: string, start: number): Span {
  let depth = 0;
  let inString = false;
  for (let at = start; at < text.length; at++) {
    const char = text[at]!;
    if (inString) {
      if (char === "\\") at++;
      else if (char === '"') {
        inString = false;
        if (depth === 0) return { end: at + 1, isWhole: true };
      }
    } else if (char === '"') inString = true;
    else if (char === "{" || char === "[") depth++;
    else if (char === "}" || char === "]") {
      if (depth === 0) return { end: at, isWhole: true };
      if (--depth === 0) return { end: at + 1, isWhole: true };
    } else if (depth === 0 && (char === "," || /\s/.test(char))) {
      return { end: at, isWhole: true };
    }
  }
  return { end: text.length, isWhole: false };
}
