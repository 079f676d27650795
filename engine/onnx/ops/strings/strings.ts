// Ops that compute with strings. Patterns are read as JavaScript's where the standard means RE2; a pattern that is
// none there is refused before anything runs.

import { elementCount } from "../../../ops/host_tensor.ts";
import { broadcastShapes } from "../../../ops/shape_rules.ts";
import { broadcastStrides, walk } from "../../../ops/strided.ts";
import { flag, int, required, text, texts } from "../../derivation/attributes.ts";
import { contribOp, type HostCall, type OnnxOp, onnxOp } from "../../derivation/op.ts";
import type { StringTensor } from "../../derivation/tensor.ts";

/** Input `index` of a node, strings. @throws {TypeError} If it is something else. */
function stringsOf({ inputs, node }: HostCall<unknown>, index: number): StringTensor {
  const value = inputs[index];
  if (value?.dtype === "string") return value;
  throw new TypeError(`input ${index} of ${node.name} must be strings`);
}

function patternOf(pattern: string, flags: string): RegExp {
  try {
    return new RegExp(pattern.replaceAll("(?P<", "(?<"), flags);
  } catch (cause) {
    throw new RangeError(`pattern ${JSON.stringify(pattern)} is not understood`, { cause });
  }
}

/** Lists of one length, with something in place of what is missing. */
function padded(lists: readonly (readonly string[])[], padding: string) {
  const width = lists.reduce((most, { length }) => Math.max(most, length), 0);
  const data = lists.flatMap((list) => [
    ...list,
    ...Array<string>(width - list.length).fill(padding),
  ]);
  return { width, data };
}

/** Cuts at a delimiter, or at white space if it is empty, `most` times at most; what is left stays whole. */
function splitText(given: string, delimiter: string, most: number): string[] {
  const parts: string[] = [];
  let rest = delimiter ? given : given.trimStart();
  while (delimiter || rest) {
    const found = delimiter ? rest.indexOf(delimiter) : rest.search(/\s/);
    if (found < 0 || parts.length === most) break;
    parts.push(rest.slice(0, found));
    rest = rest.slice(found + delimiter.length);
    if (!delimiter) rest = rest.trimStart();
  }
  if (delimiter || rest) parts.push(delimiter ? rest : rest.trimEnd());
  return parts;
}

// String.split would give what groups of the pattern hold as well.
function partsBetween(text: string, pattern: RegExp): string[] {
  const parts: string[] = [];
  let start = 0;
  for (const { index, 0: found } of text.matchAll(pattern)) {
    parts.push(text.slice(start, index));
    start = index + found.length;
  }
  return [...parts, text.slice(start)];
}

const CASES = {
  NONE: (word: string) => word,
  LOWER: (word: string) => word.toLowerCase(),
  UPPER: (word: string) => word.toUpperCase(),
};

/** Ops on strings. */
export const stringOps: readonly OnnxOp[] = [
  onnxOp("RegexFullMatch", {
    versions: [20],
    attributes: { pattern: required(text()) },
    prepare: ({ pattern }) => patternOf(`^(?:${pattern})$`, "u"),
    evaluate(call) {
      const { shape, data } = stringsOf(call, 0), pattern = call.attributes;
      const matches = Uint8Array.from(data, (one) => Number(pattern.test(one)));
      return [{ dtype: "bool", shape, data: matches }];
    },
  }),
  onnxOp("StringConcat", {
    versions: [20],
    evaluate(call) {
      const a = stringsOf(call, 0), b = stringsOf(call, 1);
      const shape = broadcastShapes(a.shape, b.shape) as number[];
      const data = new Array<string>(elementCount(shape));
      const strides = [broadcastStrides(a.shape, shape), broadcastStrides(b.shape, shape)];
      walk(shape, {
        strides,
        visit: (index, [p, q]) => {
          data[index] = a.data[p!]! + b.data[q!]!;
        },
      });
      return [{ dtype: "string", shape, data }];
    },
  }),
  /** StringNormalizer: words without some of them, in another case; one empty word if none is left. */
  onnxOp("StringNormalizer", {
    versions: [10],
    attributes: {
      case_change_action: text("NONE", { choices: Object.keys(CASES) }),
      is_case_sensitive: flag(false),
      // Cases are those of Unicode, whatever the locale.
      locale: text(),
      stopwords: texts([]),
    },
    evaluate(call) {
      const { shape, data } = stringsOf(call, 0);
      if (shape.length > 2 || shape.length === 2 && shape[0] !== 1) {
        throw new RangeError(`words must be of shape [C] or [1, C]: it is [${shape}]`);
      }
      const { case_change_action: action, is_case_sensitive: isExact } = call.attributes;
      const compared = isExact ? CASES.NONE : CASES.LOWER;
      const stops = new Set(call.attributes.stopwords.map(compared));
      const kept = data.filter((word) => !stops.has(compared(word)))
        .map(CASES[action as keyof typeof CASES]);
      const words = kept.length > 0 ? kept : [""];
      return [{ dtype: "string", shape: [...shape.slice(0, -1), words.length], data: words }];
    },
  }),
  /** StringSplit: parts of each string, filled up with empty ones, and how many they are. */
  onnxOp("StringSplit", {
    versions: [20],
    attributes: { delimiter: text(""), maxsplit: int(Infinity) },
    evaluate(call) {
      const { shape, data } = stringsOf(call, 0);
      const { delimiter, maxsplit } = call.attributes;
      const lists = data.map((one) => splitText(one, delimiter, maxsplit));
      const { width, data: parts } = padded(lists, "");
      const counts = BigInt64Array.from(lists, ({ length }) => BigInt(length));
      return [
        { dtype: "string", shape: [...shape, width], data: parts },
        { dtype: "i64", shape, data: counts },
      ];
    },
  }),
  /** Tokenizer: tokens that a pattern finds, or between separators; an empty separator is between all characters. */
  contribOp("Tokenizer", {
    attributes: {
      mark: flag(false),
      mincharnum: int(1),
      pad_value: required(text()),
      separators: texts(),
      tokenexp: text(),
    },
    prepare({ separators, tokenexp, ...given }) {
      if ((separators === undefined) === (tokenexp === undefined)) {
        throw new RangeError("either separators or tokenexp must be given");
      }
      const isCharacters = separators?.length === 1 && separators[0] === "";
      const token = tokenexp === undefined ? undefined : patternOf(tokenexp, "gu");
      return {
        ...given,
        token: isCharacters ? /[^]/gu : token,
        cuts: separators?.map((separator) => patternOf(separator, "gu")) ?? [],
      };
    },
    evaluate(call) {
      const { shape, data } = stringsOf(call, 0);
      const { mark, mincharnum: least, pad_value: padding, token, cuts } = call.attributes;
      const lists = data.map((one) => {
        const found = token
          ? one.match(token) ?? []
          : cuts.reduce((parts, cut) => parts.flatMap((part) => partsBetween(part, cut)), [one]);
        return found.filter((word) => word !== "" && [...word].length >= least);
      });
      // Where no string has a token, nothing is marked.
      const isEmpty = lists.every(({ length }) => length === 0);
      const marked = mark && !isEmpty ? lists.map((list) => ["\u0002", ...list, "\u0003"]) : lists;
      const { width, data: words } = padded(marked, padding);
      return [{ dtype: "string", shape: [...shape, width], data: words }];
    },
  }),
];
