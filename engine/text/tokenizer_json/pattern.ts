// Patterns of tokenizer.json as JavaScript regular expressions: a fixed text, or an expression in
// Oniguruma's dialect (oniguruma.ts); and replacing what they match.

import { FormatError } from "../../errors.ts";
import { childNode, type JsonNode, refuseField, textField } from "./fields.ts";
import { fromOniguruma } from "../oniguruma.ts";

/** The `pattern` of a node, global and Unicode-aware. */
export function readPattern(node: JsonNode): RegExp {
  const pattern = childNode(node, "pattern") ??
    refuseField(node, { key: "pattern", message: "the field is missing" });
  const text = textField(pattern, "String");
  if (text !== undefined) return new RegExp(RegExp.escape(text), "gu");
  const source = textField(pattern, "Regex");
  if (source === undefined) {
    return refuseField(node, { key: "pattern", message: "must be {String: …} or {Regex: …}" });
  }
  try {
    return fromOniguruma(source);
  } catch (cause) {
    throw new FormatError(`the pattern ${JSON.stringify(source)} cannot be read`, {
      file: node.file,
      place: `${node.path}.pattern`,
      cause,
    });
  }
}

/** A function that replaces matches; an empty match right behind another is none, as in Oniguruma. */
export function replaceBy(pattern: RegExp, content: string): (text: string) => string {
  const once = new RegExp(pattern, pattern.flags.replace("g", ""));
  if (!once.test("")) return (text) => text.replace(pattern, () => content);
  return (text) => {
    let replaced = "";
    let at = 0;
    let isFirst = true;
    for (const { 0: match, index } of text.matchAll(pattern)) {
      if (match === "" && index === at && !isFirst) continue;
      replaced += text.slice(at, index) + content;
      at = index + match.length;
      isFirst = false;
    }
    return replaced + text.slice(at);
  };
}
