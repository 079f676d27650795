// The `normalizer` of tokenizer.json as a function from text to text; one row for each type.

import { lowercaseEach, normalizeBertText } from "../bert_text.ts";
import { createCharsmap } from "../charsmap.ts";
import {
  childNodes,
  flagField,
  type JsonNode,
  needText,
  refuseFeature,
  refuseField,
  textField,
} from "./fields.ts";
import { readPattern, replaceBy } from "./pattern.ts";

/** Changes a text before it is cut into words. */
export type Normalizer = (text: string) => string;

const BLANKS_LEFT = /^\p{White_Space}+/u;
const BLANKS_RIGHT = /\p{White_Space}+$/u;

const ROWS: ReadonlyMap<string, (node: JsonNode) => Normalizer> = new Map([
  ["Sequence", readSequence],
  ["BertNormalizer", readBert],
  ["Lowercase", () => lowercaseEach],
  ["NFC", () => (text: string) => text.normalize("NFC")],
  ["NFD", () => (text: string) => text.normalize("NFD")],
  ["NFKC", () => (text: string) => text.normalize("NFKC")],
  ["NFKD", () => (text: string) => text.normalize("NFKD")],
  ["StripAccents", () => (text: string) => text.replace(/\p{M}/gu, "")],
  ["Strip", readStrip],
  ["Prepend", readPrepend],
  ["Replace", readReplace],
  ["Precompiled", readPrecompiled],
]);

/** Reads a normalizer; nothing is the identity. */
export function readNormalizer(node: JsonNode | undefined): Normalizer {
  if (node === undefined) return (text) => text;
  const type = needText(node, "type");
  const row = ROWS.get(type);
  return row === undefined ? refuseFeature(node, `normalizer ${JSON.stringify(type)}`) : row(node);
}

function readSequence(node: JsonNode): Normalizer {
  const steps = childNodes(node, "normalizers").map(readNormalizer);
  return (text) => steps.reduce((result, step) => step(result), text);
}

function readBert(node: JsonNode): Normalizer {
  const lowercase = flagField(node, "lowercase") ?? true;
  const options = {
    cleanText: flagField(node, "clean_text") ?? true,
    spaceHan: flagField(node, "handle_chinese_chars") ?? true,
    stripAccents: flagField(node, "strip_accents") ?? lowercase,
    lowercase,
  };
  return (text) => normalizeBertText(text, options);
}

function readStrip(node: JsonNode): Normalizer {
  const left = flagField(node, "strip_left") ?? true;
  const right = flagField(node, "strip_right") ?? true;
  return (text) => {
    const begun = left ? text.replace(BLANKS_LEFT, "") : text;
    return right ? begun.replace(BLANKS_RIGHT, "") : begun;
  };
}

function readPrepend(node: JsonNode): Normalizer {
  const mark = needText(node, "prepend");
  return (text) => text === "" ? text : mark + text;
}

function readReplace(node: JsonNode): Normalizer {
  return replaceBy(readPattern(node), textField(node, "content") ?? "");
}

function readPrecompiled(node: JsonNode): Normalizer {
  const encoded = needText(node, "precompiled_charsmap");
  try {
    return createCharsmap(Uint8Array.fromBase64(encoded), node.file);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return refuseField(node, { key: "precompiled_charsmap", message: "is not base64" });
  }
}
