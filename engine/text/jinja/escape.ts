// HTML's escapes, and text that needs none any more (`Markup` of Jinja's markupsafe).

import { isMarkup, markupValue, textOf, type Value } from "./values.ts";

const NAMES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  "'": "&#39;",
  '"': "&#34;",
};

/** A text escaped, unless it is marked already. */
export function escapeText(value: Value): string {
  const text = textOf(value) ?? "";
  return isMarkup(value) ? text : text.replace(/[&<>'"]/g, (char) => NAMES[char]);
}

/** A text escaped and marked. */
export function escapeValue(value: Value): Value {
  return isMarkup(value) ? value : markupValue(escapeText(value));
}
