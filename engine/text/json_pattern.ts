// Patterns of tokenizer.json as JavaScript regular expressions. Their dialect is Oniguruma's; the
// translation (possessive quantifiers, inline flags, set intersections, Unicode's meaning of \s and \w)
// is that of @huggingface/tokenizers, which is good at it and is used for nothing else here: its
// normalizers, pre-tokenizers and models differ from the reference in places the goldens test.

import { SplitPreTokenizer } from "@huggingface/tokenizers";
import { FormatError } from "../errors.ts";
import { childNode, type JsonNode, refuseField, textField } from "./json_fields.ts";

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
    const config = {
      type: "Split",
      pattern: { Regex: source },
      behavior: "Isolated",
      invert: false,
    };
    const split: { pattern?: unknown } = new SplitPreTokenizer(config as never);
    if (split.pattern instanceof RegExp) return new RegExp(split.pattern.source, "gu");
  } catch (cause) {
    throw new FormatError(`the pattern ${JSON.stringify(source)} cannot be read`, {
      file: node.file,
      place: `${node.path}.pattern`,
      cause,
    });
  }
  return refuseField(node, "pattern", "cannot be read");
}
