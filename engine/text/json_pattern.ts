// Patterns of tokenizer.json as JavaScript regular expressions: a fixed text, or an expression in
// Oniguruma's dialect (oniguruma.ts).

import { FormatError } from "../errors.ts";
import { childNode, type JsonNode, refuseField, textField } from "./json_fields.ts";
import { fromOniguruma } from "./oniguruma.ts";

/** The `pattern` of a node, global and Unicode-aware. */
export function readPattern(node: JsonNode): RegExp {
  const pattern = childNode(node, "pattern") ??
    refuseField(node, "pattern", "the field is missing");
  const text = textField(pattern, "String");
  if (text !== undefined) return new RegExp(RegExp.escape(text), "gu");
  const source = textField(pattern, "Regex");
  if (source === undefined) {
    return refuseField(node, "pattern", "must be {String: …} or {Regex: …}");
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
