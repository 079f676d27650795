// The `decoder` of tokenizer.json, read as what one token stands for. Every decoder in use but CTC is a
// function of a single token plus a rule for the beginning of the text, and only that can be streamed;
// the others are refused by name.

import {
  childNodes,
  countField,
  flagField,
  type JsonNode,
  needText,
  refuseFeature,
  textField,
} from "./fields.ts";
import { readPattern, replaceBy } from "./pattern.ts";
import { wordPieceText } from "../word_piece.ts";

/** What a decoder does to one token. */
export interface JsonDecoder {
  /** Text of a token, unless it is written in the byte alphabet. */
  readonly textOf: (token: string) => string;
  readonly isByteLevel: boolean;
  readonly hasByteTokens: boolean;
  readonly leadingBlanks: number;
}

const PLAIN: JsonDecoder = {
  textOf: (token) => token,
  isByteLevel: false,
  hasByteTokens: false,
  leadingBlanks: 0,
};

const ROWS: ReadonlyMap<string, (node: JsonNode) => JsonDecoder> = new Map([
  ["ByteLevel", () => ({ ...PLAIN, isByteLevel: true })],
  ["ByteFallback", () => ({ ...PLAIN, hasByteTokens: true })],
  ["Fuse", () => PLAIN],
  ["Metaspace", readMetaspace],
  ["Replace", readReplace],
  ["Sequence", readSequence],
  ["Strip", readStrip],
  ["WordPiece", readWordPiece],
]);

/** Reads a decoder. Without one, tokens are joined with blanks, as the reference does. */
export function readDecoder(node: JsonNode | undefined): JsonDecoder {
  return node === undefined
    ? { ...PLAIN, textOf: (token) => " " + token, leadingBlanks: 1 }
    : readStep(node);
}

function readStep(node: JsonNode): JsonDecoder {
  const type = needText(node, "type");
  const row = ROWS.get(type);
  return row === undefined ? refuseFeature(node, `decoder ${JSON.stringify(type)}`) : row(node);
}

function readSequence(node: JsonNode): JsonDecoder {
  const steps = childNodes(node, "decoders").map(readStep);
  return {
    textOf: (token) => steps.reduce((text, step) => step.textOf(text), token),
    isByteLevel: steps.some((step) => step.isByteLevel),
    hasByteTokens: steps.some((step) => step.hasByteTokens),
    leadingBlanks: steps.reduce((sum, step) => sum + step.leadingBlanks, 0),
  };
}

function readMetaspace(node: JsonNode): JsonDecoder {
  const mark = textField(node, "replacement") ?? "\u2581";
  const scheme = textField(node, "prepend_scheme");
  const prepends = scheme === undefined
    ? flagField(node, "add_prefix_space") ?? true
    : scheme !== "never";
  return {
    ...PLAIN,
    textOf: (token) => token.replaceAll(mark, " "),
    // The reference drops every mark of the first token here, not one.
    leadingBlanks: prepends ? Infinity : 0,
  };
}

function readReplace(node: JsonNode): JsonDecoder {
  return { ...PLAIN, textOf: replaceBy(readPattern(node), textField(node, "content") ?? "") };
}

function readStrip(node: JsonNode): JsonDecoder {
  const content = textField(node, "content") ?? " ";
  if (content !== " " || (countField(node, "stop") ?? 0) !== 0) {
    return refuseFeature(node, "stripping anything but blanks in front");
  }
  return { ...PLAIN, leadingBlanks: countField(node, "start") ?? 0 };
}

function readWordPiece(node: JsonNode): JsonDecoder {
  const marks = { begin: "", inside: textField(node, "prefix") ?? "##" };
  const cleanup = flagField(node, "cleanup") ?? true;
  return {
    ...PLAIN,
    textOf: (token) => wordPieceText(token, { marks, cleanup }),
    leadingBlanks: 1,
  };
}
